"""Whether each number does the same work in both texts. Compares two readings; decides nothing."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import NamedTuple

from core.gate.alike import DERIVED, KIN, alike, best
from core.gate.lexicon import classes, lemma, stop_words, unit_words
from core.gate.quantities import Quantity
from core.gate.reading import Reading

_CLAUSE_ENDS = frozenset({",", ".", "?", "!", ";", ":", "(", ")", "—"})
_TURNING = frozenset({"by", "from", "receive", "get", "together", "both", "each"})
_WINDOW = 7
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
    actors = _actor_differs(a, b, stored, query) or _misplaced(a, b, stored, query) or _misplaced(b, a, query, stored)
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


def _reordered(a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading) -> str:
    """The first number that comes at another place, or an empty string. Back-references do not count, nor do numbers
    that tell themselves apart by what they count (`6 months were $8` and `$8 a month for 6 months`)."""
    all_a, all_b = Counter(map(_group, a)), Counter(map(_group, b))
    firm_a = [q for q in a if all_b[_group(q)] and not _is_loose(q, stored, query, all_b)]
    firm_b = [q for q in b if all_a[_group(q)] and not _is_loose(q, query, stored, all_a)]
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
        own = {counted(query, p) for p in b if p.value == q.value}
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
        if classes().get(token.text.lower()) in ("more", "less"):
            return ""  # `4 more than the red ones`: what is counted comes anywhere
        if base not in stop_words() and token.text.lower() not in classes() and base not in classes():
            return unit_words().get(base, base)
    return ""


def _actor_differs(a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading) -> str:
    """Two people whose numbers are exchanged, or who change places round one number, in words; else empty."""
    people = frozenset(n for n in stored.names & query.names if _acts(stored, n) or _acts(query, n))
    if len(people) < 2:
        return ""
    owners_a = {_group(q): _owner(stored, q, people) for q in a}
    owners_b = {_group(q): _owner(query, q, people) for q in b}
    for group, own in owners_a.items():
        other = owners_b.get(group, "")
        if not own or not other or own == other:
            continue
        if any(owners_a[g] == other and owners_b.get(g) == own for g in owners_a if g != group):
            return f"{own.capitalize()} or {other.capitalize()} for {group[0]}"
    for q in a:
        pair = _clause_names(stored, q, people)
        for mate in (p for p in b if _group(p) == _group(q)):
            reverse = _clause_names(query, mate, people)
            if len(pair) == 2 and reverse == pair[::-1]:
                return f"{pair[0].capitalize()} and {pair[1].capitalize()} change places round {q.value}"
    return ""


def _acts(reading: Reading, name: str) -> bool:
    """Whether a name does something: it stands where a subject or an owner stands, not after a preposition."""
    for index, token in enumerate(reading.tokens):
        if token.text.lower() == name:
            before = reading.tokens[index - 1].text.lower() if index else ""
            if before not in ("in", "on", "at", "for", "to", "of", "during", "by", "the", "-"):
                return True
    return False


def _owner(reading: Reading, q: Quantity, people: frozenset[str]) -> str:
    """The name nearest before a number in its sentence, else the nearest after it there, else empty."""
    sentence = reading.sentence_of[q.first]
    for index in range(q.first - 1, -1, -1):
        if reading.sentence_of[index] != sentence:
            break
        if reading.tokens[index].text.lower() in people:
            return reading.tokens[index].text.lower()
    return ""


def _clause_names(reading: Reading, q: Quantity, people: frozenset[str]) -> list[str]:
    """The different names in a number's clause in order; empty where it is passive, which turns the order round."""
    first, last = q.first, q.last
    while first and reading.tokens[first - 1].text not in _CLAUSE_ENDS:
        first -= 1
    while last < len(reading.tokens) and reading.tokens[last].text not in _CLAUSE_ENDS:
        last += 1
    words = [t.text.lower() for t in reading.tokens[first:last]]
    if any(w in _TURNING or lemma(w) in _TURNING for w in words):
        return []
    return list(dict.fromkeys(w for w in words if w in people))


def _units_differ(a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading) -> tuple[str, ...]:
    """Units of a number whose counterparts all have another unit of measure."""
    for q in a:
        unit = _measured([q], stored)
        others = [_measured([p], query) for p in b if _group(p) == _group(q)]
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
            if token.text != "-":
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
