"""Where a long text is cut into segments: at headings, else paragraphs, else sentences, else anywhere.

The borders depend on the text around them and not on their distance from the start, so that an edit moves only the
borders near it. Knows characters and a token counter; no model, no library.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import IntEnum

from library.digest import digest_bytes
from library.errors import UsageError

Count = Callable[[str], int]
SMALLEST = 16  # tokens; a shorter limit leaves no sentence whole
_BLANK = re.compile(r"\n[ \t\r\f\v]*\n\s*")
_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*\s+|[。！？]|\n")
_HEADING = re.compile(r"#{1,6} |[^\n]{1,200}\n(?:={3,}|-{3,})\s*\n")


class Border(IntEnum):
    """What follows a unit, the best border first."""

    HEADING = 0
    PARAGRAPH = 1
    SENTENCE = 2
    ANYWHERE = 3


@dataclass(frozen=True)
class Piece:
    """Characters [start, end) of a text, without white space at either end. `tokens`: the sum of its units'."""

    start: int
    end: int
    tokens: int


@dataclass(frozen=True)
class _Unit:
    start: int
    end: int
    tokens: int
    border: Border
    mark: int  # decides between borders of one kind; a function of the unit's own text


def split(text: str, limit: int, count: Count) -> Iterator[Piece]:
    """Pieces of at most `limit` tokens that together hold all of the text but the white space between them.

    `count` gives the tokens of a string. A piece ends at the best kind of border between `limit / 2` and `limit`
    tokens; among several of that kind at the one whose text has the smallest digest: two ways of reaching a place
    then agree on the next cut. Raises `UsageError` for a limit below `SMALLEST`.
    """
    if limit < SMALLEST:
        raise UsageError(f"a segment needs at least {SMALLEST} tokens, not {limit}")
    waiting: list[_Unit] = []
    held = 0
    for unit in _units(text, limit // 2, count):
        while held + unit.tokens > limit:
            cut = _cut(waiting, limit)
            yield from _piece(text, waiting[:cut])
            waiting = waiting[cut:]
            held = sum(item.tokens for item in waiting)
        waiting.append(unit)
        held += unit.tokens
    yield from _piece(text, waiting)


def _cut(units: list[_Unit], limit: int) -> int:
    """How many of `units` make the next piece."""
    total, best, chosen = 0, (Border.ANYWHERE + 1, 0), len(units)
    for number, unit in enumerate(units, start=1):
        total += unit.tokens
        rank = (int(unit.border), unit.mark)
        if 2 * total >= limit and rank <= best:
            best, chosen = rank, number
    return chosen


def _piece(text: str, units: list[_Unit]) -> Iterator[Piece]:
    if not units:
        return
    raw = text[units[0].start : units[-1].end]
    left, stripped = len(raw) - len(raw.lstrip()), raw.strip()
    if stripped:
        start = units[0].start + left
        yield Piece(start, start + len(stripped), sum(unit.tokens for unit in units))


def _units(text: str, largest: int, count: Count) -> Iterator[_Unit]:
    """Paragraphs; those of more than `largest` tokens by sentences; those by parts of words."""
    for start, end in _between(text, _BLANK, 0, len(text)):
        tokens = count(text[start:end])
        border = Border.HEADING if _HEADING.match(text, end) else Border.PARAGRAPH
        if tokens <= largest:
            yield _unit(text, start, end, tokens, border)
            continue
        for first, last in _between(text, _SENTENCE, start, end):
            inner = border if last == end else Border.SENTENCE
            yield from _halved(text, first, last, largest, count, inner)


def _halved(text: str, start: int, end: int, largest: int, count: Count, border: Border) -> Iterator[_Unit]:
    tokens = count(text[start:end])
    if tokens <= largest or end - start < 2:
        yield _unit(text, start, end, tokens, border)
        return
    middle = (start + end) // 2
    space = text.find(" ", middle, min(end, middle + 40))
    middle = space + 1 if space >= 0 and space + 1 < end else middle
    yield from _halved(text, start, middle, largest, count, Border.ANYWHERE)
    yield from _halved(text, middle, end, largest, count, border)


def _between(text: str, border: re.Pattern[str], start: int, end: int) -> Iterator[tuple[int, int]]:
    """[start, end) cut after each match of `border`."""
    for found in border.finditer(text, start, end):
        if found.end() < end:
            yield start, found.end()
            start = found.end()
    if start < end:
        yield start, end


def _unit(text: str, start: int, end: int, tokens: int, border: Border) -> _Unit:
    return _Unit(start, end, tokens, border, int(digest_bytes(text[start:end].encode()).hex[:16], 16))
