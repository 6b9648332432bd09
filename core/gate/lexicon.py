"""English word forms, synonyms and opposites, read once from the text tables in this package. Knows no problem.

The tables are plain text so that a reviewer can read and correct them.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

_TABLES = Path(__file__).parent / "tables"
_ES = ("ses", "xes", "zes", "ches", "shes", "oes")
_MORE_IRREGULAR = {
    "women": "woman",
    "children": "child",
    "feet": "foot",
    "people": "person",
    "does": "do",
    "has": "have",
}
_OE = frozenset({"shoe", "toe", "canoe", "foe", "horseshoe"})
_VOWELS = "aeiouy"


def table_lines(name: str) -> list[str]:
    text = (_TABLES / name).read_text(encoding="utf-8")
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def _pairs(name: str) -> frozenset[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for line in table_lines(name):
        head, _, tail = line.partition(":")
        for other in tail.split():
            found.add((head, other))
            found.add((other, head))
    return frozenset(found)


@lru_cache(maxsize=1)
def synonyms() -> frozenset[tuple[str, str]]:
    """Ordered pairs, both ways round, of base forms that share a common sense."""
    return _pairs("synonyms.txt") | group_pairs("words.txt")


@lru_cache(maxsize=1)
def kin() -> frozenset[tuple[str, str]]:
    """Ordered pairs of base forms of which one names a kind of the other."""
    return _pairs("kin.txt")


@lru_cache(maxsize=1)
def antonyms() -> frozenset[tuple[str, str]]:
    """Ordered pairs of base forms of opposite meaning."""
    return _pairs("antonyms.txt") | _pairs("opposites.txt")


def group_pairs(name: str) -> frozenset[tuple[str, str]]:
    """Pairs from a table whose lines are groups of words that stand for each other."""
    found: set[tuple[str, str]] = set()
    for line in table_lines(name):
        members = line.split()
        found.update((a, b) for a in members for b in members if a != b)
    return frozenset(found)


@lru_cache(maxsize=1)
def classes() -> dict[str, str]:
    """Word or phrase (base forms) to the name of its class of load-bearing words."""
    table: dict[str, str] = {}
    for line in table_lines("classes.txt"):
        name, _, tail = line.partition(":")
        for entry in tail.split(","):
            table[entry.strip()] = name
    return table


@lru_cache(maxsize=1)
def stop_words() -> frozenset[str]:
    """Words without content of their own."""
    return frozenset(word for line in table_lines("function_words.txt") for word in line.split())


@lru_cache(maxsize=1)
def spellings() -> dict[str, str]:
    """Any spelling or abbreviation of a word to the one that stands for all."""
    table: dict[str, str] = {}
    for line in table_lines("spellings.txt"):
        members = line.split()
        table.update((member.lower(), members[0].lower()) for member in members)
    return table


@lru_cache(maxsize=1)
def closed_sets() -> tuple[frozenset[str], ...]:
    """Sets of base forms (colours, days, shapes) of which one member never stands for another."""
    return tuple(frozenset(line.split()) for line in table_lines("closed_sets.txt"))


@lru_cache(maxsize=1)
def set_members() -> dict[str, frozenset[int]]:
    """Base form to the numbers of the closed sets that it is a member of."""
    table: dict[str, set[int]] = {}
    for number, members in enumerate(closed_sets()):
        for member in members:
            table.setdefault(member, set()).add(number)
    return {word: frozenset(numbers) for word, numbers in table.items()}


@lru_cache(maxsize=1)
def unit_words() -> dict[str, str]:
    """Base form of a unit of measure, or of a word derived from one, to the unit's name."""
    return {word: line.split()[0] for line in table_lines("units.txt") for word in line.split()}


@lru_cache(maxsize=1)
def known_words() -> frozenset[str]:
    """Base forms of all words in the tables: a capital at a sentence's start does not make one of these a name."""
    return frozenset(a for a, _ in synonyms() | kin() | antonyms()) | _verbs() | stop_words() | frozenset(classes())


@lru_cache(maxsize=1)
def _verbs() -> frozenset[str]:
    return frozenset(word for line in table_lines("verbs.txt") for word in line.split())


@lru_cache(maxsize=1)
def _irregular() -> dict[str, str]:
    return dict(line.split() for line in table_lines("irregular.txt")) | _MORE_IRREGULAR


@lru_cache(maxsize=20_000)
def lemma(word: str) -> str:
    """The base form of a word, lower case. A guess for words in no table, the same for all its forms."""
    low = word.lower()
    if not low.isascii() or not low.isalpha() or len(low) <= 3:
        return _irregular().get(low, low)
    if (base := _irregular().get(low)) is not None:
        return base
    if low.endswith("s") and not low.endswith(("ss", "us", "is")):
        return _singular(low)
    if low.endswith("ing") and len(low) > 4:
        return _verb_base(low[:-3]) or low
    if low.endswith("ed") and len(low) > 3:
        return _verb_base(low[:-2]) or low
    return low


def _singular(low: str) -> str:
    if low.endswith("ies") and len(low) > 4:
        return (
            low[:-1]
            if low[:-1] in {"movie", "cookie", "brownie", "pie", "tie", "calorie", "zombie"}
            else low[:-3] + "y"
        )
    if low.endswith("oes") and low[:-1] in _OE:
        return low[:-1]
    if low.endswith(_ES):
        shorter = low[:-2]
        return (
            low[:-1]
            if low.endswith(("ses", "zes", "oes")) and low[:-1] in _verbs()
            else (low[:-1] if low.endswith(("ses", "zes")) and not shorter.endswith(("s", "z", "u")) else shorter)
        )
    return low[:-1]


def _verb_base(stem: str) -> str | None:
    known = _verbs()
    if not any(c in _VOWELS for c in stem):
        return None
    if stem + "e" in known and stem not in known:
        return stem + "e"
    if stem in known:
        return stem
    if len(stem) > 2 and stem[-1] == stem[-2] and stem[:-1] in known:
        return stem[:-1]
    if stem.endswith("i") and stem[:-1] + "y" in known:
        return stem[:-1] + "y"
    return None
