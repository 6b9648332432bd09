"""Whether each number does the same work in both texts. Compares two readings; decides nothing."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import NamedTuple

from core.gate.alike import best
from core.gate.lexicon import lemma
from core.gate.quantities import Quantity
from core.gate.reading import Reading

_WINDOW = 7
_ONES = frozenset({"a", "an", "each", "per", "every", "full", "whole", "single", "one"})


class Roles(NamedTuple):
    """`fit`: worst similarity of a number's surroundings to its counterpart's; `margin`: how much better, at worst,
    the pairing by value is than swapping two numbers; `missing`/`extra`: values without a counterpart, as text."""

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    loose: int
    fit: float
    margin: float


def roles(stored: Reading, query: Reading) -> Roles:
    """Pairs the numbers of two texts by value and measures how alike their surroundings are."""
    a = [q for q in stored.numbers if q.form != "ordinal"]
    b = [q for q in query.numbers if q.form != "ordinal"]
    missing, extra, loose = _unpaired(a, b, stored, query)
    contexts_a = [_context(stored, q) for q in a]
    contexts_b = [_context(query, q) for q in b]
    similar = [[_similar(x, y) for y in contexts_b] for x in contexts_a]
    fit, margin = 1.0, 1.0
    for i, q in enumerate(a):
        own = [similar[i][j] for j, other in enumerate(b) if other.value == q.value]
        others = [similar[i][j] for j, other in enumerate(b) if other.value != q.value]
        if not own:
            continue
        fit = min(fit, max(own))
        if others:
            margin = min(margin, max(own) - max(others))
    return Roles(missing, extra, loose, fit, margin)


def _group(q: Quantity) -> tuple[Fraction, str]:
    """Numbers match within a group: `twice` never stands for a count of 2, `50%` may stand for a half."""
    return q.value, "times" if q.form == "times" else "share" if q.form in ("part", "percent") else "count"


def _unpaired(
    a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Values without a counterpart on either side, and how many mere back-references had none."""
    all_a, all_b = Counter(map(_group, a)), Counter(map(_group, b))
    loose_a = [_is_loose(q, stored, query, all_b) for q in a]
    loose_b = [_is_loose(q, query, stored, all_a) for q in b]
    firm_a = Counter(_group(q) for q, loose in zip(a, loose_a, strict=True) if not loose)
    firm_b = Counter(_group(q) for q, loose in zip(b, loose_b, strict=True) if not loose)
    missing, extra = firm_a - firm_b, firm_b - firm_a
    # a firm number in words may answer to a back-reference (`two DVDs`, `these two DVDs`), one in figures may not
    for side, numbers, other in ((missing, a, all_b - firm_b), (extra, b, all_a - firm_a)):
        for q in numbers:
            if q.in_words and side[_group(q)] > 0 and other[_group(q)] > 0:
                side[_group(q)] -= 1
                other[_group(q)] -= 1
    surplus = sum(((all_a - all_b) + (all_b - all_a)).values())
    return _show(missing), _show(extra), surplus


def _show(groups: Counter[tuple[Fraction, str]]) -> tuple[str, ...]:
    return tuple(str(value) for value, _ in (+groups).elements())


def _is_loose(q: Quantity, reading: Reading, other: Reading, counterpart: Counter[tuple[Fraction, str]]) -> bool:
    """A number that only points back: `one`, `the two`, `the 500-piece set` told of before."""
    before = reading.tokens[q.first - 1].text.lower() if q.first else ""
    after = reading.tokens[q.last].text if q.last < len(reading.tokens) else ""
    if q.form != "count" or before == "\\$":
        return False
    if q.value == 1:
        return q.in_words or _one_of(other, after)
    if q.value <= 4 and q.in_words and before in ("the", "these", "those", "both", "other", "all"):
        return True
    return counterpart[_group(q)] > 0 and after == "-" and before == "the"


def _one_of(reading: Reading, noun: str) -> bool:
    """Whether the text says `a cup`, `each cup` or the like where the other says `1 cup`."""
    base = lemma(noun)
    tokens = reading.tokens
    return any(
        tokens[k].kind == "word"
        and lemma(tokens[k].text) == base
        and (tokens[k - 1].text.lower() in _ONES or (k > 1 and tokens[k - 2].text.lower() in _ONES))
        for k in range(1, len(tokens))
    )


def _context(reading: Reading, q: Quantity) -> dict[str, float]:
    """Words round a number, nearer ones weighing more; those of the same sentence only."""
    sentence = reading.sentence_of[q.first]
    out: dict[str, float] = {}
    for word in reading.words:
        if word.sentence != sentence:
            continue
        gap = q.first - word.token if word.token < q.first else word.token - q.last + 1
        if gap > 2 * _WINDOW:
            continue
        weight = 1.0 / (1.0 + gap / 3.0)
        key = word.load or word.base
        out[key] = max(out.get(key, 0.0), weight)
    if q.first and reading.tokens[q.first - 1].text == "\\$":
        out["dollar"] = 1.0
    if q.form in ("percent", "times", "part"):
        out["#" + ("percent" if q.form == "percent" else "times")] = 0.5
    return out


def _similar(a: dict[str, float], b: dict[str, float]) -> float:
    if not a or not b:
        return 0.5
    forward = sum(w * best(k, b) for k, w in a.items()) / sum(a.values())
    backward = sum(w * best(k, a) for k, w in b.items()) / sum(b.values())
    return (forward + backward) / 2
