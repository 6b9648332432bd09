"""Measures of how much of one word problem the other tells, and the score made of them. Decides nothing."""

from __future__ import annotations

import math
from functools import lru_cache

from core.gate.alike import best, coverage, opposite
from core.gate.lexicon import table_lines
from core.gate.phrases import ENDS
from core.gate.quantities import Quantity
from core.gate.reading import Reading
from core.gate.roles import Roles

_TRACE = 0.2


def measures(stored: Reading, query: Reading, roles: Roles, aim: float) -> dict[str, float]:
    """Named measures, most of them shares in [0, 1]; `aim` is how well the questions agree. Pure."""
    all_a = frozenset(w.load or w.base for w in stored.words)
    all_b = frozenset(w.load or w.base for w in query.words)
    plain_a = {w.base for w in stored.words if not w.load and w.base not in stored.names}
    plain_b = {w.base for w in query.words if not w.load and w.base not in query.names}
    flips = sum(opposite(a, b) for a in all_a - all_b for b in all_b - all_a)
    question_a = {w.base for w in stored.words if stored.question[0] <= w.token < stored.question[1]}
    question_b = {w.base for w in query.words if query.question[0] <= w.token < query.question[1]}
    return {
        "fit": roles.fit,
        "margin": roles.margin,
        "loose": float(roles.loose),
        "target": aim,
        "covered": coverage(plain_a, all_b),
        "covering": coverage(plain_b, all_a),
        "worst_covered": _worst(stored, all_b),
        "worst_covering": _worst(query, all_a),
        "question": min(coverage(question_a, all_b), coverage(question_b, all_a)),
        "counted": _counted(stored, all_b),
        "counting": _counted(query, all_a),
        "flips": float(min(flips, 3)),
        "actors": _actors(stored, query),
        "order": _order(stored, query),
    }


def _worst(reading: Reading, others: frozenset[str]) -> float:
    """The clause (between punctuation) least covered by the other text: a clause of its own says something new."""
    clauses: list[set[str]] = [set()]
    last = 0
    for word in reading.words:
        if any(t.text in ENDS for t in reading.tokens[last : word.token]):
            clauses.append(set())
        clauses[-1].add(word.load or word.base)
        last = word.token
    return min((coverage(words, others) for words in clauses if len(words) >= 3), default=1.0)


def orphan(reading: Reading, other: Reading) -> str:
    """The first sentence that says something of which the other text has no trace, shortened; else empty.

    Sentences with a number of their own are held to it elsewhere, and so is the question.
    """
    told = frozenset(w.load or w.base for w in other.words)
    numbered = {reading.sentence_of[q.first] for q in reading.numbers if q.form != "ordinal" and q.value != 1}
    asked = {reading.sentence_of[k] for k in range(*reading.question)}
    for sentence in sorted(set(reading.sentence_of) - numbered - asked):
        words = {w.load or w.base for w in reading.words if w.sentence == sentence and w.base not in reading.names}
        if words and coverage(words, told) < _TRACE:
            tokens = [t.text for t, n in zip(reading.tokens, reading.sentence_of, strict=True) if n == sentence]
            return " ".join(tokens)[:80]
    return ""


def _counted(reading: Reading, others: frozenset[str]) -> float:
    """Least tie of a thing that is counted (the word after a number) to any word of the other text."""
    worst = 1.0
    for q in reading.numbers:
        if q.form != "count":
            continue
        after = next((w for w in reading.words if q.last <= w.token <= q.last + 2 and not w.load), None)
        if after is not None and after.base not in reading.names:
            worst = min(worst, best(after.base, others))
    return worst


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
