"""Whether one word problem is another in other words: measures, and the contradictions that rule it out.

Only for running text: a problem with formulas is never accepted by these measures. Decides nothing.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from core.gate.alike import alike
from core.gate.events import events_differ
from core.gate.lexicon import closed_sets, lemma, stop_words, unit_words
from core.gate.measures import measures, orphan
from core.gate.people import acting, asked_names, introduced_in_another_order, strange_names
from core.gate.quantities import Quantity
from core.gate.reading import Reading, Word
from core.gate.roles import roles
from core.gate.target import question_differs, same_target, target
from core.gate.verdict import Reason

# Classes whose coming or going changes the answer however the rest is worded.
_HARD = frozenset(
    "at_least at_most maximum minimum negation lose borrow tax reverse probability replacement "  # noqa: SIM905
    "consecutive even odd ratio round form alternate less".split()
)
_ASKED_OPERATIONS = frozenset(
    {"left", "more", "less", "average", "ratio", "difference", "product", "quotient", "probability"}
)
# In the question these decide what is asked.
_ASKED = _ASKED_OPERATIONS | {
    "at_least",
    "at_most",
    "maximum",
    "minimum",
    "negation",
    "perimeter",
    "area",
    "volume",
    "percent",
}
_POLES = (
    ("more", "less"), ("first", "last"), ("before", "after"), ("maximum", "minimum"), ("at_least", "at_most"),
    ("buy", "sell"), ("increase", "decrease"), ("discount", "tax"), ("profit", "lose"), ("total", "average"),
    ("total", "difference"), ("perimeter", "area"), ("area", "volume"),
)  # fmt: skip
_CURRENCIES = {
    "\\$": "dollar", "dollar": "dollar", "cent": "dollar", "¢": "dollar", "€": "euro", "euro": "euro", "£": "sterling",
    "¥": "yen", "yen": "yen", "₹": "rupee", "rupee": "rupee",
}  # fmt: skip
_OPERATORS = frozenset("+ = × ÷ * / < > ≤ ≥ ≠ ± ^{ _{ ! ~- √".split())  # noqa: SIM905
_SHORTEST = 4
_NEAR = 6
_AMOUNTS = frozenset({"amount", "number", "balance", "quantity", "total", "money", "time"})
# Two ways to ask for one thing.
_ASKED_ALIKE = (frozenset({"more", "difference"}), frozenset({"less", "difference"}))


class Rewording(NamedTuple):
    """`contradictions`: what rules a restatement out, in words. `features`: measures in the order of the weights."""

    contradictions: tuple[Reason, ...]
    features: dict[str, float]


def reword(stored: Reading, query: Reading, verbatim: float) -> Rewording:
    """Compares two readings; `verbatim` is the share of units in common in order. Pure."""
    r = roles(stored, query)
    against: list[Reason] = []
    load_a = {w.load for w in stored.words if w.load}
    load_b = {w.load for w in query.words if w.load}
    asked_a, asked_b = _asked(stored), _asked(query)
    if r.missing or r.extra:
        told = [f"only the stored problem has {', '.join(r.missing)}"] if r.missing else []
        told += [f"only the query has {', '.join(r.extra)}"] if r.extra else []
        against.append(Reason("numbers", "the numbers differ: " + "; ".join(told)))
    if not stored.numbers or min(len(stored.words), len(query.words)) < _SHORTEST:
        against.append(Reason("short", "too little text to tell a rewording from another problem"))
    for one, other, side in ((stored, query, "stored problem"), (query, stored, "query")):
        if clause := orphan(one, other):
            against.append(Reason("clause", f"only the {side} says: “{clause}”"))
    signs_a, signs_b = _signs(stored), _signs(query)
    if signs_a != signs_b:
        differing = sorted(((signs_a - signs_b) + (signs_b - signs_a)).keys())
        against.append(Reason("operator", f"the signs differ: {' '.join(differing)}"))
    if r.reordered:
        against.append(Reason("order", f"the numbers come in another order ({r.reordered}), so their roles may differ"))
    if r.strange_units:
        against.append(Reason("unit", f"only one text measures in: {', '.join(r.strange_units)}"))
    against.extend(_exchanged(stored, query))
    flipped = _flipped(stored, query)
    if flipped:
        against.append(Reason("flip", f"turned round: {flipped}"))
    strange_a, strange_b = strange_names(stored, query)
    if (strange_a and strange_b) or acting(stored, strange_a) or acting(query, strange_b):
        names = " and ".join(_list(names) or "none" for names in (strange_a, strange_b))
        against.append(Reason("names", f"the names differ: {names}"))
    asked_about = [asked_names(reading, stored.names & query.names) for reading in (stored, query)]
    if all(asked_about) and asked_about[0] != asked_about[1]:
        against.append(
            Reason("target", f"one question is about {_list(asked_about[0])}, one about {_list(asked_about[1])}")
        )
    hard = sorted((load_a ^ load_b) & _HARD)
    if not hard and _count(stored, "negation") != _count(query, "negation"):
        hard = ["negation"]
    if hard:
        against.append(Reason("qualifier", f"only one text speaks of: {', '.join(hard)}"))
    asked = (asked_a ^ asked_b) & _ASKED
    # a word may move from the question to the body, but not one that names the operation asked for
    asked = {name for name in asked if name not in (load_a & load_b) or name in _ASKED_OPERATIONS}
    if asked and asked not in _ASKED_ALIKE and not (asked == {"left"} and any(map(_asks_for_now, (stored, query)))):
        against.append(Reason("target", f"only one question speaks of: {', '.join(sorted(asked))}"))
    if moved := introduced_in_another_order(stored, query):
        against.append(Reason("roles", f"{moved} come in another order"))
    for one, other in ((stored, query), (query, stored)):
        if _count(one, "each") > _count(other, "each") and _alls(other) > _alls(one):
            against.append(Reason("qualifier", "one text says each, the other all"))
    if spread := _distribution(stored, query) or _distribution(query, stored):
        against.append(Reason("qualifier", f"one text says each, the other all, for {spread}"))
    singled = [_singles_out(reading) for reading in (stored, query)]
    if singled[0] != singled[1] and "total" in (asked_a ^ asked_b) and ("total" in asked_b) == singled[0]:
        against.append(Reason("target", "one question asks for each, the other for the total"))
    against.extend(question_differs(stored, query))
    against.extend(events_differ(stored, query))
    if r.actors:
        against.append(Reason("roles", f"a number belongs to another: {r.actors}"))
    target_a, target_b = target(stored), target(query)
    aim = same_target(target_a, target_b)
    if aim == 0.0:
        against.append(Reason("target", "the questions ask for different things"))
    features = measures(stored, query, r, aim)
    features["strange"] = float(min(2, len(strange_a) + len(strange_b)))
    features["verbatim"] = verbatim
    features["soft"] = float(len((load_a ^ load_b) - _HARD - {"each", "total", "only"}))
    features["asked"] = float(len(asked_a ^ asked_b))
    return Rewording(tuple(against), features)


def _exchanged(stored: Reading, query: Reading) -> list[Reason]:
    """Members of a closed set that took each other's place: another colour, day, shape or currency."""
    words_a = {lemma(t.text) for t in stored.tokens if t.kind == "word"}
    words_b = {lemma(t.text) for t in query.tokens if t.kind == "word"}
    out: list[Reason] = []
    for members in closed_sets():
        only_a, only_b = (words_a - words_b) & members, (words_b - words_a) & members
        strange = {x for x in only_a if not any(alike(x, y) for y in words_b)}
        if strange and any(not any(alike(y, x) for x in words_a) for y in only_b):
            out.append(Reason("exchange", f"{_list(only_a)} in one text, {_list(only_b)} in the other"))
    money_a, money_b = _currencies(stored), _currencies(query)
    if money_a and money_b and money_a != money_b:
        out.append(Reason("unit", f"the currencies differ: {_list(money_a)} and {_list(money_b)}"))
    return out


def _currencies(reading: Reading) -> set[str]:
    found = {_CURRENCIES.get(t.text, "") or _CURRENCIES.get(lemma(t.text), "") for t in reading.tokens}
    return found - {""}


def _signs(reading: Reading) -> Counter[str]:
    """Operators and relations outside of numbers; a hyphen is none, and neither is the stroke of `miles/hour`."""
    covered = {k for q in reading.numbers for k in range(q.first, q.last)}
    return Counter(
        t.text
        for k, t in enumerate(reading.tokens)
        if t.text in _OPERATORS and k not in covered and not (t.text == "/" and _is_per(reading, k))
    )


def _is_per(reading: Reading, index: int) -> bool:
    sides = reading.tokens[max(0, index - 1) : index] + reading.tokens[index + 1 : index + 2]
    return len(sides) == 2 and all(t.kind == "word" for t in sides) and lemma(sides[1].text) in unit_words()


def _singles_out(reading: Reading) -> bool:
    """Whether the question is about one of several; `each day` only tells how often."""
    first, last = reading.question
    words = [t.text.lower() for t in reading.tokens[first : last + 1]]
    return any(
        word in ("each", "every", "apiece", "individual") and lemma(after) not in unit_words()
        for word, after in zip(words, [*words[1:], ""], strict=True)
    )


def _distribution(stored: Reading, query: Reading) -> str:
    """The first number that is told of each in one text and of all in the other; else empty."""
    for q in stored.numbers:
        mates = [p for p in query.numbers if p.value == q.value]
        near = [_spread(query, p) for p in mates]
        if near and _spread(stored, q) == (True, False) and all(n == (False, True) for n in near):
            return str(q.value)
    return ""


def _spread(reading: Reading, q: Quantity) -> tuple[bool, bool]:
    """Whether a word of the class of `each`, and whether `all`, stands near a number in its sentence."""
    near = [
        k
        for k in range(max(0, q.first - _NEAR), min(len(reading.tokens), q.last + _NEAR))
        if reading.sentence_of[k] == reading.sentence_of[q.first]
    ]
    words = {reading.tokens[k].text.lower() for k in near}
    return any(w.load == "each" and w.token in near for w in reading.words), "all" in words


def _alls(reading: Reading) -> int:
    """How often a text says `all` of things; `in all` and `all together` are totals."""
    covered = {w.token + k for w in reading.words if w.load for k in range(len(w.base.split()))}
    return sum(t.text.lower() == "all" for k, t in enumerate(reading.tokens) if k not in covered)


def _count(reading: Reading, load: str) -> int:
    return sum(w.load == load for w in reading.words)


def _flipped(stored: Reading, query: Reading) -> str:
    """A relation that one text has more often and its opposite less often than the other text, in words."""
    a, b = (Counter(w.load for w in r.words if w.load and not _tells_a_price(r, w)) for r in (stored, query))
    for one, other in _POLES:
        for x, y in ((one, other), (other, one)):
            if a[x] > b[x] and a[y] < b[y]:
                return f"{x.replace('_', ' ')} became {y.replace('_', ' ')}"
    return ""


def _tells_a_price(reading: Reading, word: Word) -> bool:
    """`each ticket is sold for $2`: a price, whoever buys."""
    around = reading.tokens[max(0, word.token - 1) : word.token + 2]
    low = [t.text.lower() for t in around]
    return len(low) == 3 and low[1] == "sold" and low[0] in ("is", "are", "being") and low[2] in ("for", "at")


def _asked(reading: Reading) -> set[str]:
    first, last = reading.question
    return {
        w.load
        for w in reading.words
        if w.load and first <= w.token < last and not (w.load == "left" and _points_back(reading, w))
    }


def _asks_for_now(reading: Reading) -> bool:
    """`How many does she have now`, `how much change does she get`: what is left, in other words."""
    first, last = reading.question
    low = {t.text.lower() for t in reading.tokens[first:last]}
    return not {"now", "change"}.isdisjoint(low) and not any(
        w.load == "left" for w in reading.words if first <= w.token < last
    )


def _points_back(reading: Reading, word: Word) -> bool:
    """`the rest`, `the remaining pizzas`: not what is left over, but which things are meant."""
    if word.base in ("rest", "remainder"):
        return True
    after = reading.tokens[word.token + 1] if word.token + 1 < len(reading.tokens) else None
    if word.raw.lower() != "remaining" or after is None or after.kind != "word":
        return False
    return after.text.lower() not in stop_words() and lemma(after.text) not in _AMOUNTS


def _list(names: set[str]) -> str:
    return ", ".join(sorted(name.capitalize() for name in names))
