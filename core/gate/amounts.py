"""What an amount is of, whether it comes, goes or is denied: `3 cups of flour`, `ate 2`. Compares two readings."""

from __future__ import annotations

from collections.abc import Callable

from core.gate.alike import KIN, alike, opposite
from core.gate.lexicon import lemma, stop_words, unit_words
from core.gate.people import counterparts
from core.gate.phrases import ENDS, Words
from core.gate.quantities import Quantity
from core.gate.reading import Reading

_GOING = frozenset("eat lose use break remove discard burn consume throw drop".split())  # noqa: SIM905
_COMING = frozenset("add find gain gather collect bake plant earn".split())  # noqa: SIM905
_SHARING = frozenset("share divide split distribute equally evenly equal even same".split())  # noqa: SIM905
_VESSELS = frozenset("cup glass bottle bag jar bowl can spoon spoonful tablespoon teaspoon batch".split())  # noqa: SIM905
_REACH = 4
_DENYING = frozenset({"not", "n't", "without", "never", "no", "cannot"})
_DENIED_WITHIN = 5
# One event told from its two ends: no contradiction.
_CONVERSE = frozenset(
    frozenset(pair.split())
    for pair in ("give receive", "send receive", "lend borrow", "buy sell", "purchase sell", "earn pay")
)


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
        mates = [side(other, p) for p in counterparts(other, q)]
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
        mates = [_substance(other, p) for p in counterparts(other, q)]
        if mine in known and mates and all(mate and alike(mine, mate) < KIN for mate in mates):
            return f"{q.value} is of {mine} in one text, of {mates[0]} in the other"
    return ""


def _deeds(reading: Reading, q: Quantity) -> Words:
    """Base forms of the words before a number in its clause, nearest first."""
    out: list[str] = []
    for token in reversed(reading.tokens[max(0, q.first - _DENIED_WITHIN) : q.first]):
        if token.text in ENDS:
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
        mates = [_deeds(other, p) for p in counterparts(other, q)]
        found = [
            next(
                (
                    (x, y)
                    for x in sorted(mine - m)
                    for y in sorted(m - mine)
                    if opposite(x, y) and frozenset((x, y)) not in _CONVERSE
                ),
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
        low = [t.text.lower() for t in reading.tokens]
        waits = {k for k in near if low[k + 1 : k + 2] == ["wait"] or low[k + 1 : k + 3] == ["not", "wait"]}
        return any(low[k] in _DENYING and k not in waits for k in near if reading.sentence_of[k] == sentence)

    for q in one.numbers:
        if q.form == "ordinal" or not denied(one, q, q.first - _DENIED_WITHIN, q.first):
            continue
        mates = counterparts(other, q)
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
        mates = counterparts(other, q)
        if not mates or not _every(one, q):
            continue
        after = [lemma(other.tokens[p.last].text) if p.last < len(other.tokens) else "" for p in mates]
        if all(word.isalpha() and word not in unit_words() and word not in stop_words() for word in after):
            return f"every {q.value} in one text only"
    return ""


def _when(reading: Reading, q: Quantity) -> str:
    """`past` for `12 years ago`, `future` for `in 12 years` that will come and `12 years from now`; else empty."""
    low = [t.text.lower() for t in reading.tokens]
    if q.last >= len(low) or lemma(low[q.last]) not in unit_words():
        return ""
    after = low[q.last + 1 : q.last + 3]
    if after[:1] == ["ago"]:
        return "past"
    sentence = reading.sentence_of[q.first]
    coming = any(w == "will" and reading.sentence_of[k] == sentence for k, w in enumerate(low))
    within = q.first and low[q.first - 1] == "in"
    return "future" if after == ["from", "now"] or (within and coming) else ""


def _other_time(one: Reading, other: Reading) -> str:
    found = opposed(one, other, _when)
    return f"{found[0].value} lies in the {found[1]} in one text and in the {found[2]} in the other" if found else ""


AMOUNTS: tuple[Callable[[Reading, Reading], str], ...] = (
    _comes_or_goes,
    _shared,
    _of_another,
    _done_otherwise,
    _denied,
    _paced,
    _other_time,
)
