"""Whether two problems are of one family: equal but for numbers or names. Compares units; decides nothing."""

from __future__ import annotations

from core.gate.reading import Reading
from core.gate.units import Unit, units


def family(stored: Reading, query: Reading) -> str | None:
    """What differs, in words, where the two texts differ only in numbers or names; else None. Pure."""
    a = units(stored.tokens, stored.numbers)
    b = units(query.tokens, query.numbers)
    if len(a) != len(b):
        return None
    numbers = names = 0
    renamed: dict[str, str] = {}
    for x, y in zip(a, b, strict=True):
        if x.key == y.key:
            if renamed.get(x.key, x.key) != x.key:
                return None  # a name kept here and changed elsewhere: roles may have changed
            continue
        if x.kind == y.kind == "number" and _form(x) == _form(y):
            numbers += 1
        elif _is_name(x, stored) and _is_name(y, query):
            if renamed.setdefault(x.key, y.key) != y.key:
                return None
            names += 1
        elif not _same_noun(x, y):
            return None
    if len(set(renamed.values())) != len(renamed) or set(renamed) & set(renamed.values()):
        return None  # names that change places are another problem, not another example of this one
    if not numbers and not names:
        return None
    told = [f"{numbers} number{'s' * (numbers > 1)}"] * bool(numbers) + [
        f"{names} mention{'s' * (names > 1)} of a name"
    ] * bool(names)
    return "the texts differ only in " + " and ".join(told)


def _form(unit: Unit) -> str:
    return unit.key[-1] if unit.key[-1:] in ("%", "x") else "h" if unit.key.endswith("th") else ""


def _is_name(unit: Unit, reading: Reading) -> bool:
    return unit.kind == "word" and unit.text[:1].isupper() and unit.text.lower() in reading.names


def _same_noun(x: Unit, y: Unit) -> bool:
    """`1 apple` and `2 apples`: the noun follows its number."""
    return x.kind == y.kind == "word" and (x.key + "s" == y.key or y.key + "s" == x.key)
