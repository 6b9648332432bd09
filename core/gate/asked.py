"""What two questions ask: of which colour or day, what comes in or goes out, what is denied. Compares two readings."""

from __future__ import annotations

from collections.abc import Callable

from core.gate.lexicon import closed_sets, lemma
from core.gate.reading import Reading

_INCOME = frozenset("earn make gain receive income revenue earnings collect".split())  # noqa: SIM905
_OUTGO = frozenset("spend pay cost expense".split())  # noqa: SIM905


def _asked_words(reading: Reading) -> set[str]:
    first, last = reading.question
    return {lemma(t.text) for t in reading.tokens[first:last] if t.kind == "word"}


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


ASKED: tuple[Callable[[Reading, Reading], str], ...] = (_asked_member, _asked_flow, _asked_negation, _asked_profit)
