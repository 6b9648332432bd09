"""What is done with the numbers of two word problems: at what rate, by whom to whom, bought or sold, counting what.

Compares two readings; each rule names what contradicts a rewording and stays silent where a text does not say.
"""

from __future__ import annotations

from collections.abc import Callable

from core.gate.alike import KIN, alike
from core.gate.amounts import AMOUNTS, opposed
from core.gate.asked import ASKED
from core.gate.compared import COMPARED
from core.gate.lexicon import classes, lemma, stop_words, unit_words
from core.gate.people import counterparts, is_day, kind_of
from core.gate.quantities import Quantity
from core.gate.reading import Reading
from core.gate.shares import SHARES
from core.gate.verdict import Reason

_TIMES = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
_ADVERBS = {
    "hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year", "annual": "year",
    "annually": "year",
}  # fmt: skip
_SPANS = frozenset("in for over within after of is during than only just about once twice times".split())  # noqa: SIM905
_GIVING = frozenset("give hand lend pass send donate sell loan".split())  # noqa: SIM905
_GETTING = frozenset("receive get borrow take buy accept".split())  # noqa: SIM905
_EXCEPTIONS = frozenset({"except", "exception", "exceptions", "excluding", "besides", "apart"})
_WHOLES = frozenset({"original", "initial", "starting"})
_RESTS = frozenset({"remainder", "remaining", "rest", "reduced"})
_LOWERING = frozenset("reduce reduction lower cheaper cheap sale save saving rebate cut drop coupon".split())  # noqa: SIM905
_POINTING = frozenset({"the", "these", "those", "both", "other", "all"})
_FEW = 4
_REACH = 4


def events_differ(stored: Reading, query: Reading) -> list[Reason]:
    """What contradicts in what is done with the numbers; empty where nothing does."""
    out: list[Reason] = []
    for rule in RULES:
        told = rule(stored, query) or rule(query, stored)
        if told:
            out.append(Reason("events", told))
    return out


def _rates(reading: Reading) -> set[str]:
    found: set[str] = set()
    low = [t.text.lower() for t in reading.tokens]
    for index, word in enumerate(low):
        if word in _ADVERBS:
            found.add(_ADVERBS[word])
        elif index and lemma(word) in _TIMES:
            before = low[index - 1]
            ahead = low[index - 2] if index > 1 else ""
            amount = reading.tokens[max(0, index - 5) : index - 1]
            numbered = any(t.kind == "number" or t.text.lower() in ("many", "much") for t in amount)
            if before in ("per", "each", "every", "/") or (before in ("a", "an") and numbered and ahead not in _SPANS):
                found.add(lemma(word))
    return found


def _rate(one: Reading, other: Reading) -> str:
    rates, others = _rates(one), _rates(other)
    strange = sorted(rates - others)
    return f"only one text says per {strange[0]}" if strange and others else ""


def _new_rate(one: Reading, other: Reading) -> str:
    rates = _rates(one)
    timeless = not any(lemma(t.text) in _TIMES or is_day(t.text) or t.text.lower() in _ADVERBS for t in other.tokens)
    return f"only one text says per {min(rates)}" if rates and timeless else ""


def _trade(reading: Reading, q: Quantity) -> str:
    """`buy` or `sell`, whichever stands nearer before a number in its sentence; else empty."""
    found = ""
    for word in reading.words:
        if word.token < q.first and word.sentence == reading.sentence_of[q.first] and word.load in ("buy", "sell"):
            found = word.load
    return found


def _bought(one: Reading, other: Reading) -> str:
    found = opposed(one, other, _trade)
    return f"{found[0].value} stands with “{found[1]}” in one text and with “{found[2]}” in the other" if found else ""


def _things(reading: Reading, q: Quantity) -> list[str]:
    """Base forms of the content words right after a number."""
    out: list[str] = []
    stop = stop_words()
    for token in reading.tokens[q.last : q.last + _REACH]:
        if token.kind != "word" and token.text != "-":
            break
        small = token.text.lower()
        if small == "'s" and out:
            out.pop()  # the owner is not what is counted
            continue
        if small in stop or small in classes() or small in ("time", "times"):
            break
        if token.kind == "word":
            out.append(lemma(small))
    return out


def _counts(reading: Reading) -> list[Quantity]:
    """The numbers that count something: no prices, no `one`, and none that only points back (`the other two`)."""
    out: list[Quantity] = []
    for q in reading.numbers:
        before = reading.tokens[q.first - 1].text.lower() if q.first else ""
        points = q.in_words and (q.value == 1 or (q.value <= _FEW and before in _POINTING))
        if q.form == "count" and before != "\\$" and not points:
            out.append(q)
    return out


def _counts_another(one: Reading, other: Reading) -> str:
    words = {lemma(t.text) for t in one.tokens if t.kind == "word"}
    known = {lemma(t.text) for t in other.tokens if t.kind == "word"}
    for q in _counts(one):
        mine = _things(one, q)
        mates = [_things(other, p) for p in _counts(other) if kind_of(p) == kind_of(q)]
        if not mine or not mates or mine[0] not in known or mine[0] in unit_words():
            continue
        if all(
            theirs
            and theirs[0] in words
            and theirs[0] not in unit_words()
            and not any(alike(x, y) >= KIN for x in mine for y in theirs)
            for theirs in mates
        ):
            return f"{q.value} counts “{mine[0]}” in one text and “{mates[0][0]}” in the other"
    return ""


def _giver(reading: Reading, people: frozenset[str]) -> set[tuple[str, str]]:
    """(who gives, who gets) of every clause that names both."""
    low = [t.text.lower() for t in reading.tokens]
    found: set[tuple[str, str]] = set()
    for index, word in enumerate(low):
        base = lemma(word)
        if base not in _GIVING and base not in _GETTING:
            continue
        before = [w for w in low[max(0, index - 4) : index] if w in people]
        after = [w for w in low[index : index + 9] if w in people]
        if before and low[index + 1 : index + 2] in (["him"], ["her"]) and len(people) == 2:
            after = [min(people - {before[-1]})]  # of two people the other one
        if not before or not after or before[-1] == after[0] or set(low[index - 2 : index]) & {"is", "was", "were"}:
            continue
        if base in _GETTING and "from" in low[index : index + 9]:
            found.add((after[0], before[-1]))
        elif base in _GIVING and "from" not in low[index : index + 9]:
            found.add((before[-1], after[0]))
    return found


def _given(one: Reading, other: Reading) -> str:
    people = one.names & other.names
    here, there = _giver(one, people), _giver(other, people)
    for giver, getter in here - there:
        if (getter, giver) in there - here:
            return f"{giver.capitalize()} gives in one text, {getter.capitalize()} in the other"
    return ""


def _excepted(one: Reading, other: Reading) -> str:
    def has(reading: Reading) -> bool:
        low = [t.text.lower() for t in reading.tokens]
        return bool(_EXCEPTIONS & set(low)) or any(
            word == "but" and (low[k - 1] in ("all", "none", "every") or low[k + 1 : k + 2] in (["one"], ["two"]))
            for k, word in enumerate(low)
            if k
        )

    return "only one text makes an exception" if has(one) and not has(other) else ""


def _either(one: Reading, other: Reading) -> str:
    def ors(reading: Reading) -> bool:
        return any(t.text.lower() in ("or", "either") for t in reading.tokens)

    return "only one text says or" if ors(one) and not ors(other) else ""


def _discounted(one: Reading, other: Reading) -> str:
    """`$7 off` and `10% off` where the other text lowers nothing."""
    off = any([t.text.lower() for t in one.tokens[q.last : q.last + 1]] == ["off"] for q in one.numbers)
    lowered = any(w.load in ("discount", "less", "decrease") or lemma(w.raw) in _LOWERING for w in other.words)
    return "only one text takes something off a price" if off and not lowered else ""


def _contained(one: Reading, other: Reading) -> str:
    """`bags of 8` and `8 bags`."""
    for q in one.numbers:
        if q.first < 2 or one.tokens[q.first - 1].text.lower() != "of":
            continue
        holder = lemma(one.tokens[q.first - 2].text)
        mates = [_things(other, p)[:1] for p in counterparts(other, q)]
        if mates and all(mate == [holder] for mate in mates) and _things(one, q)[:1] != [holder]:
            return f"{q.value} are in one “{holder}” here and count “{holder}” there"
    return ""


def _singled(reading: Reading, q: Quantity) -> set[str]:
    """What a price is for: `each bag for $3`, `$3 per bag`."""
    low = [t.text.lower() for t in reading.tokens]
    found: set[str] = set()
    sentence = reading.sentence_of[q.first]
    for index in [*range(max(0, q.first - 7), q.first), *range(q.last, min(q.last + 3, len(low)))]:
        follows = low[index + 1] if index + 1 < len(low) else ""
        single = low[index] in ("each", "per", "every", "one") and reading.sentence_of[index] == sentence
        if single and follows.isalpha() and follows not in stop_words():
            found |= {
                lemma(word)
                for word in low[index + 1 : index + 3]
                if word.isalpha() and word not in stop_words() and lemma(word) not in _TIMES
            }
    return found


def _priced(one: Reading, other: Reading) -> str:
    words = [{lemma(t.text) for t in r.tokens if t.kind == "word"} for r in (one, other)]
    for q in one.numbers:
        if not q.first or one.tokens[q.first - 1].text != "\\$":
            continue
        mine = _singled(one, q)
        mates = [_singled(other, p) for p in counterparts(other, q)]
        if mine and mates and all(m and not m & mine and m & words[0] for m in mates) and mine & words[1]:
            return f"{q.value} is for each {min(mine)} in one text, for each {min(mates[0])} in the other"
    return ""


def _lumped(one: Reading, other: Reading) -> str:
    """`$20 altogether`, `a total of $20` and `$20 each`."""

    def after(reading: Reading, q: Quantity) -> set[str]:
        return {w.load for w in reading.words if q.last <= w.token < q.last + 3}

    def in_all(reading: Reading, q: Quantity) -> bool:
        before = [t.text.lower() for t in reading.tokens[max(0, q.first - 3) : q.first] if t.text != "\\$"]
        sentence = " ".join(
            t.text.lower()
            for t, n in zip(reading.tokens, reading.sentence_of, strict=True)
            if n == reading.sentence_of[q.first]
        )
        between = "between them" in sentence or "among them" in sentence
        return between or "total" in after(reading, q) or before[-2:] == ["total", "of"]

    def singly(reading: Reading, q: Quantity) -> bool:
        sentence = reading.sentence_of[q.first]
        near = [w.load for w in reading.words if w.sentence == sentence and abs(w.token - q.first) <= _REACH + 1]
        return "each" in near and "total" not in near

    for q in one.numbers:
        mates = counterparts(other, q)
        if in_all(one, q) and not singly(one, q) and mates and all(singly(other, p) for p in mates):
            return f"{q.value} is for all in one text, for each in the other"
    return ""


def _of_what(one: Reading, other: Reading) -> str:
    here = {t.text.lower() for t in one.tokens}
    there = {t.text.lower() for t in other.tokens}
    whole = here & _WHOLES and not there & _WHOLES
    return "a share of the whole here, of the rest there" if whole and there & _RESTS and not here & _RESTS else ""


RULES: tuple[Callable[[Reading, Reading], str], ...] = (
    *ASKED,
    *AMOUNTS,
    *COMPARED,
    *SHARES,
    _rate,
    _new_rate,
    _bought,
    _counts_another,
    _given,
    _excepted,
    _either,
    _discounted,
    _of_what,
    _contained,
    _priced,
    _lumped,
)
