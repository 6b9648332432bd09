"""Where a mark, an article or `more` says something after all: exceptions of the rules in `explain`. Reads units."""

from __future__ import annotations

from collections.abc import Sequence

from core.gate.lexicon import lemma, stop_words
from core.gate.people import is_day
from core.gate.units import Unit

# Beside these a comma tells what they belong to: `all 12, but 3 were sold`, `the pupils, who passed,`.
_NEXT_TO_A_MARK = frozenset(
    "who whom whose which that where only but not except no yes nor times plus minus over".split()  # noqa: SIM905
)
_COUNTS = frozenset(
    {"number", "third", "quarter", "fourth", "fifth", "second", "half", "dozen", "couple", "pair", "few"}
)


def near(units: Sequence[Unit], index: int) -> Unit | None:
    return units[index] if 0 <= index < len(units) else None


def mark_tells(units: Sequence[Unit], first: int, last: int) -> bool:
    """Whether a mark at a place may say something: what `who` or `only` belongs to, where one name or thing ends."""
    before, after = near(units, first - 1), near(units, last)
    if before is None or after is None:
        return False
    if before.key in _NEXT_TO_A_MARK or after.key in _NEXT_TO_A_MARK:
        return True
    if before.kind != "word" or after.kind != "word":
        return False
    if before.text[:1].isupper() and after.text[:1].isupper():
        return any(u.key in (",", "and", "or") for u in units[max(0, first - 3) : last + 4]) and not any(
            u.key in (".", "?", "!") for u in units[first:last]
        )  # `Ann, Marie and Tom` are three, `Ann Marie and Tom` two
    stop = stop_words()
    listed = any(u.key in ("and", "or") for u in units[last + 1 : last + 3])
    return listed and before.key not in stop and after.key not in stop and lemma(before.text) not in stop


def article_tells(units: Sequence[Unit], first: int, last: int) -> bool:
    """`a third` and `the third`, `a number of` and `the number of`, `each had a sister`."""
    after, before = near(units, last), near(units, first - 1)
    if after is None or after.kind == "number" or after.key in _COUNTS:
        return True
    low = first
    while low > 0 and units[low - 1].key not in (".", "?", "!"):
        low -= 1
    return before is None or any(u.key in ("each", "every", "all") for u in units[low:first])


def more_compares(units: Sequence[Unit], low: int, verb: int) -> bool:
    """Whether what is done at `verb` was done before by another or on another day: `Ann ran 5. Bob ran 3 more.`"""
    while verb > low and units[verb].key in ("her", "him", "them", "me", "us"):
        verb -= 1
    if verb < low:
        return True
    earlier = {lemma(u.text) for u in units[:low] if u.kind == "word"}
    sentence = [lemma(u.text) for u in units[low:verb] if u.kind == "word"]
    if lemma(units[verb].text) not in earlier:
        return False
    return not sentence or sentence[-1] not in earlier or any(is_day(word) and word not in earlier for word in sentence)


def is_a_coin(units: Sequence[Unit], index: int) -> bool:
    """Whether a thing follows `5 dollar`: five coins of a dollar are no `$5 coins`."""
    thing = near(units, index)
    return thing is not None and thing.kind == "word" and thing.key not in stop_words()
