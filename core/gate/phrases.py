"""Words round a number: to the sentence's end, and the first things that they name. Reads one text's tokens."""

from __future__ import annotations

from collections.abc import Sequence

from core.gate.alike import KIN, alike
from core.gate.lexicon import lemma, stop_words, unit_words
from core.gate.reading import Reading

Words = frozenset[str]
REACH = 9
ENDS = frozenset({",", ".", "?", "!", ";", ":", "(", ")", "—"})
COUNTS = frozenset({"number", "amount", "quantity", "count", "sum", "total", "size"})
PLACES = frozenset("first second third fourth fifth last previous former latter".split())  # noqa: SIM905
_SOMEBODY = frozenset("he she they it we i you who what".split())  # noqa: SIM905


def span(reading: Reading, first: int, sentence: int, reach: int) -> list[str]:
    """Words and signs in small letters from `first` on, at most `reach`, to the sentence's end."""
    out: list[str] = []
    for index in range(first, min(first + reach, len(reading.tokens))):
        if reading.sentence_of[index] != sentence:
            break
        out.append(reading.tokens[index].text.lower())
    return out


def things_in(words: Sequence[str]) -> Words:
    """The first content words, to the first function word after one."""
    out: list[str] = []
    stop, units = stop_words(), unit_words()
    for word in words[:6]:
        if word in ENDS or (word in _SOMEBODY and not out):
            break
        if word.endswith("ing") and not out and len(words) > 1:
            continue  # `than cooking the rice`
        if word in stop or word == "each" or word in COUNTS or not word.isalpha():
            if out and word != "'s":
                break
            continue
        base = lemma(word)
        if base in PLACES or base not in units:
            out.append(base)
    return frozenset(out)


def related(a: Words, b: Words) -> bool:
    """Whether a word of one is the other's, or of its kind."""
    return any(alike(x, y) >= KIN for x in a for y in b)


def differ(mine: Words, theirs: Words) -> bool:
    """Whether each names something of its own: `math teachers` and `history teachers`, not `red marbles` and `red`."""
    here, there = mine - theirs, theirs - mine
    return bool(here) and bool(there) and not related(here, there)
