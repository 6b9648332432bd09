"""Which dollar signs open a formula and which are money. Knows nothing of what is inside a formula."""

from __future__ import annotations

import re

from core.gate.symbols import FUNCTIONS, words
from core.gate.tokens import CURRENCY_MASK, FIGURE_MASK, PERCENT_MASK

# `\$` and `\\` are read whole so that an escaped dollar is never a delimiter.
_SCAN = re.compile(r"\\.|\$\$?", re.DOTALL)
_FIGURE = re.compile(r"\[asy\].*?\[/asy\]|<asy>.*?</asy>|\\begin\{(asy|tikzpicture)\}.*?\\end\{\1\}", re.DOTALL)
_HIDE = re.compile(
    r"\\(?:begin|end)\{[a-z]+\*?\}|\\(?:text|textrm|textit|textbf|mbox|mathrm|operatorname)\s*\{[^{}]*\}|\\[A-Za-z]+"
)
_RUN = re.compile(r"[A-Za-z]{2,}")
_PROSE = words(
    "and or of for the in is to it at on by he she they per each with has had as if we be an are was but from then "
    "his her off up so do did cost bill bills"
)
_VOWELS = frozenset("aeiou")
_MATHLIKE = re.compile(r"[\\^_=+<>A-Za-z]")
_MAX_FORMULA = 4000


def mask(text: str) -> tuple[str, list[tuple[int, int]]]:
    """`text` with money's dollars, percent signs and figures masked one for one, and the figures' spans.

    The result has the length of `text`, so offsets stay true: a LaTeX parser then reads every dollar left as a
    delimiter, and no percent sign as a comment. Does not raise; linear but for unclosed formulas, which are capped.
    """
    figures: list[tuple[int, int]] = []

    def hide(match: re.Match[str]) -> str:
        figures.append(match.span())
        return FIGURE_MASK * (match.end() - match.start())

    # a text that already holds the mask's private characters must not pass for masked
    chars = list(_FIGURE.sub(hide, text.translate({0xE000: "\ufffd", 0xE001: "\ufffd", 0xE002: "\ufffd"})))
    whole = "".join(chars)
    place = 0
    while (found := _SCAN.search(whole, place)) is not None:
        start, sign = found.start(), found.group()
        place = found.end()
        if sign[0] == "\\":
            continue
        if sign == "$$":
            close = whole.find("$$", place)
            if 0 <= close - place <= _MAX_FORMULA:
                place = close + 2
            else:
                chars[start] = chars[start + 1] = CURRENCY_MASK
            continue
        # no formula begins with a comma right after a digit: `A=5$, B=6$`
        amount = whole[start - 1 : start].isdecimal() and whole[place : place + 1] in tuple(",.;:)?!")
        end = None if amount else _closing(whole, place)
        if end is not None:
            place = end + 1
        else:
            chars[start] = CURRENCY_MASK
            place = start + 1
    escaped = False
    for index, char in enumerate(chars):
        if char == "%" and not escaped:
            chars[index] = PERCENT_MASK
        escaped = char == "\\" and not escaped
    return "".join(chars), figures


def _closing(text: str, start: int) -> int | None:
    """The dollar that closes a formula opened just before `start`, or None where the dollar is money."""
    for found in _SCAN.finditer(text, start, start + _MAX_FORMULA):
        if found.group()[0] == "\\":
            continue
        close = found.start()
        return close if _is_formula(text[start:close], text[close + 1 : close + 2]) else None
    return None


def _is_formula(content: str, after: str) -> bool:
    body = content.strip()
    if not body or "\n\n" in content:
        return False
    plain = _HIDE.sub(" ", body)
    runs = _RUN.findall(plain)
    prose = any(r in _PROSE or (len(r) > 3 and r.islower() and r not in FUNCTIONS) for r in runs)
    if content[0].isspace() or content[-1].isspace():
        prose = prose or any(len(r) > 2 and r.islower() and r not in FUNCTIONS and set(r) & _VOWELS for r in runs)
    starts_with_number = body[0].isdigit() or body[0] == "."
    if prose and (starts_with_number or content[-1].isspace()):
        return False
    if len([r for r in runs if len(r) > 2 and r.islower() and r not in FUNCTIONS]) > 6:
        return False
    # Pandoc's rule: no space inside the delimiters, no digit after the closing one
    if not content[0].isspace() and not content[-1].isspace() and not (starts_with_number and after.isdigit()):
        return True
    if starts_with_number and content[-1].isspace() and content[0].isspace() is False:
        return bool(re.search(r"[\\^_=]", body))
    return _MATHLIKE.search(body) is not None
