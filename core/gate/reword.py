"""Whether one word problem is another in other words: measures, and the contradictions that rule it out.

Only for running text: a problem with formulas is never accepted by these measures. Decides nothing.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

from core.gate.alike import coverage, opposite
from core.gate.lexicon import lemma, stop_words, table_lines
from core.gate.quantities import Quantity
from core.gate.reading import Reading, Word
from core.gate.roles import roles
from core.gate.target import same_target, target
from core.gate.verdict import Reason

# Classes whose coming or going changes the answer however the rest is worded.
_HARD = frozenset(
    "at_least at_most maximum minimum negation lose borrow tax reverse probability perimeter area volume replacement "  # noqa: SIM905
    "consecutive even odd ratio".split()
)
# In the question these decide what is asked.
_ASKED = frozenset(
    "left average difference ratio at_least at_most maximum minimum negation perimeter area volume more less percent".split()
)  # noqa: SIM905
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
    if r.missing or r.extra:
        told = [f"only the stored problem has {', '.join(r.missing)}"] if r.missing else []
        told += [f"only the query has {', '.join(r.extra)}"] if r.extra else []
        against.append(Reason("numbers", "the numbers differ: " + "; ".join(told)))
    strange = _strange_names(stored, query)
    if strange:
        against.append(Reason("names", f"only one text names {', '.join(sorted(strange))}"))
    load_a = {w.load for w in stored.words if w.load}
    load_b = {w.load for w in query.words if w.load}
    asked_a, asked_b = _asked(stored), _asked(query)
    hard = sorted((load_a ^ load_b) & _HARD)
    if hard:
        against.append(Reason("qualifier", f"only one text speaks of: {', '.join(hard)}"))
    asked = (asked_a ^ asked_b) & _ASKED
    if asked and not any(asked <= alike for alike in _ASKED_ALIKE):
        # `have left` and `still have` are told apart by the classes; a word may move from question to body
        asked = {name for name in asked if name not in (load_a & load_b) or name in ("left", "more", "less")}
        if asked and not any(asked <= alike for alike in _ASKED_ALIKE):
            against.append(Reason("target", f"only one question speaks of: {', '.join(sorted(asked))}"))
    target_a, target_b = target(stored), target(query)
    aim = same_target(target_a, target_b)
    if aim == 0.0:
        against.append(Reason("target", "the questions ask for different things"))
    features = _features(stored, query, r.fit, r.margin, r.loose, aim)
    features["verbatim"] = verbatim
    features["soft"] = float(len((load_a ^ load_b) - _HARD - {"each", "total", "only"}))
    features["asked"] = float(len(asked_a ^ asked_b))
    return Rewording(tuple(against), features)


def _asked(reading: Reading) -> set[str]:
    first, last = reading.question
    return {
        w.load
        for w in reading.words
        if w.load and first <= w.token < last and not (w.load == "left" and _points_back(reading, w))
    }


def _points_back(reading: Reading, word: Word) -> bool:
    """`the rest`, `the remaining pizzas`: not what is left over, but which things are meant."""
    if word.base in ("rest", "remainder"):
        return True
    after = reading.tokens[word.token + 1] if word.token + 1 < len(reading.tokens) else None
    if word.raw.lower() != "remaining" or after is None or after.kind != "word":
        return False
    return after.text.lower() not in stop_words() and lemma(after.text) not in _AMOUNTS


def _strange_names(stored: Reading, query: Reading) -> set[str]:
    words_a = {t.text.lower() for t in stored.tokens if t.kind == "word"}
    words_b = {t.text.lower() for t in query.tokens if t.kind == "word"}
    words_a |= {lemma(w) for w in words_a}
    words_b |= {lemma(w) for w in words_b}
    only_a = {n for n in stored.names if n not in words_b and _single(n) not in words_b}
    return only_a | {n for n in query.names if n not in words_a and _single(n) not in words_a}


def _single(name: str) -> str:
    return name[:-1] if name.endswith("s") else name + "s"


def _features(stored: Reading, query: Reading, fit: float, margin: float, loose: int, aim: float) -> dict[str, float]:
    all_a = frozenset(w.load or w.base for w in stored.words)
    all_b = frozenset(w.load or w.base for w in query.words)
    plain_a = {w.base for w in stored.words if not w.load and w.base not in stored.names}
    plain_b = {w.base for w in query.words if not w.load and w.base not in query.names}
    flips = sum(opposite(a, b) for a in all_a - all_b for b in all_b - all_a)
    question_a = {w.base for w in stored.words if stored.question[0] <= w.token < stored.question[1]}
    question_b = {w.base for w in query.words if query.question[0] <= w.token < query.question[1]}
    return {
        "fit": fit,
        "margin": margin,
        "loose": float(loose),
        "target": aim,
        "covered": coverage(plain_a, all_b),
        "covering": coverage(plain_b, all_a),
        "worst_covered": _worst(stored, all_b),
        "worst_covering": _worst(query, all_a),
        "question": min(coverage(question_a, all_b), coverage(question_b, all_a)),
        "flips": float(min(flips, 3)),
        "actors": _actors(stored, query),
        "order": _order(stored, query),
    }


def _worst(reading: Reading, others: frozenset[str]) -> float:
    by_sentence: dict[int, set[str]] = {}
    for word in reading.words:
        by_sentence.setdefault(word.sentence, set()).add(word.load or word.base)
    return min((coverage(words, others) for words in by_sentence.values() if len(words) >= 3), default=1.0)


def _actor(reading: Reading, q: Quantity) -> str:
    """The name last spoken of before a number, or first after it in its sentence."""
    for index in range(q.first - 1, -1, -1):
        text = reading.tokens[index].text.lower()
        if text in reading.names:
            return text
    for index in range(q.last, len(reading.tokens)):
        if reading.sentence_of[index] != reading.sentence_of[q.first]:
            break
        if reading.tokens[index].text.lower() in reading.names:
            return reading.tokens[index].text.lower()
    return ""


def _actors(stored: Reading, query: Reading) -> float:
    """Share of the numbers that belong to the same name in both; 1 where no names are."""
    if len(stored.names) < 2:
        return 1.0
    fit = total = 0
    for q in stored.numbers:
        mates = [p for p in query.numbers if p.value == q.value]
        if mates:
            total += 1
            own = _actor(stored, q)
            fit += not own or any(_actor(query, p) in ("", own) for p in mates)
    return fit / total if total else 1.0


def _order(stored: Reading, query: Reading) -> float:
    """Share of pairs of numbers that keep their order."""
    values_a = [q.value for q in stored.numbers if q.form != "ordinal"]
    values_b = [q.value for q in query.numbers if q.form != "ordinal"]
    kept = total = 0
    for i, x in enumerate(values_a[:12]):
        for y in values_a[i + 1 : 12]:
            if x != y and x in values_b and y in values_b:
                total += 1
                kept += values_b.index(x) < len(values_b) - 1 - values_b[::-1].index(y)
    return kept / total if total else 1.0


@lru_cache(maxsize=1)
def weights() -> dict[str, float]:
    """The weights of the score, from their reviewable table."""
    return {name: float(value) for name, value in (line.split() for line in table_lines("score_weights.txt"))}


def score(features: dict[str, float]) -> float:
    """How sure the measures are that the texts are restatements of each other, 0 to 1."""
    table = weights()
    total = table["bias"] + sum(table.get(name, 0.0) * value for name, value in features.items())
    return 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, total))))
