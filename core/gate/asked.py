"""What two questions ask: of which thing, person or day, of each or all, before or after, what is denied.

Compares two readings. A question is read from the start of its sentence here: `Over the whole week, how many` asks for
a week, `the length of each rope is what part of` asks about each.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from core.gate.alike import KIN, alike
from core.gate.lexicon import closed_sets, lemma, stop_words, unit_words
from core.gate.people import is_day
from core.gate.reading import Reading, Word
from core.gate.target import MEASURED, target

_INCOME = frozenset("earn make gain receive income revenue earnings collect".split())  # noqa: SIM905
_OUTGO = frozenset("spend pay cost expense".split())  # noqa: SIM905
_CONDITIONS = frozenset("if given when assuming suppose supposing considering provided because since".split())  # noqa: SIM905
_TIMES = frozenset({"day", "week", "month", "year", "hour", "minute"})
_ORIGINS = frozenset("before originally initially original initial beginning start started begin".split())  # noqa: SIM905
_PRESENT = frozenset("now today currently current present presently".split())  # noqa: SIM905
_ONE_BY_ONE = frozenset({"each", "every", "apiece", "individual"})
_TAIL = 5
_TOGETHER = frozenset({"combined", "together", "total", "both", "altogether", "overall", "all"})


def _asked_words(reading: Reading) -> set[str]:
    first, last = reading.question
    return {lemma(t.text) for t in reading.tokens[first:last] if t.kind == "word"}


def _start(reading: Reading) -> int:
    """Where the question's sentence begins, without a condition or a number before the asking word."""
    first, _ = reading.question
    low = first
    while low > 0 and reading.sentence_of[low - 1] == reading.sentence_of[min(first, len(reading.tokens) - 1)]:
        low -= 1
    before = {t.text.lower() for t in reading.tokens[low:first]}
    numbered = any(low <= q.first < first and q.form != "ordinal" for q in reading.numbers)
    return first if numbered or before & _CONDITIONS else low


def _whole(reading: Reading) -> list[str]:
    """The question from its sentence's start, in small letters."""
    return [t.text.lower() for t in reading.tokens[_start(reading) : reading.question[1]]]


def _in_question(reading: Reading, word: Word) -> bool:
    return _start(reading) <= word.token < reading.question[1]


def _content(reading: Reading) -> list[Word]:
    return [w for w in reading.words if _in_question(reading, w)]


def _asked_member(one: Reading, other: Reading) -> str:
    here, there = _asked_words(one), _asked_words(other)
    for members in closed_sets():
        x, y = here & members, there & members
        if x and y and not x & y:
            return f"one question is about {min(x)}, one about {min(y)}"
    return ""


def _asked_flow(one: Reading, other: Reading) -> str:
    here, there = _asked_words(one), _asked_words(other)
    if here & _INCOME and not here & _OUTGO and there & _OUTGO and not there & _INCOME:
        return "one question asks what comes in, one what is paid"
    return ""


def _asked_negation(one: Reading, other: Reading) -> str:
    def denied(reading: Reading) -> bool:
        first, last = reading.question
        return any(w.load == "negation" and first <= w.token < last for w in reading.words)

    return "only one question denies something" if denied(one) and not denied(other) else ""


def _asked_profit(one: Reading, other: Reading) -> str:
    def profit(reading: Reading) -> bool:
        return "profit" in _asked_words(reading)

    there = _asked_words(other)
    return "only one question asks for a profit" if profit(one) and not there & {"profit", "earn", "gain"} else ""


def _exchanged(one: Reading, other: Reading) -> str:
    """`How much did the house cost?` and `How much did the lot cost?`, where both texts tell of both."""
    here, there = _things(one), _things(other)
    told = {w.base for w in one.words if not _in_question(one, w)} & {
        w.base for w in other.words if not _in_question(other, w)
    }
    words = [{lemma(word) for word in _whole(r)} for r in (one, other)]
    mine = [x for x in here if x in told and not any(alike(x, y) >= KIN for y in words[1])]
    theirs = [y for y in there if y in told and not any(alike(y, x) >= KIN for x in words[0])]
    for x in mine:
        for y in theirs:
            if (x in one.names) == (y in one.names):
                return f"one question is about “{x}”, one about “{y}”, and both texts tell of both"
    return ""


def _things(reading: Reading) -> list[str]:
    """What the question names after an article or an owner, or counts: nouns, as far as that can be told."""
    out: list[str] = []
    start, last = _start(reading), reading.question[1]
    low = [t.text.lower() for t in reading.tokens[:last]]
    for word in _content(reading):
        if word.load or word.base in unit_words() or word.base in MEASURED or word.token >= last:
            continue
        if word.raw.lower().endswith("ing"):
            continue  # what is done
        before = low[word.token - 1] if word.token > start else ""
        if before in _BEFORE_NOUNS or word.base in reading.names:
            out.append(word.base)
    return out


_BEFORE_NOUNS = frozenset("the a an his her their its 's many much of to and for my our your from by".split())  # noqa: SIM905


def _left_out(one: Reading, other: Reading) -> str:
    """`spent on snacks and drinks` and `spent on snacks`, where the other text tells of drinks too."""
    low = _whole(one)
    there = {lemma(word) for word in _whole(other)}
    told = {w.base for w in other.words}
    stop = stop_words()
    for index, word in enumerate(low):
        if word != "and" or not 0 < index < len(low) - 1:
            continue
        pair = [lemma(low[index - 1]), lemma(low[index + 1])]
        if any(w in stop or not w.isalpha() for w in pair):
            continue
        asked = [any(alike(w, y) >= KIN for y in there) for w in pair]
        if asked.count(True) == 1:
            missing = pair[asked.index(False)]
            if missing in told:
                return f"only one question asks for {missing} too"
    return ""


def _asked_when(one: Reading, other: Reading) -> str:
    low = _whole(one)
    here, there = set(low), set(_whole(other))
    ahead = low[: one.question[0] - _start(one)]
    # `how much did he make before the raise?`, `Before the raise, how much`; `before he has enough` says how long
    if "before" in (*ahead, *low[-_TAIL:]) and not there & _ORIGINS:
        return "only one question asks what was before"
    if "will" in there and "will" not in here and here & _PRESENT and not there & _PRESENT:
        return "one question asks for now, one for later"
    return ""


def _asked_period(one: Reading, other: Reading) -> str:
    def periods(reading: Reading) -> set[str]:
        return {lemma(word) for word in _whole(reading)} & _TIMES

    here, there = periods(one), periods(other)
    if here and there and not here & there:
        return f"one question is about a {min(here)}, one about a {min(there)}"
    return ""


def _asked_ordinal(one: Reading, other: Reading) -> str:
    def ordinals(reading: Reading) -> set[str]:
        start, last = _start(reading), reading.question[1]
        return {str(q.value) for q in reading.numbers if q.form == "ordinal" and start <= q.first < last}

    here, there = ordinals(one), ordinals(other)
    if here and there and not here & there:
        return f"one question is about number {min(here)}, one about number {min(there)}"
    cardinal = any(
        q.form == "count" and q.value > 1 for q in other.numbers if _start(other) <= q.first < other.question[1]
    )
    return "one question is about one of several, one about more of them" if here and not there and cardinal else ""


def _asked_each(one: Reading, other: Reading) -> str:
    """`the length of each rope` and `the combined length`, `in that basket` and `in all of them`."""
    low = _whole(one)
    stop = stop_words()
    single = any(
        (w in _ONE_BY_ONE and lemma(after) not in unit_words())
        or (w in ("that", "this") and after not in stop and lemma(after) not in unit_words())
        for w, after in itertools.pairwise(low)
    )
    again = any(w in _ONE_BY_ONE and lemma(after) not in unit_words() for w, after in itertools.pairwise(_whole(other)))
    here, there = set(low), set(_whole(other))
    if single and not again and there & _TOGETHER and not here & _TOGETHER:
        return "one question asks for each, one for all together"
    return ""


def _asked_price(one: Reading, other: Reading) -> str:
    """`how many pens did he buy` and `how much did he pay for the pens`."""
    mine = target(one)
    counts = not {"many", "number"}.isdisjoint(_whole(one)) and mine.head and not mine.dimension
    there = set(_whole(other))
    money = target(other).dimension == "money" or not {"dollar", "dollars", "cents"}.isdisjoint(there)
    priced = money and {"many", "number"}.isdisjoint(there)
    return "one question asks how many, one for money" if counts and priced else ""


def _asked_until(one: Reading, other: Reading) -> str:
    """`by the end of Thursday` and `in all`."""
    here, there = set(_whole(one)), set(_whole(other))
    days = {word for word in here if is_day(word)}
    several = len({t.text for t in other.tokens if is_day(t.text)}) > 1
    if days and several and not any(map(is_day, there)) and there & _TOGETHER and not here & _TOGETHER:
        return f"one question goes to {min(days).capitalize()} only"
    return ""


ASKED: tuple[Callable[[Reading, Reading], str], ...] = (
    _asked_member,
    _asked_flow,
    _asked_negation,
    _asked_profit,
    _exchanged,
    _left_out,
    _asked_when,
    _asked_period,
    _asked_ordinal,
    _asked_each,
    _asked_until,
    _asked_price,
)
