"""The bar of a set (`\\{x\\mid x>0\\}`) as the colon that other sites set there. Reads and writes tokens."""

from __future__ import annotations

from collections.abc import Sequence

from core.gate.terms import RELATIONS
from core.gate.tokens import Token

_OPEN = frozenset({"\\{", "(", "[", "{", "_{", "^{", "frac{", "binom{"})
_CLOSE = frozenset({"\\}", ")", "]", "}"})
_LONGEST = 80


def set_bars(tokens: list[Token]) -> list[Token]:
    """The tokens with the bar of each set as a colon. A bar that may divide or open an absolute value stays."""
    out = list(tokens)
    for index, token in enumerate(tokens):
        if token.text == "\\{" and (bar := _bar(tokens, index + 1)) is not None:
            out[bar] = tokens[bar]._replace(kind="punct", text=":")
    return out


def _bar(tokens: Sequence[Token], start: int) -> int | None:
    """Where the bar of the set whose brace ends before `start` stands, or None.

    The element is a letter or a tuple of letters, with the set that it is taken from at most. What follows the bar has
    a relation, every other bar has a partner, and no colon stands in it: `\\{d\\mid 12\\}` may be about divisors.
    """
    place = _element(tokens, start)
    if place is None or place >= len(tokens):
        return None
    if tokens[place].text == "∈":
        depth, first = 0, place + 1
        place += 1
        while place < min(len(tokens), start + _LONGEST) and (depth or tokens[place].text != "|"):
            depth += (tokens[place].text in _OPEN) - (tokens[place].text in _CLOSE)
            if depth < 0 or tokens[place].text == ":":
                return None
            place += 1
        if place == first:
            return None
    if place >= len(tokens) or tokens[place].text != "|":
        return None
    depth, bars, related = 0, 0, False
    for index in range(place + 1, min(len(tokens), place + _LONGEST)):
        text = tokens[index].text
        if text == "\\}" and depth == 0:
            return place if related and bars % 2 == 0 else None
        depth += (text in _OPEN) - (text in _CLOSE)
        if depth < 0 or text in (":", "∤") or tokens[index].kind == "break":
            return None
        bars += text == "|"
        related = related or (text in RELATIONS and index > place + 1)
    return None


def _element(tokens: Sequence[Token], start: int) -> int | None:
    """Past the letter or the tuple of letters at `start`."""
    if start < len(tokens) and _letter(tokens[start]):
        return start + 1
    if start >= len(tokens) or tokens[start].text != "(":
        return None
    place = start + 1
    while place + 1 < len(tokens) and _letter(tokens[place]):
        if tokens[place + 1].text == ")":
            return place + 2 if place > start + 1 else None
        if tokens[place + 1].text != ",":
            return None
        place += 2
    return None


def _letter(token: Token) -> bool:
    return token.kind in ("letter", "word") and len(token.text.removeprefix("$")) == 1
