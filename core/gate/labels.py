"""The number that a list or a book gives a problem (`3.`, `Problem 3.`): no part of the problem. Reads tokens."""

from __future__ import annotations

from collections.abc import Sequence

from core.gate.habits import is_worth
from core.gate.tokens import Token

_NAMES = frozenset({"problem", "question", "exercise", "example", "task", "no", "q", "ex", "prob"})
# After these a number before them counts nothing: `Example 5 Find`, but not `Problem 3 Men`.
_OPENINGS = frozenset(
    "find let given suppose if in for compute determine prove show what how consider evaluate solve the".split()  # noqa: SIM905
)
_ENDS = frozenset({".", ")", ":", "—", "]"})


def label_end(tokens: Sequence[Token], text: str) -> int:
    """How many tokens at the start of a text are its label: 0 where there is none.

    A bare number needs a mark and a space after it and a capital or a formula next, so `3.5 m` and `5! is` are none.
    """
    index = 0
    named = bool(tokens) and tokens[0].text.lower() in _NAMES
    if named:
        index = 2 if len(tokens) > 1 and tokens[1].text == "." else 1
    if named and _is_title(tokens, text):
        return 2
    if index >= len(tokens) or tokens[index].kind != "number" or tokens[index].math:
        return 0
    number = tokens[index].text
    whole, _, part = number.partition(".")
    if not whole.isdigit() or len(whole) > 3 or (part and not (named and part.isdigit() and len(part) < 3)):
        return 0
    index += 1
    mark = tokens[index] if index < len(tokens) and tokens[index].text in _ENDS else None
    if mark is not None:
        if not named and mark.start > tokens[index - 1].end:
            return 0  # `5 — $x$ = 3` and `3 : $x$ = 6 : 4` begin with a number of their own
        index += 1
    if index >= len(tokens):
        return 0
    gap = text[tokens[index - 1].end : tokens[index].start]
    following = tokens[index]
    starts = following.text[:1].isupper() or following.math or following.text in ('"', "$") or is_worth(tokens, index)
    if not starts or not gap[:1].isspace():
        return 0
    if not named and mark is not None and mark.text in (":", "—") and (following.math or len(following.text) == 1):
        return 0  # a ratio or a difference: `3: $x$ = 6: 4`
    return index if mark is not None or (named and ("\n" in gap or following.text.lower() in _OPENINGS)) else 0


def _is_title(tokens: Sequence[Token], text: str) -> bool:
    """`Problem: Find it`, without a number."""
    if len(tokens) < 3 or tokens[1].text != ":" or tokens[1].start > tokens[0].end:
        return False
    gap = text[tokens[1].end : tokens[2].start]
    return gap[:1].isspace() and tokens[2].text[:1].isupper() and len(tokens[2].text) > 1
