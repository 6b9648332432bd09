"""What a number is compared to and what a share is of: `twice as many as sheep`, `a third of the rest`.

Compares two readings; each rule stays silent where a text does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from core.gate.alike import KIN, alike, opposite
from core.gate.lexicon import lemma, stop_words, unit_words
from core.gate.people import kind_of
from core.gate.quantities import Quantity
from core.gate.reading import Reading

_REACH = 9
_ENDS = frozenset({",", ".", "?", "!", ";", ":", "(", ")", "—"})
_REST = frozenset("remain remaining remainder rest left leftover still".split())  # noqa: SIM905
_COUNTS = frozenset({"number", "amount", "quantity", "count", "sum", "total", "size"})
_NTH = frozenset("first second third fourth fifth last previous former latter".split())  # noqa: SIM905
_SOMEBODY = frozenset("he she they it we i you who what".split())  # noqa: SIM905
_DENYING = frozenset({"not", "n't", "without", "never", "no", "cannot"})
_DENIED_WITHIN = 5
# One event told from its two ends: no contradiction.
_CONVERSE = frozenset(
    frozenset(pair.split())
    for pair in ("give receive", "send receive", "lend borrow", "buy sell", "purchase sell", "earn pay")
)
Words = frozenset[str]


def _span(reading: Reading, first: int, sentence: int, reach: int) -> list[str]:
    """Words and signs in small letters from `first` on, at most `reach`, to the sentence's end."""
    out: list[str] = []
    for index in range(first, min(first + reach, len(reading.tokens))):
        if reading.sentence_of[index] != sentence:
            break
        out.append(reading.tokens[index].text.lower())
    return out


def _comparand(reading: Reading, q: Quantity) -> Words:
    """Base forms of what a number is compared to: `sheep` in `twice as many goats as sheep`; else empty."""
    after = _span(reading, q.last, reading.sentence_of[q.first], _REACH)
    start = -1
    for index, word in enumerate(after):
        if word == "than" and after[index + 1 : index + 2] == ["as"]:
            continue  # `5 more than as many pages as Ann read`
        if word == "than" or (word == "as" and index and "as" in after[:index]):
            start = index + 1
        elif word == "compared":
            start = index + 2
        elif q.form == "times" and index == 2 and word == "of" and after[0] in ("the", "that"):
            start = index + 1 if after[1] not in _COUNTS else -1
        if start >= 0:
            break
        if word in _ENDS:
            return frozenset()
    return _things(after[start:]) if start >= 0 else frozenset()


def _things(words: Sequence[str]) -> Words:
    """The first content words, to the first function word after one."""
    out: list[str] = []
    stop, units = stop_words(), unit_words()
    for word in words[:6]:
        if word in _ENDS or (word in _SOMEBODY and not out):
            break
        if word in stop or word == "each" or word in _COUNTS or not word.isalpha():
            if out and word != "'s":
                break
            continue
        base = lemma(word)
        if base not in units and base not in _NTH:
            out.append(base)
    return frozenset(out)


def _related(a: Words, b: Words) -> bool:
    return any(alike(x, y) >= KIN for x in a for y in b)


def _compared_to(one: Reading, other: Reading) -> str:
    known = [{lemma(t.text) for t in r.tokens if t.kind == "word"} for r in (one, other)]
    for group in dict.fromkeys(kind_of(q) for q in one.numbers):
        here, there = ([c for q in r.numbers if kind_of(q) == group and (c := _comparand(r, q))] for r in (one, other))
        if not here or len(here) != len(there):
            continue
        for mine in here:
            mate = next((t for t in there if _related(mine, t)), None)
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


def _of_rest(reading: Reading, q: Quantity) -> bool:
    """`a third of what is left`, `of those remaining, a third`."""
    sentence = reading.sentence_of[q.first]
    after = _span(reading, q.last, sentence, _REACH)
    before = [t.text.lower() for t in reading.tokens[max(0, q.first - _REACH) : q.first]]
    if after[:1] == ["of"]:
        return _rests(after[: next((k for k, word in enumerate(after) if word in _ENDS), len(after))])
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
        mates = [p for p in other.numbers if kind_of(p) == kind_of(q)]
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
        mates = [p for p in other.numbers if kind_of(p) == kind_of(q)]
        grows = any(w.load == "increase" and w.sentence == one.sentence_of[q.first] for w in one.words)
        if mates and all(
            before(other, p) == "to" or (grows and before(other, p) != "by" and of(other, p)) for p in mates
        ):
            return f"by {q.value} in one text, to it or of it in the other"
    return ""


def _deeds(reading: Reading, q: Quantity) -> Words:
    """Base forms of the words before a number in its clause, nearest first."""
    out: list[str] = []
    for token in reversed(reading.tokens[max(0, q.first - _DENIED_WITHIN) : q.first]):
        if token.text in _ENDS:
            break
        if token.kind == "word":
            out.append(lemma(token.text))
    return frozenset(out)


def _done_otherwise(one: Reading, other: Reading) -> str:
    """`added 10 miles` and `took 10 miles off`."""
    for q in one.numbers:
        if q.form == "ordinal":
            continue
        mine = _deeds(one, q)
        mates = [_deeds(other, p) for p in other.numbers if kind_of(p) == kind_of(q)]
        found = [
            next(
                ((x, y) for x in mine - m for y in m - mine if opposite(x, y) and frozenset((x, y)) not in _CONVERSE),
                None,
            )
            for m in mates
        ]
        if found and all(found) and found[0] is not None:
            return f"{q.value} stands with “{found[0][0]}” in one text and with “{found[0][1]}” in the other"
    return ""


def _denied(one: Reading, other: Reading) -> str:
    """`without the $120 fine` and `the $120 fine`."""

    def denied(reading: Reading, q: Quantity, first: int, last: int) -> bool:
        sentence = reading.sentence_of[q.first]
        near = range(max(0, first), min(last, len(reading.tokens)))
        return any(reading.tokens[k].text.lower() in _DENYING for k in near if reading.sentence_of[k] == sentence)

    for q in one.numbers:
        if q.form == "ordinal" or not denied(one, q, q.first - _DENIED_WITHIN, q.first):
            continue
        mates = [p for p in other.numbers if kind_of(p) == kind_of(q)]
        if mates and not any(denied(other, p, 0, len(other.tokens)) for p in mates):
            return f"{q.value} is denied in one text only"
    return ""


def _every(reading: Reading, q: Quantity) -> bool:
    before = reading.tokens[q.first - 1].text.lower() if q.first else ""
    after = lemma(reading.tokens[q.last].text) if q.last < len(reading.tokens) else ""
    return before in ("every", "each", "per") and after in unit_words()


def _paced(one: Reading, other: Reading) -> str:
    """`one every 2 minutes` and `2 a minute`."""
    for q in one.numbers:
        mates = [p for p in other.numbers if kind_of(p) == kind_of(q)]
        if not mates or not _every(one, q):
            continue
        after = [lemma(other.tokens[p.last].text) if p.last < len(other.tokens) else "" for p in mates]
        if all(word.isalpha() and word not in unit_words() and word not in stop_words() for word in after):
            return f"every {q.value} in one text only"
    return ""


def _served(one: Reading, other: Reading) -> str:
    """`5 for a dog and 3 for a cat` and `a cat eats 5 and a dog eats 3`."""
    found: dict[Fraction, str] = {}
    for q in one.numbers:
        after = _span(one, q.last, one.sentence_of[q.first], _REACH)
        clause = after[: next((k for k, word in enumerate(after) if word in _ENDS or word.isdecimal()), len(after))]
        if "for" in clause and (things := _things(clause[clause.index("for") + 1 :])):
            found.setdefault(q.value, min(things))
    for x, one_of in found.items():
        for y, another in found.items():
            if x == y or one_of == another:
                continue
            cells = [_cell(other, value) for value in (x, y)]
            if another in cells[0] and one_of not in cells[0] and one_of in cells[1] and another not in cells[1]:
                return f"{x} is for “{one_of}” in one text, for “{another}” in the other"
    return ""


def _cell(reading: Reading, value: Fraction) -> set[str]:
    """Base forms between the number before and the one with this value, in its sentence."""
    for index, q in enumerate(reading.numbers):
        if q.value == value:
            start = reading.numbers[index - 1].last if index else 0
            sentence = reading.sentence_of[q.first]
            return {lemma(reading.tokens[k].text) for k in range(start, q.first) if reading.sentence_of[k] == sentence}
    return set()


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


COMPARED: tuple[Callable[[Reading, Reading], str], ...] = (
    _compared_to,
    _compared_or_told,
    _share_of,
    _grown,
    _done_otherwise,
    _denied,
    _paced,
    _served,
    _predicated,
)
