"""What a number is compared to, and of whom something is said: `twice as many as sheep`, `if Kim was right`.

Compares two readings; each rule stays silent where a text does not say.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction

from core.gate.lexicon import lemma, stop_words
from core.gate.people import is_day, kind_of
from core.gate.phrases import COUNTS, ENDS, PLACES, REACH, Words, differ, related, span, things_in
from core.gate.quantities import Quantity
from core.gate.reading import Reading


def _comparand(reading: Reading, q: Quantity) -> Words:
    """Base forms of what a number is compared to: `sheep` in `twice as many goats as sheep`; else empty."""
    after = span(reading, q.last, reading.sentence_of[q.first], REACH)
    start = -1
    for index, word in enumerate(after):
        if word == "than" and after[index + 1 : index + 2] == ["as"]:
            continue  # `5 more than as many pages as Ann read`
        if word == "than" or (word == "as" and index and "as" in after[:index]):
            start = index + 1
        elif word == "compared":
            start = index + 2
        elif q.form == "times" and word == "of" and after[:index] == ["that"]:
            start = index + 1
        elif q.form == "times" and word == "of" and index == 2 and after[0] == "the":
            start = index + 1 if after[1] not in COUNTS else -1
        if start >= 0:
            break
        if word in ENDS:
            after = after[:index]
            break
    # `twice the number that he had on Monday`
    days = frozenset(word for word in after if q.form == "times" and is_day(word))
    return (things_in(after[start:]) if start >= 0 else days) or days


def _directions(reading: Reading, group: tuple[Fraction, str]) -> Counter[str]:
    """How often a number of the group is so much more and so much less than something."""
    ends = {q.last + k for q in reading.numbers if kind_of(q) == group for k in range(3)}
    return Counter(w.load for w in reading.words if w.token in ends and w.load in ("more", "less"))


def _sort(words: Words) -> str:
    return "place" if words <= PLACES else "day" if all(map(is_day, words)) else "thing"


def _compared_to(one: Reading, other: Reading) -> str:
    known = [{lemma(t.text) for t in r.tokens if t.kind == "word"} for r in (one, other)]
    for group in dict.fromkeys(kind_of(q) for q in one.numbers):
        here, there = ([c for q in r.numbers if kind_of(q) == group and (c := _comparand(r, q))] for r in (one, other))
        if not here or Counter(map(_sort, here)) != Counter(map(_sort, there)):
            continue  # `the downloads in the first month` and `the first` may be one thing
        if _directions(one, group) != _directions(other, group):
            continue  # `Ann is 2 taller than Ben` and `Ben is 2 shorter than Ann`
        for mine in here:
            mate = next((t for t in there if related(mine, t) and not differ(mine, t)), None)
            if mate is not None:
                there.remove(mate)
            elif mine <= known[1] and there and all(t <= known[0] for t in there):
                return f"{group[0]} is compared to “{min(mine)}” in one text, to “{min(there[0])}” in the other"
    return ""


def _compared_or_told(one: Reading, other: Reading) -> str:
    """`twice as many as sheep` and `twice as many sheep`."""

    def follows(reading: Reading, q: Quantity) -> list[str]:
        return [lemma(t.text) for t in reading.tokens[q.last : q.last + 4]]

    for q in one.numbers:
        mine = follows(one, q)
        if q.form != "times" or len(mine) < 4 or mine[0] != "as" or mine[2] != "as":
            continue
        mates = [p for p in other.numbers if kind_of(p) == kind_of(q) and not _comparand(other, p)]
        if any(f[:1] == ["as"] and f[2:3] == mine[3:] for p in mates if (f := follows(other, p))):
            return f"the {mine[3]} are compared in one text, compared to in the other"
    return ""


def _predicated(one: Reading, other: Reading) -> str:
    """`if Kelly was right` and `if Ann was right`."""

    def said(reading: Reading) -> dict[str, str]:
        low = [t.text.lower() for t in reading.tokens]
        counted = {k for q in reading.numbers for k in range(q.first, q.last)}
        return {
            low[k + 2]: low[k]
            for k in range(len(low) - 2)
            if k + 2 not in counted
            and low[k] in reading.names
            and low[k + 1] in ("is", "was", "were")
            and low[k + 2].isalpha()
        }

    here, there = said(one), said(other)
    for word in here.keys() & there.keys() - stop_words():
        if here[word] != there[word] and {here[word], there[word]} <= one.names & other.names:
            return f"{here[word].capitalize()} is {word} in one text, {there[word].capitalize()} in the other"
    return ""


COMPARED: tuple[Callable[[Reading, Reading], str], ...] = (_compared_to, _compared_or_told, _predicated)
