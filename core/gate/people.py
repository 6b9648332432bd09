"""People of two problems: who is named, who owns which number, and in which order they come. Decides nothing."""

from __future__ import annotations

from fractions import Fraction

from core.gate.lexicon import lemma
from core.gate.phrases import ENDS
from core.gate.quantities import Quantity
from core.gate.reading import Reading

DAYS = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august "  # noqa: SIM905
    "september october november december".split()
)
_PLACES = frozenset({"in", "on", "at", "of", "the", "-", "through", "across", "around", "near", "into"})
_TURNING = frozenset({"by", "from", "receive", "get", "together", "both", "each"})


def kind_of(q: Quantity) -> tuple[Fraction, str]:
    """Numbers match within a group: `twice` never stands for a count of 2, `50%` may stand for a half."""
    return q.value, "times" if q.form == "times" else "share" if q.form in ("part", "percent") else "count"


def counterparts(other: Reading, q: Quantity) -> list[Quantity]:
    """The numbers of another text that may answer to a number, in order."""
    return [p for p in other.numbers if kind_of(p) == kind_of(q)]


def actor_differs(a: list[Quantity], b: list[Quantity], stored: Reading, query: Reading) -> str:
    """Two people whose numbers are exchanged, or who change places round one number, in words; else empty."""
    people = frozenset(n for n in stored.names & query.names if _acts(stored, n) or _acts(query, n))
    if len(people) < 2:
        return ""
    owners_a = {kind_of(q): _owner(stored, q, people) for q in a}
    owners_b = {kind_of(q): _owner(query, q, people) for q in b}
    for group, own in owners_a.items():
        other = owners_b.get(group, "")
        if not own or not other or own == other:
            continue
        if any(owners_a[g] == other and owners_b.get(g) == own for g in owners_a if g != group):
            return f"{own.capitalize()} or {other.capitalize()} for {group[0]}"
    for q in a:
        pair = _clause_names(stored, q, people)
        for mate in (p for p in b if kind_of(p) == kind_of(q)):
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
    while first and reading.tokens[first - 1].text not in ENDS:
        first -= 1
    while last < len(reading.tokens) and reading.tokens[last].text not in ENDS:
        last += 1
    words = [t.text.lower() for t in reading.tokens[first:last]]
    if any(w in _TURNING or lemma(w) in _TURNING for w in words):
        return []
    return list(dict.fromkeys(w for w in words if w in people))


def is_day(name: str) -> bool:
    """Whether a name is a day or a month, `Mondays` too."""
    small = name.lower()
    return small in DAYS or small.removesuffix("s") in DAYS


def acting(reading: Reading, names: set[str]) -> bool:
    """Whether one of the names stands for somebody who does or owns something."""
    for index, token in enumerate(reading.tokens):
        if token.text.lower() in names and not is_day(token.text) and not token.text.rstrip("s").isupper():
            after = reading.tokens[index + 1].text.lower() if index + 1 < len(reading.tokens) else ""
            before = reading.tokens[index - 1].text.lower() if index else ""
            if before not in _PLACES or after == "'s":
                return True
    return False


def introduced_in_another_order(stored: Reading, query: Reading) -> str:
    """Two names that both texts have, first spoken of in another order; else empty."""
    shared = stored.names & query.names
    days = {n for n in shared if is_day(n)}
    people = {n for n in shared - days if acting(stored, {n}) and acting(query, {n})}
    for names in (people, days):
        first, second = (
            list(dict.fromkeys(t.text.lower() for t in r.tokens if t.text.lower() in names)) for r in (stored, query)
        )
        for one, other in zip(first, second, strict=True):
            if one != other:
                return f"{one.capitalize()} and {other.capitalize()}"
    return ""


def asked_names(reading: Reading, shared: frozenset[str]) -> set[str]:
    first, last = reading.question
    asked = reading.tokens[first:last]
    return {t.text.lower() for t in asked if t.kind == "word" and t.text.lower() in shared and not is_day(t.text)}


def strange_names(stored: Reading, query: Reading) -> tuple[set[str], set[str]]:
    """Names of each text that the other does not mention at all, its plural or singular included."""
    words_a, words_b = _forms(stored), _forms(query)
    return (
        {n for n in stored.names if not words_b & {n, _single(n), _stem(n)}},
        {n for n in query.names if not words_a & {n, _single(n), _stem(n)}},
    )


def _forms(reading: Reading) -> set[str]:
    """The words of a text and their stems: `Spaying` at a start is no name where `spayed` stands too."""
    words = {t.text.lower() for t in reading.tokens if t.kind == "word"}
    return words | {_stem(word) for word in words if word.endswith(("ing", "ed"))}


def _stem(word: str) -> str:
    return word.removesuffix("ing") if word.endswith("ing") else word.removesuffix("ed")


def _single(name: str) -> str:
    return name[:-1] if name.endswith("s") else name + "s"
