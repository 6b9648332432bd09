"""Whether two words, or two groups of words, may stand for the same thing. Knows no sentence and no number."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from core.gate.lexicon import antonyms, kin, set_members, synonyms, unit_words

SAME, SYNONYM, DERIVED, KIN, NONE = 1.0, 0.95, 0.85, 0.6, 0.0
_SHORTEST_STEM = 4


@lru_cache(maxsize=200_000)
def alike(a: str, b: str) -> float:
    """How sure two base forms mean the same: 1 the same word, 0 no tie known. Symmetric."""
    if a == b:
        return SAME
    pair = (a, b)
    # a thesaurus calls a minute a second and a circle a lot: measures and members of closed sets stand for themselves
    units = unit_words()
    if pair in antonyms() or ((a in units or b in units) and units.get(a) != units.get(b)):
        return NONE
    sets = set_members()
    if a in sets and not sets[a].isdisjoint(sets.get(b, frozenset())):
        return NONE
    if pair in synonyms():
        return SYNONYM
    shared = 0
    for x, y in zip(a, b, strict=False):
        if x != y:
            break
        shared += 1
    # `defense` and `defensive`, `subscribe` and `subscription`: one stem, long enough not to be chance
    if shared >= _SHORTEST_STEM and shared >= 0.6 * max(len(a), len(b)) and min(len(a), len(b)) - shared <= 2:
        return DERIVED
    return KIN if pair in kin() else NONE


def best(word: str, others: Iterable[str]) -> float:
    """The best tie of `word` to any of `others`; 0 where there is none."""
    top = NONE
    for other in others:
        value = alike(word, other)
        if value > top:
            top = value
            if top == SAME:
                break
    return top


def coverage(words: Iterable[str], others: frozenset[str]) -> float:
    """Mean best tie of `words` to `others`; 1 where `words` is empty."""
    values = [best(w, others) for w in words]
    return sum(values) / len(values) if values else 1.0


def opposite(a: str, b: str) -> bool:
    """Whether the tables know the two base forms as opposites."""
    return (a, b) in antonyms()
