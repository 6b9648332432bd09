"""Lines up two texts and names every difference. Explains through `explain`; decides nothing."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from core.gate.explain import Difference, explain
from core.gate.reading import Reading
from core.gate.tokens import Token
from core.gate.units import Unit, units
from core.gate.verdict import Edit

MAX_UNITS = 4000
_OPERATORS = frozenset("+ - × · / = ≠ < > ≤ ≥ ± ∓ ^{ _{ ~- ! ÷ ∈ ∉ ∪ ∩ ⊂ ⊆ | ′".split())  # noqa: SIM905


def align(stored: str, query: str, one: Reading, other: Reading, *, formal: bool) -> tuple[tuple[Edit, ...], float]:
    """All edits from `stored` to `query`, and the share of the shorter text that the other repeats in order (0 to 1).

    `formal` switches off the rules that only hold in word problems. Pure.
    """
    left, right = one.tokens, other.tokens
    a = units(left, one.numbers, formal=formal)
    b = units(right, other.numbers, formal=formal)
    matcher = SequenceMatcher(None, [u.key for u in a], [u.key for u in b], autojunk=False)
    edits: list[Edit] = []
    same = 0
    for tag, a1, a2, b1, b2 in matcher.get_opcodes():
        if tag == "equal":
            same += a2 - a1
            for offset in range(a2 - a1):
                edit = _respelled(stored, query, a, a1 + offset, b, b1 + offset, left, right)
                if edit is not None:
                    edits.append(edit)
            continue
        edits.extend(_edits(stored, query, Difference(a, a1, a2, b, b1, b2, formal), left, right))
    # measured on the shorter text: a text that repeats the other whole and adds to it is as close as can be
    shorter = min(len(a), len(b))
    return tuple(edits), (same / shorter if shorter else 1.0)


def _span(tokens: Sequence[Token], units_: Sequence[Unit], first: int, last: int, length: int) -> tuple[int, int]:
    if first < last:
        covered = tokens[units_[first].first : units_[last - 1].last]
        return min(t.start for t in covered), max(t.end for t in covered)
    if first < len(units_):
        place = tokens[units_[first].first].start
    else:
        place = max((t.end for t in tokens), default=length)
    return place, place


def _respelled(
    stored: str,
    query: str,
    a: Sequence[Unit],
    i: int,
    b: Sequence[Unit],
    j: int,
    left: Sequence[Token],
    right: Sequence[Token],
) -> Edit | None:
    x, y = a[i], b[j]
    if x.text == y.text:
        return None
    one, two = _span(left, a, i, i + 1, len(stored)), _span(right, b, j, j + 1, len(query))
    kind, reason = (
        ("number_form", "the same number in another form")
        if x.kind == "number"
        else (
            ("fraction", "the same quotient as a fraction and with a slash")
            if x.kind == "ratio"
            else ("case", "only capital letters differ")
            if x.text.lower() == y.text.lower()
            else ("spelling", "two spellings of one word or unit")
        )
    )
    return Edit(kind, stored[one[0] : one[1]], query[two[0] : two[1]], one, two, True, reason)


def _edits(stored: str, query: str, d: Difference, left: Sequence[Token], right: Sequence[Token]) -> list[Edit]:
    found = explain(d)
    if found is None and (split := _split(d)) is not None:
        parts = [explain(part) for part in split]
        if all(part is not None for part in parts):
            return [
                _edit(stored, query, part, left, right, *answer)
                for part, answer in zip(split, parts, strict=True)
                if answer is not None
            ]
    if found is None:
        kind = _kind(d)
        return [_edit(stored, query, d, left, right, kind, _UNEXPLAINED[kind], explained=False)]
    return [_edit(stored, query, d, left, right, *found)]


def _edit(
    stored: str,
    query: str,
    d: Difference,
    left: Sequence[Token],
    right: Sequence[Token],
    kind: str,
    reason: str,
    *,
    explained: bool = True,
) -> Edit:
    one = _span(left, d.a, d.a1, d.a2, len(stored))
    two = _span(right, d.b, d.b1, d.b2, len(query))
    return Edit(kind, stored[one[0] : one[1]], query[two[0] : two[1]], one, two, explained, reason)


def _split(d: Difference) -> list[Difference] | None:
    """Two runs of one length as single differences, so that each has to be explained by itself."""
    if d.a2 - d.a1 != d.b2 - d.b1 or not 2 <= d.a2 - d.a1 <= 6:
        return None
    return [
        Difference(d.a, d.a1 + k, d.a1 + k + 1, d.b, d.b1 + k, d.b1 + k + 1, d.formal)
        for k in range(d.a2 - d.a1)
        if d.a[d.a1 + k].key != d.b[d.b1 + k].key
    ]


def _kind(d: Difference) -> str:
    both = (*d.a[d.a1 : d.a2], *d.b[d.b1 : d.b2])
    if any(u.kind in ("number", "ratio") for u in both):
        return "number"
    if any(u.key in _OPERATORS for u in both):
        return "operator"
    if any(u.math or u.kind in ("letter", "mark", "figure") for u in both):
        return "formula"
    if not d.left:
        return "added"
    if not d.right:
        return "removed"
    return "words"


_UNEXPLAINED = {
    "number": "a number differs",
    "operator": "an operator, sign or relation differs",
    "formula": "a formula or figure differs",
    "added": "the query says something that the stored problem does not",
    "removed": "the stored problem says something that the query does not",
    "words": "words differ and are not known to mean the same",
}
