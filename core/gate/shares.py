"""What shares and ratios are of: `a third of the rest`, `cats to dogs is 1:3`. Compares two readings."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.gate.lexicon import lemma
from core.gate.people import counterparts
from core.gate.phrases import ENDS, REACH, Words, differ, span, things_in
from core.gate.quantities import Quantity
from core.gate.reading import Reading

_REST = frozenset("remain remaining remainder rest left leftover still".split())  # noqa: SIM905


def _of_rest(reading: Reading, q: Quantity) -> bool:
    """`a third of what is left`, `of those remaining, a third`."""
    sentence = reading.sentence_of[q.first]
    after = span(reading, q.last, sentence, REACH)
    before = [t.text.lower() for t in reading.tokens[max(0, q.first - REACH) : q.first]]
    if after[:1] == ["of"]:
        return _rests(after[: next((k for k, word in enumerate(after) if word in ENDS), len(after))])
    if before[-1:] == [","] and "of" in before:
        return _rests(before[len(before) - before[::-1].index("of") :])
    return False


def _rests(words: Sequence[str]) -> bool:
    return any(word in _REST or lemma(word) in _REST for word in words)


def _speaks_of_rest(reading: Reading, q: Quantity) -> bool:
    sentence = reading.sentence_of[q.first]
    told = [t.text.lower() for t, n in zip(reading.tokens, reading.sentence_of, strict=True) if n == sentence]
    return _rests(told) or not {"other", "others", "change"}.isdisjoint(told)


def _share_of(one: Reading, other: Reading) -> str:
    """`a third of the rest` and `a third of all`."""
    for q in one.numbers:
        if q.form not in ("part", "percent") or not _of_rest(one, q):
            continue
        mates = counterparts(other, q)
        if mates and not any(_speaks_of_rest(other, p) for p in mates):
            return f"{q.value} is of the rest in one text only"
    return ""


def _grown(one: Reading, other: Reading) -> str:
    """`increased by 150%` and `150% of`, `fell by 30%` and `fell to 30%`."""

    def before(reading: Reading, q: Quantity) -> str:
        return reading.tokens[q.first - 1].text.lower() if q.first else ""

    def of(reading: Reading, q: Quantity) -> bool:
        return [t.text.lower() for t in reading.tokens[q.last : q.last + 1]] == ["of"]

    for q in one.numbers:
        if q.form not in ("percent", "part") or before(one, q) != "by":
            continue
        mates = counterparts(other, q)
        grows = any(w.load == "increase" and w.sentence == one.sentence_of[q.first] for w in one.words)
        if mates and all(
            before(other, p) == "to" or (grows and before(other, p) != "by" and of(other, p)) for p in mates
        ):
            return f"by {q.value} in one text, to it or of it in the other"
    return ""


def _parts(reading: Reading, q: Quantity) -> Words:
    """What a share is told to be: `blue` in `half of the hats are blue`; else empty."""
    after = span(reading, q.last, reading.sentence_of[q.first], REACH + 2)
    clause = after[: next((k for k, word in enumerate(after) if word in ENDS or word == "and"), len(after))]
    verb = next((k for k, word in enumerate(clause) if word in ("is", "are", "was", "were")), -1)
    return things_in(clause[verb + 1 :]) if verb >= 0 else frozenset()


def _off(one: Reading, other: Reading) -> str:
    """`40% off its price` and `for 40% of its price`."""

    def follows(reading: Reading, q: Quantity) -> str:
        return reading.tokens[q.last].text.lower() if q.last < len(reading.tokens) else ""

    for q in one.numbers:
        if q.form != "percent" or follows(one, q) != "off":
            continue
        mates = counterparts(other, q)
        if mates and all(follows(other, p) == "of" and other.tokens[p.first - 1].text.lower() == "for" for p in mates):
            return f"{q.value} is taken off in one text and what is paid in the other"
    return ""


def _another_part(one: Reading, other: Reading) -> str:
    """`3/5 of the rest are blue` and `3/5 of the rest are white`."""
    known = [{lemma(t.text) for t in r.tokens if t.kind == "word"} for r in (one, other)]
    for q in one.numbers:
        if q.form not in ("part", "percent"):
            continue
        mine = _parts(one, q)
        mates = [_parts(other, p) for p in counterparts(other, q)]
        if mine and mine <= known[1] and mates and all(m <= known[0] and differ(mine, m) for m in mates):
            return f"{q.value} are “{min(mine)}” in one text and “{min(mates[0])}” in the other"
    return ""


def _in_ratio(reading: Reading) -> list[tuple[Words, Words]]:
    """What stands on either side of `to` or `and` in a sentence that tells a ratio."""
    told = {w.sentence for w in reading.words if w.load == "ratio"}
    out: list[tuple[Words, Words]] = []
    for index, token in enumerate(reading.tokens):
        if token.text.lower() in ("to", "and") and reading.sentence_of[index] in told:
            low = [t.text.lower() for t in reading.tokens[max(0, index - 3) : index]]
            before, after = (
                things_in(low[::-1]),
                things_in([t.text.lower() for t in reading.tokens[index + 1 : index + 4]]),
            )
            if before - after and after - before:
                out.append((before - after, after - before))
    return out


def _ratio_turned(one: Reading, other: Reading) -> str:
    """`the ratio of cats to dogs is 1:3` and `dogs and cats in the ratio 1:3`."""
    for x, y in _in_ratio(one):
        if any(x & b and y & a for a, b in _in_ratio(other)):
            return f"the ratio is of {min(x)} to {min(y)} in one text, the other way round in the other"
    return ""


SHARES: tuple[Callable[[Reading, Reading], str], ...] = (_share_of, _grown, _off, _another_part, _ratio_turned)
