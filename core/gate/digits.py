"""The digits of a number in a formula: its point and how they are grouped. Reads the tree and the tokens so far."""

from __future__ import annotations

from typing import Any

from core.gate.latex_tree import Char, digit_at, digits_end, separator
from core.gate.tokens import Token


def number_at(items: list[Any], index: int, out: list[Token], *, lowered: bool) -> tuple[Token, int]:
    """Digits with their point and their grouping (`1{,}000`, `1\\,000`, and `1,000` outside of brackets), and its end.

    `out` are the tokens before it, `lowered` tells that it stands in an index.
    """
    start = items[index].start
    last = digits_end(items, index)
    leading = "".join(i.text for i in items[index:last])
    if 1 <= len(leading) <= 3 and leading[0] != "0":
        last = _groups_end(items, last, out, lowered)
    if last < len(items) and isinstance(items[last], Char) and items[last].text == "." and digit_at(items, last + 1):
        last = digits_end(items, last + 1)
    digits = "".join(i.text for i in items[index:last] if isinstance(i, Char) and (i.text.isdecimal() or i.text == "."))
    return Token("number", digits, start, items[last - 1].end, True), last


def _groups_end(items: list[Any], index: int, out: list[Token], lowered: bool) -> int:
    """Past all groups of three digits after `index`; `index` itself where they are a list or no groups at all."""
    place = index
    bare = False
    while (size := separator(items, place)) and digits_end(items, place + size) == place + size + 3:
        bare = bare or (size == 1 and isinstance(items[place], Char))
        place += size + 3
    # a bare comma in brackets separates, and so does one before a shorter or longer run of digits
    listed = (
        isinstance(items[place], Char) and items[place].text == "," and digit_at(items, place + 1)
        if (place < len(items))
        else False
    )
    return index if bare and (listed or _in_brackets(out, lowered)) else place


def _in_brackets(out: list[Token], lowered: bool) -> bool:
    """Whether the formula being written has or follows an open bracket, or is an index: a comma there separates."""
    if lowered:
        return True
    depth = 0
    for place, token in enumerate(reversed(out), start=1):
        if token.kind == "break":
            before = out[-place - 1].text if place < len(out) else ""
            return depth == 0 and before in ("(", "[", "\\{")
        if token.text in (")", "]", "\\}", "⟩"):
            depth -= 1
        elif token.text in ("(", "[", "\\{", "⟨"):
            depth += 1
            if depth > 0:
                return True
    return False
