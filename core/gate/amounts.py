"""What an amount is of and whether it comes or goes: `3 cups of flour`, `ate 2`. Compares two readings."""

from __future__ import annotations

from collections.abc import Callable

from core.gate.alike import KIN, alike
from core.gate.lexicon import lemma, stop_words, unit_words
from core.gate.people import kind_of
from core.gate.quantities import Quantity
from core.gate.reading import Reading

_GOING = frozenset("eat lose use break remove discard burn consume throw drop".split())  # noqa: SIM905
_COMING = frozenset("add find gain gather collect bake plant earn".split())  # noqa: SIM905
_SHARING = frozenset("share divide split distribute equally evenly equal even same".split())  # noqa: SIM905
_VESSELS = frozenset("cup glass bottle bag jar bowl can spoon spoonful tablespoon teaspoon".split())  # noqa: SIM905
_REACH = 4


def _flow(reading: Reading, q: Quantity) -> str:
    """`going` or `coming` by the verb right before a number; else empty."""
    for token in reversed(reading.tokens[max(0, q.first - _REACH) : q.first]):
        base = lemma(token.text)
        if base in _GOING or base in _COMING:
            return "going" if base in _GOING else "coming"
        if token.kind != "word":
            break
    return ""


def opposed(one: Reading, other: Reading, side: Callable[[Reading, Quantity], str]) -> tuple[Quantity, str, str] | None:
    """The first number that has one side here and another at all its counterparts there: (number, here, there)."""
    for q in one.numbers:
        mine = side(one, q)
        mates = [side(other, p) for p in other.numbers if kind_of(p) == kind_of(q)]
        if mine and mates and all(mate and mate != mine for mate in mates):
            return q, mine, mates[0]
    return None


def _comes_or_goes(one: Reading, other: Reading) -> str:
    found = opposed(one, other, _flow)
    return f"{found[0].value} is {found[1]} in one text and {found[2]} in the other" if found else ""


def _shared(one: Reading, other: Reading) -> str:
    """`36 shared equally among 4` and `4 with 36 apiece`."""
    here = {lemma(t.text) for t in one.tokens} & {"equally", "evenly"}
    there = {t.text.lower() for t in other.tokens} | {lemma(t.text) for t in other.tokens}
    return "only one text shares something out" if here and "apiece" in there and not there & _SHARING else ""


def _substance(reading: Reading, q: Quantity) -> str:
    """`flour` in `3 cups of flour`."""
    after = reading.tokens[q.last : q.last + 3]
    if len(after) < 3 or after[1].text.lower() != "of":
        return ""
    if lemma(after[0].text) not in unit_words() and lemma(after[0].text) not in _VESSELS:
        return ""
    name = after[2].text.lower()
    return lemma(name) if after[2].kind == "word" and name not in stop_words() else ""


def _of_another(one: Reading, other: Reading) -> str:
    known = {lemma(t.text) for t in other.tokens if t.kind == "word"}
    for q in one.numbers:
        mine = _substance(one, q)
        mates = [_substance(other, p) for p in other.numbers if kind_of(p) == kind_of(q)]
        if mine in known and mates and all(mate and alike(mine, mate) < KIN for mate in mates):
            return f"{q.value} is of {mine} in one text, of {mates[0]} in the other"
    return ""


AMOUNTS: tuple[Callable[[Reading, Reading], str], ...] = (_comes_or_goes, _shared, _of_another)
