"""Whether each number does the same work in both texts. Compares two readings; decides nothing."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import NamedTuple

from core.gate.alike import DERIVED, KIN, alike, best
from core.gate.lexicon import classes, lemma, stop_words, unit_words
from core.gate.people import actor_differs, kind_of
from core.gate.quantities import Quantity
from core.gate.reading import Reading

_PRONOUNS = frozenset({"them", "these", "those", "which"})
_WINDOW = 7
_WHOLES: dict[tuple[Fraction | int, str], str] = {
    (7, "day"): "week",
    (12, "month"): "year",
    (24, "hour"): "day",
    (60, "minute"): "hour",
    (60, "second"): "minute",
}
_ONES = frozenset({"a", "an", "each", "per", "every", "full", "whole", "single", "one", "first"})


class Roles(NamedTuple):
    """How the numbers of two texts answer to each other.

    missing, extra: values without a counterpart. reordered, actors: numbers that changed places or owners, in words.
    strange_units: units of measure of one text only. loose: how many mere back-references have no counterpart. fit:
    worst similarity of a number's surroundings to its counterpart's. margin: by how much, at worst, the pairing by
    value beats any other.
    """

    missing: tuple[str, ...]
    extra: tuple[str, ...]
    reordered: str
    strange_units: tuple[str, ...]
    actors: str
    loose: int
    fit: float
    margin: float


def roles(stored: Reading, query: Reading) -> Roles:
    """Pairs the numbers of two texts by value and measures how alike their surroundings are."""
    a = [q for q in stored.numbers if q.form != "ordinal"]
    b = [q for q in query.numbers if q.form != "ordinal"]
    strange_pairs = _units_differ(a, b, stored, query)
    missing, extra, loose = _unpaired(a, b, stored, query)
    reordered = _reordered(a, b, stored, query)
    actors = actor_differs(a, b, stored, query) or _misplaced(a, b, stored, query) or _misplaced(b, a, query, stored)
    strange = (
        tuple(sorted(_measured(a, stored) - _spoken(query)) + sorted(_measured(b, query) - _spoken(stored)))
        or strange_pairs
    )
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
    return Roles(missing, extra, reordered, strange, actors, loose, fit, margin)


def _unpaired(
    a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading
) -> tuple[tuple[str, ...], tuple[str, ...], int]:
    """Values without a counterpart on either side, and how many mere back-references had none."""
    all_a, all_b = Counter(map(kind_of, a)), Counter(map(kind_of, b))
    loose_a = [_is_loose(q, stored, query, all_b) for q in a]
    loose_b = [_is_loose(q, query, stored, all_a) for q in b]
    firm_a = Counter(kind_of(q) for q, loose in zip(a, loose_a, strict=True) if not loose)
    firm_b = Counter(kind_of(q) for q, loose in zip(b, loose_b, strict=True) if not loose)
    missing, extra = firm_a - firm_b, firm_b - firm_a
    # a firm number in words may answer to a back-reference (`two DVDs`, `these two DVDs`), one in figures may not
    for side, numbers, other in ((missing, a, all_b - firm_b), (extra, b, all_a - firm_a)):
        for q in numbers:
            if q.in_words and side[kind_of(q)] > 0 and other[kind_of(q)] > 0:
                side[kind_of(q)] -= 1
                other[kind_of(q)] -= 1
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
    if _spans_a_unit(q, reading, other):
        return True
    if q.value == 1 and after == "of":
        # `one of them is given away` is an event, `Ann, one of the girls` points
        return not any(t.text.lower() in _PRONOUNS for t in reading.tokens[q.last + 1 : q.last + 2])
    if q.value == 1:
        return q.in_words or _one_of(other, after)
    if q.value <= 4 and before == "other":
        return True
    if q.value <= 4 and q.in_words and before in ("the", "these", "those", "both", "other", "all"):
        return True
    return counterpart[kind_of(q)] > 0 and after == "-" and before == "the"


def _spans_a_unit(q: Quantity, reading: Reading, other: Reading) -> bool:
    """`7 days` where the other text says `a week` once more."""
    whole = _WHOLES.get((q.value, counted(reading, q)), "")
    return bool(whole) and _mentions(other, whole) > _mentions(reading, whole)


def _mentions(reading: Reading, unit: str) -> int:
    tokens = reading.tokens
    return sum(
        tokens[k].kind == "word"
        and unit_words().get(lemma(tokens[k].text)) == unit
        and tokens[k - 1].text.lower() in ("a", "an", "one")
        for k in range(1, len(tokens))
    )


def _reordered(a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading) -> str:
    """The first number that comes at another place, or an empty string. Back-references do not count, nor do numbers
    that tell themselves apart by what they count (`6 months were $8` and `$8 a month for 6 months`)."""
    all_a, all_b = Counter(map(kind_of, a)), Counter(map(kind_of, b))
    firm_a = [q for q in a if all_b[kind_of(q)] and not _is_loose(q, stored, query, all_b)]
    firm_b = [q for q in b if all_a[kind_of(q)] and not _is_loose(q, query, stored, all_a)]
    values_a, values_b = [q.value for q in firm_a], [q.value for q in firm_b]
    if len(values_a) != len(values_b):
        # one side repeats a number in other words: compare where each first comes
        values_a, values_b = list(dict.fromkeys(values_a)), list(dict.fromkeys(values_b))
    moved = {v for pair in zip(values_a, values_b, strict=False) if pair[0] != pair[1] for v in pair}
    for x in sorted(moved):
        own_a = {counted(stored, q) for q in firm_a if q.value == x}
        own_b = {counted(query, q) for q in firm_b if q.value == x}
        rest = {counted(query, q) for q in firm_b if q.value in moved and q.value != x}
        tied = all(best(noun, own_b) >= DERIVED for noun in own_a) and "" not in own_a
        if not tied or any(best(noun, rest) >= KIN for noun in own_a):
            return str(x)
    return ""


def _misplaced(a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading) -> str:
    """A number that counts here what another number counts there (`9 students, 81 tickets` and `9 tickets for 81
    students`), in words; else empty."""
    for q in a:
        noun = counted(stored, q)
        own = {counted(query, p) for p in b if kind_of(p) == kind_of(q)}
        if noun in ("", "$") or not own or own & {"", "$"} or best(noun, own) >= KIN:
            continue
        exchanged = any(alike(noun, counted(query, p)) >= DERIVED for p in b if p.value != q.value)
        if exchanged and any(best(counted(stored, p), own) >= DERIVED for p in a if p.value != q.value):
            return f"{q.value} counts “{noun}” in one text and “{sorted(own)[0]}” in the other"
    return ""


def counted(reading: Reading, q: Quantity) -> str:
    """What a number counts: the word or unit after it, `$`, or its form where that tells enough; else empty."""
    if q.form in ("percent", "times", "part"):
        return "#times" if q.form == "times" else "#share"
    if q.first and reading.tokens[q.first - 1].text in ("\\$", "€", "£"):
        return "$"
    for index in range(q.last, min(q.last + 4, len(reading.tokens))):
        token = reading.tokens[index]
        if token.kind != "word":
            if token.text == "-":
                continue
            break
        base = lemma(token.text)
        if token.text.lower() == "per":
            return ""  # `3 per hour`
        if classes().get(token.text.lower()) in ("more", "less"):
            return ""  # `4 more than the red ones`: what is counted comes anywhere
        if base not in stop_words() and token.text.lower() not in classes() and base not in classes():
            return unit_words().get(base, base)
    return ""


def _units_differ(a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading) -> tuple[str, ...]:
    """Units of a number whose counterparts all have another unit of measure."""
    for q in a:
        unit = _measured([q], stored)
        others = [_measured([p], query) for p in b if kind_of(p) == kind_of(q)]
        if unit and others and all(other and other != unit for other in others):
            return tuple(sorted(unit | others[0]))
    return ()


def _measured(numbers: list[Quantity], reading: Reading) -> set[str]:
    """Units of measure that follow a number."""
    found: set[str] = set()
    for q in numbers:
        for index in range(q.last, min(q.last + 3, len(reading.tokens))):
            token = reading.tokens[index]
            name = unit_words().get(lemma(token.text)) if token.kind == "word" else None
            if name is not None:
                found.add(name)
                break
            if token.text != "-" and token.text.lower() not in ("cubic", "square"):
                break
    return found


def _spoken(reading: Reading) -> set[str]:
    """Units of measure anywhere in a text, signs and derived words included."""
    table = unit_words()
    return {table[base] for t in reading.tokens if (base := lemma(t.text) if t.kind == "word" else t.text) in table}


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
