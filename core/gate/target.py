"""What a question asks for: the kind of thing counted or measured. Reads one text's tokens."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from core.gate.alike import DERIVED, KIN, alike, best, opposite
from core.gate.lexicon import lemma, stop_words, unit_words
from core.gate.reading import Reading
from core.gate.verdict import Reason

_DIMENSIONS = {
    "tall": "height", "high": "height", "height": "height", "long": "length", "length": "length", "old": "age",
    "age": "age", "big": "size", "large": "size", "size": "size", "far": "distance", "distance": "distance",
    "heavy": "weight", "weight": "weight", "weigh": "weight", "fast": "speed", "speed": "speed", "wide":
    "width", "width": "width", "deep": "depth", "depth": "depth", "time": "time", "duration": "time", "often":
    "frequency", "perimeter": "perimeter", "area": "area", "volume": "volume", "heavier": "weight", "taller":
    "height", "longer": "length", "older": "age", "farther": "distance", "faster": "speed", "bigger": "size",
    "larger": "size", "wider": "width", "deeper": "depth",
}  # fmt: skip
_MONEY = frozenset(
    ("money cost price spend pay charge bill dollar cent fund earn earnings profit owe salary wage income revenue fee "  # noqa: SIM905
     "balance budget change contribute donate worth expense saving savings raise expenditure payment").split()
)  # fmt: skip
_COUNTING = frozenset({"number", "amount", "quantity", "count", "sum"})
_SKIP = frozenset(
    {
        "total",
        "overall",
        "combined",
        "average",
        "mean",
        "more",
        "additional",
        "extra",
        "other",
        "whole",
        "fewer",
        "less",
    }
)
_ELLIPTIC = frozenset(
    [
        "do",
        "does",
        "did",
        "is",
        "are",
        "was",
        "were",
        "will",
        "would",
        "can",
        "could",
        "has",
        "have",
        "had",
        "should",
        "of",
        "each",
        "they",
        "he",
        "she",
        "it",
    ]
)
_UNIT_OF = {
    "mile": "distance", "kilometer": "distance", "km": "distance", "hour": "time", "minute": "time", "second":
    "time", "day": "time", "week": "time", "month": "time", "year": "time", "dollar": "money", "cent": "money",
}  # fmt: skip
_BE = frozenset({"is", "are", "was", "were", "be", "been", "being", "get", "gets", "got"})
_HEAD = 4
# What a question measures or pays rather than what it is about.
MEASURED = frozenset(_DIMENSIONS) | frozenset(_DIMENSIONS.values()) | _MONEY | _COUNTING


class Target(NamedTuple):
    """`head`: base forms of what is counted; `dimension`: what is measured (`money`, `height`), or empty."""

    head: tuple[str, ...]
    dimension: str
    words: frozenset[str]


def target(reading: Reading) -> Target:
    """The target of a text's question. Everything may be empty where the question is not understood."""
    first, last = reading.question
    tokens = reading.tokens[first:last]
    low = [t.text.lower() for t in tokens]
    bases = [lemma(t.text) if t.kind == "word" else t.text for t in tokens]
    words = frozenset(w.base for w in reading.words if first <= w.token < last)
    head: list[str] = []
    dimension = ""
    for index, word in enumerate(low):
        after = low[index + 1] if index + 1 < len(low) else ""
        if word == "how" and after in ("many", "much"):
            following = low[index + 2] if index + 2 < len(low) else ""
            # `how many did she make`: what is counted was said before
            skipped = low[index + 3] if following in _SKIP and index + 3 < len(low) else following
            head = [] if following in _ELLIPTIC or skipped in _ELLIPTIC else _noun(low, bases, index + 2)
            if after == "much" and (not head or head[0] in _MONEY):
                weighs = "weigh" in bases or "weight" in bases
                dimension = "weight" if weighs else "money" if any(b in _MONEY for b in bases) or "\\$" in bases else ""
            break
        if word == "how" and after in _DIMENSIONS:
            dimension = _DIMENSIONS[after]
            if after == "long" and ("take" in bases or "last" in bases or "spend" in bases):
                dimension = "time"
            break
        if bases[index] in _COUNTING and after == "of":
            head = _noun(low, bases, index + 2)
            break
        if word in ("what", "find", "calculate", "determine", "compute") and not (
            word == "determine" and after == "how"
        ):
            later = [b for b in bases[index:] if b in _COUNTING]
            if later or "how" in low[index:]:
                continue
            head = _noun(low, bases, index + 1)
            break
    for base in head[:1]:
        if base in _UNIT_OF and not dimension:
            dimension = _UNIT_OF[base]
    for base in head:
        if base in _DIMENSIONS and not dimension:
            dimension = _DIMENSIONS[base]
        elif base in _MONEY and not dimension:
            dimension = "money"
    return Target(tuple(head), dimension, words)


def _noun(low: list[str], bases: list[str], start: int) -> list[str]:
    """Content words from `start` to the first function word after one; articles, fillers and owners are skipped."""
    out: list[str] = []
    kept = 0
    stop = stop_words()
    for index in range(start, min(start + 9, len(low))):
        if low[index] in ("'s", "'"):
            del out[kept:]  # `Adam's score`: the owner is not what is asked for
            continue
        if low[index] == "of" and out and len(out) < _HEAD:
            kept = len(out)
            continue
        if low[index] in stop or not low[index].isalpha():
            if out:
                break
            continue
        if low[index] in _SKIP and not out:
            continue
        out.append(bases[index])
        if len(out) >= _HEAD:
            break
    return out


@lru_cache(maxsize=4096)
def same_target(a: Target, b: Target) -> float:
    """1 where both ask for the same kind of thing, 0 where they do not, 0.5 where that cannot be told."""
    if a.dimension and b.dimension:
        return 1.0 if a.dimension == b.dimension else 0.0
    if a.head and b.head and max(best(word, b.head[:3]) for word in a.head[:3]) >= KIN:
        return 1.0
    if a.head and b.head:
        return 0.0
    if (a.dimension and b.head) or (b.dimension and a.head):
        dimension, other = (a.dimension, b) if a.dimension else (b.dimension, a)
        return 0.8 if best(dimension, other.head + tuple(other.words)) >= KIN else 0.3
    return 0.5


def question_differs(stored: Reading, query: Reading) -> list[Reason]:
    """What two questions ask in different units or by opposite words; empty where nothing speaks against them."""
    out: list[Reason] = []
    units_a, units_b = _question_units(stored), _question_units(query)
    if units_a and units_b and units_a != units_b and not (units_a <= units_b or units_b <= units_a):
        out.append(
            Reason("unit", f"the questions ask in {', '.join(sorted(units_a))} and in {', '.join(sorted(units_b))}")
        )
    table = unit_words()
    target_a, target_b = target(stored), target(query)
    for one, other, units_other in ((target_a, target_b, units_b), (target_b, target_a, units_a)):
        unit = table.get(one.head[0]) if one.head else None
        if unit is None or unit in units_other:
            continue
        # `how many gallons of water` and `how much water`, where both texts speak of gallons
        thing = bool(other.head) and any(best(word, other.head[:2]) >= DERIVED for word in one.head[1:])
        asked_in = unit in _units_of(query if one is target_a else stored)
        if not asked_in or not (thing or (one.dimension and one.dimension == other.dimension)):
            out.append(Reason("unit", f"only one question asks for {unit}"))
            break
    spoken_a, spoken_b = ({w.base for w in r.words if w.base not in r.names} for r in (stored, query))
    for x in target_a.head:
        for y in target_b.head:
            if {x, y} <= {"money", "dollar", "cent", "amount"}:
                continue  # `how many dollars` and `how much money`
            both = {x, y} <= spoken_a & spoken_b and x not in target_b.words and y not in target_a.words
            if both and not alike(x, y):
                out.append(Reason("target", f"one question is about “{x}”, one about “{y}”, and both texts know both"))
    words_a, words_b = _done(stored, target_a), _done(query, target_b)
    for x in sorted(words_a - words_b):
        for y in sorted(words_b - words_a):
            if opposite(x, y):
                out.append(Reason("flip", f"the questions say “{x}” and “{y}”"))
    return out


def _done(reading: Reading, aim: Target) -> frozenset[str]:
    """The question's words without `paid` in the passive: `how much was she paid` asks what she earned."""
    first, last = reading.question
    low = [t.text.lower() for t in reading.tokens[first:last]]
    passive = any(word == "paid" and set(low[max(0, k - 3) : k]) & _BE for k, word in enumerate(low))
    return aim.words - {"pay"} if passive else aim.words


def _units_of(reading: Reading) -> set[str]:
    table = unit_words()
    return {table[base] for t in reading.tokens if (base := lemma(t.text) if t.kind == "word" else t.text) in table}


def _question_units(reading: Reading) -> set[str]:
    table = unit_words()
    first, last = reading.question
    asked = reading.tokens[first:last]
    bases = [lemma(t.text) if t.kind == "word" else t.text for t in asked]
    found = {table[base] for base in bases if base in table}
    if any(base == "dollar" and asked[k - 1].text.lower() in ("in", "many") for k, base in enumerate(bases) if k):
        found.add("dollar")
    return found
