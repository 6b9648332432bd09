"""Which segments of a book may hold the answer: BM25 over their text, and how close together the words stand.

One pass over the texts, of which none is kept: memory grows with the hits, not with the book. Knows words only; no
model, no library.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

K1, B = 1.2, 0.75  # BM25's usual constants
NEAR = 40  # words; a fact and its name mostly stand within one sentence or two
# A number with its groups and decimals is one word: "2,048" does not hold "2", nor "3.5" a "3".
_WORD = re.compile(r"\d{1,3}(?:,\d{3})+(?!\d)(?:\.\d+)*|\d+(?:\.\d+)+|[^\W_]+")
_STOP_WORDS = """
a an and any are as at be been but by can could did do does for from had has have he her his how i in into is it its
many me much my no not of on or our say said she so tell than that the their them then there these they this to was we
were what when where which who whom whose why will with would you your according text
"""
STOP = frozenset(_STOP_WORDS.split())


@dataclass(frozen=True)
class Hit:
    """A text by its place in the order given. `score`: BM25 plus the weight of the words that stand together."""

    place: int
    score: float


@dataclass(frozen=True)
class Routed:
    """The best places first; `neighbours` stand next to the best and come after it. `weights`: question word -> how
    much it tells (inverse frequency over the texts)."""

    hits: tuple[Hit, ...]
    neighbours: tuple[int, ...]
    weights: Mapping[str, float]
    texts: int


def words(text: str) -> list[str]:
    """Lower-case words of letters and digits, a plural's s left off, a number without the commas of its groups."""
    return [_stem(word.replace(",", "")) for word in _WORD.findall(text.lower())]


def terms(question: str) -> tuple[str, ...]:
    """The distinct words of a question that can tell one text from another; all of them if none can."""
    found = tuple(dict.fromkeys(word for word in words(question) if word not in STOP))
    return found or tuple(dict.fromkeys(words(question)))


def route(question: str, texts: Iterable[str], k: int, *, neighbours: int = 1, nearness: bool = True) -> Routed:
    """The `k` texts that most likely hold the answer, with `neighbours` on either side of the best.

    `nearness=False` ranks by BM25 alone. Texts without any of the question's words are never hits.
    """
    wanted = terms(question)
    bit = {term: 1 << number for number, term in enumerate(wanted)}
    lengths: list[int] = []
    counts: dict[int, Counter[str]] = {}
    together: dict[int, frozenset[int]] = {}
    for place, text in enumerate(texts):
        body = words(text)
        lengths.append(len(body))
        seen = [(at, word) for at, word in enumerate(body) if word in bit]
        if seen:
            counts[place] = Counter(word for _, word in seen)
            together[place] = _together([(at, bit[word]) for at, word in seen])
    frequency = Counter(word for found in counts.values() for word in found)
    total = len(lengths)
    weights = {t: math.log(1 + (total - frequency[t] + 0.5) / (frequency[t] + 0.5)) for t in wanted}
    mean = sum(lengths) / total if total and sum(lengths) else 1.0
    hits = []
    for place, found in counts.items():
        score = sum(
            weights[t] * n * (K1 + 1) / (n + K1 * (1 - B + B * lengths[place] / mean)) for t, n in found.items()
        )
        if nearness:
            # K1 + 1 is the most that BM25 gives a word: standing together counts as much as standing often.
            score += (K1 + 1) * max(sum(weights[t] for t in wanted if mask & bit[t]) for mask in together[place])
        hits.append(Hit(place, score))
    best = tuple(sorted(hits, key=lambda hit: (-hit.score, hit.place))[:k])
    return Routed(best, _beside(best, neighbours, total), weights, total)


def coverage(weights: Mapping[str, float], text: str) -> float:
    """The share, by weight, of the question's words that a text has: 0 to 1."""
    whole = sum(weights.values())
    held = set(words(text))
    return sum(weight for word, weight in weights.items() if word in held) / whole if whole else 0.0


def _beside(best: Sequence[Hit], neighbours: int, total: int) -> tuple[int, ...]:
    if not best:
        return ()
    chosen = {hit.place for hit in best}
    middle = best[0].place
    steps = [middle + sign * step for step in range(1, neighbours + 1) for sign in (1, -1)]
    return tuple(place for place in steps if 0 <= place < total and place not in chosen)


def _together(seen: Sequence[tuple[int, int]]) -> frozenset[int]:
    """Which of the question's words stand within `NEAR` words of each other, as bit masks."""
    masks = set()
    end = 0
    for start, (at, _) in enumerate(seen):
        end = max(end, start)
        while end < len(seen) and seen[end][0] < at + NEAR:
            end += 1
        mask = 0
        for _, flag in seen[start:end]:
            mask |= flag
        masks.add(mask)
    return frozenset(masks)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
