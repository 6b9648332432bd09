"""Numbers in words and figures, with their exact values. Reads tokens; knows nothing of the rest of the sentence."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from core.gate.symbols import FUNCTIONS
from core.gate.tokens import Token

_UNITS = dict(
    zip(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen "  # noqa: SIM905
        "seventeen eighteen nineteen".split(),
        range(20),
        strict=True,
    )
)
_TENS = {
    "twenty": 20, "thirty": 30, "forty": 40, "fourty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty":
    80, "ninety": 90
}  # fmt: skip
_SCALES = {"hundred": 100, "thousand": 1000, "million": 10**6, "billion": 10**9}
_PARTS = {
    "half": 2, "halves": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fourth": 4, "fourths": 4,
    "fifth": 5, "fifths": 5, "sixth": 6, "sixths": 6, "seventh": 7, "sevenths": 7, "eighth": 8, "eighths": 8,
    "ninth": 9, "ninths": 9, "tenth": 10, "tenths": 10, "twelfth": 12, "hundredth": 100, "hundredths": 100,
}  # fmt: skip
_ORDINALS = {
    "first": 1, "second": 2, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7, "eighth": 8,
    "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12, "thirteenth": 13, "fifteenth": 15, "twentieth": 20,
    "hundredth": 100,
}  # fmt: skip
_TIMES = {
    "twice": 2, "double": 2, "doubled": 2, "doubles": 2, "doubling": 2, "twofold": 2, "thrice": 3, "triple": 3,
    "tripled": 3, "triples": 3, "threefold": 3, "quadruple": 4, "quadrupled": 4, "quadruples": 4, "fourfold": 4,
    "quintuple": 5, "fivefold": 5,
}  # fmt: skip
_HALVES = frozenset({"halve", "halved", "halves"})
_GROUPS = {"dozen": 12, "dozens": 12, "decade": 10, "decades": 10}
_COMPARED = frozenset(
    {"as", "more", "less", "the", "that", "what", "than", "his", "her", "their", "its", "this", "those"}
)
_OFTEN = frozenset({"a", "per", "each", "every", "in", "this", "daily", "weekly", "and", "then"})
NUMBER_WORDS = (
    frozenset(_UNITS) | frozenset(_TENS) | frozenset(_SCALES) | frozenset(_TIMES) | frozenset({"half", "dozen"})
)
# After these `2/3` need not be one number: `\sin 2/3` may be `(\sin 2)/3`.
_OPEN_BEFORE = FUNCTIONS | {"/"}


class Quantity(NamedTuple):
    """A number: its value, what it does (count, percent, times, part or ordinal), and its tokens [first, last)."""

    value: Fraction
    form: str
    first: int
    last: int
    in_words: bool


def quantities(tokens: Sequence[Token]) -> list[Quantity]:
    """Every number of a text in order. `12%` is 12/100 with form percent; `twice` is 2 with form times."""
    out: list[Quantity] = []
    index = 0
    while index < len(tokens):
        found = _at(tokens, index)
        if found is None:
            index += 1
            continue
        out.append(found)
        index = found.last
    return out


def _low(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text.lower() if 0 <= index < len(tokens) and tokens[index].kind == "word" else ""


def _text(tokens: Sequence[Token], index: int) -> str:
    return tokens[index].text if 0 <= index < len(tokens) else ""


def _at(tokens: Sequence[Token], index: int) -> Quantity | None:
    token = tokens[index]
    if token.kind == "number" or token.text == "frac{":
        return _figures(tokens, index)
    if token.kind != "word":
        return None
    return _words(tokens, index)


def _value(text: str) -> Fraction | None:
    try:
        return Fraction(text) if len(text) <= 60 else None
    except (ValueError, ZeroDivisionError):
        return None


def _plain_fraction(tokens: Sequence[Token], index: int) -> tuple[Fraction, int] | None:
    """`3/4` or a LaTeX fraction of two numerals at `index`: its value and the index after it."""
    if _text(tokens, index) == "frac{":
        parts = tokens[index : index + 5]
        if (
            len(parts) == 5
            and parts[1].kind == parts[3].kind == "number"
            and parts[2].text == "}{"
            and parts[4].text == "}"
        ):
            top, bottom = _value(parts[1].text), _value(parts[3].text)
            if top is not None and bottom:
                return (top / bottom, index + 5) if _ends_a_term(tokens, index + 5, slash=False) else None
        return None
    if (
        index + 2 < len(tokens)
        and tokens[index].kind == "number" == tokens[index + 2].kind
        and tokens[index + 1].text == "/"
    ):
        top, bottom = _value(tokens[index].text), _value(tokens[index + 2].text)
        alone = _ends_a_term(tokens, index + 3, slash=True) and _text(tokens, index - 1) not in _OPEN_BEFORE
        if top is not None and bottom and alone:
            return top / bottom, index + 3
    return None


def _ends_a_term(tokens: Sequence[Token], index: int, *, slash: bool) -> bool:
    """Whether nothing after a quotient changes what it is: `1/2x` is no half of anything, `\\frac{1}{2}x` is."""
    if index >= len(tokens):
        return True
    token = tokens[index]
    if token.text in ("^{", "!", "/"):
        return False
    touches = token.kind in ("letter", "number", "mark") or token.text in ("(", "[")
    return not (slash and touches and token.math)


def _figures(tokens: Sequence[Token], index: int) -> Quantity | None:
    first = index
    fraction = _plain_fraction(tokens, index)
    form = "count"
    if fraction is not None:
        value, index = fraction
        form = "part" if value < 1 else "count"
    elif tokens[index].kind == "number":
        whole = _value(tokens[index].text)
        if whole is None:
            return None
        value, index = whole, index + 1
        # mixed numbers: `3 1/2`, `3 \frac{1}{2}`
        if whole.denominator == 1 and (rest := _plain_fraction(tokens, index)) is not None and rest[0] < 1:
            value, index = whole + rest[0], rest[1]
    else:
        return None
    word = _low(tokens, index)
    if _text(tokens, index) == "-" and _low(tokens, index + 1) in _SCALES:
        pass
    elif word in _SCALES or word in _GROUPS:
        value, index = value * (_SCALES.get(word) or _GROUPS[word]), index + 1
        word = _low(tokens, index)
    if _text(tokens, index) in ("%", "percent") or word in ("percent", "percentage"):
        return Quantity(value / 100, "percent", first, index + 1, False)
    if word == "per" and _low(tokens, index + 1) == "cent":
        return Quantity(value / 100, "percent", first, index + 2, False)
    if word == "times" and _multiplies(tokens, index + 1):
        return Quantity(value, "times", first, index + 1, False)
    if word in _PARTS and word.endswith("s") and _of(tokens, index + 1) and value < _PARTS[word]:
        return Quantity(value / _PARTS[word], "part", first, index + 1, False)  # `3 quarters of`
    return Quantity(value, form, first, index, False)


def _words(tokens: Sequence[Token], index: int) -> Quantity | None:
    first = index
    word = _low(tokens, index)
    before = _low(tokens, index - 1)
    if word in _TIMES:
        following = _low(tokens, index + 1)
        if word in ("twice", "thrice") and (following in _OFTEN or not following):
            return Quantity(Fraction(_TIMES[word]), "count", first, index + 1, True)
        return Quantity(Fraction(_TIMES[word]), "times", first, index + 1, True)
    if word in _HALVES:
        return Quantity(Fraction(1, 2), "part", first, index + 1, True)
    if word == "half":
        return Quantity(Fraction(1, 2), "part", first, index + 1, True)
    if word in ("third", "quarter", "fourth", "fifth", "sixth", "eighth", "tenth") and before in ("a", "an"):
        if _low(tokens, index + 1) in (
            "of",
            "as",
            "the",
            "that",
            "to",
            "full",
            "cup",
            "mile",
            "pound",
            "hour",
            "teaspoon",
        ):
            return Quantity(Fraction(1, _PARTS[word]), "part", first, index + 1, True)
        if word == "quarter":
            return None
    if word in _GROUPS:
        return Quantity(Fraction(_GROUPS[word]), "count", first, index + 1, True)
    if word == "quarter" and _low(tokens, index + 1) in ("of", "as"):
        return Quantity(Fraction(1, 4), "part", first, index + 1, True)
    if word in _ORDINALS:
        return Quantity(Fraction(_ORDINALS[word]), "ordinal", first, index + 1, True)
    if word[:1].isdigit() and word.endswith(("st", "nd", "rd", "th")) and word[:-2].isdigit():
        return Quantity(Fraction(word[:-2]), "ordinal", first, index + 1, False)
    if word in _UNITS or word in _TENS or (word in _SCALES and before in ("a", "an")):
        return _spelled(tokens, index)
    return None


def _spelled(tokens: Sequence[Token], index: int) -> Quantity:
    """`two hundred and twenty-five`, `three quarters`, `one and a half`, `two dozen`, `three times`."""
    first = index
    total = Fraction(0)
    group = Fraction(0)
    while index < len(tokens):
        word = _low(tokens, index)
        if word in _UNITS and (
            group == 0 or (group % 100 in range(20, 100, 10) and 0 < _UNITS[word] < 10) or group % 100 == 0
        ):
            group += _UNITS[word]
        elif word in _TENS and group % 100 == 0:
            group += _TENS[word]
        elif word == "hundred":
            group = (group or Fraction(1)) * 100
        elif word in _SCALES:
            total, group = total + (group or Fraction(1)) * _SCALES[word], Fraction(0)
        elif (
            tokens[index].text == "-"
            and index > first
            and (_low(tokens, index + 1) in _UNITS or _low(tokens, index + 1) in _PARTS)
        ) or (
            word == "and"
            and (total or group >= 100)
            and (_low(tokens, index + 1) in _UNITS or _low(tokens, index + 1) in _TENS)
        ):
            pass
        else:
            break
        index += 1
    while index > first + 1 and tokens[index - 1].text in ("-", "and"):
        index -= 1
    value = total + group
    if tokens[index].text == "-" if index < len(tokens) else False:
        part = _low(tokens, index + 1)
        skip = 2
    else:
        part = _low(tokens, index)
        skip = 1
    if (
        part in _PARTS
        and value < 20
        and part not in ("second",)
        and not (part == "quarters" and not _of(tokens, index + skip))
        and (value == 1 or part.endswith("s"))
    ):
        return Quantity(value / _PARTS[part], "part", first, index + skip, True)
    if _low(tokens, index) == "and" and _low(tokens, index + 1) == "a" and _low(tokens, index + 2) == "half":
        return Quantity(value + Fraction(1, 2), "count", first, index + 3, True)
    if part in _GROUPS:
        return Quantity(value * _GROUPS[part], "count", first, index + skip, True)
    if part == "percent":
        return Quantity(value / 100, "percent", first, index + skip, True)
    if part == "times" and skip == 1 and _multiplies(tokens, index + 1):
        return Quantity(value, "times", first, index + 1, True)
    return Quantity(value, "count", first, index, True)


def _multiplies(tokens: Sequence[Token], index: int) -> bool:
    """Whether `times` before `index` compares (`three times as many`) rather than counts (`three times a week`)."""
    word = _low(tokens, index)
    if _text(tokens, index)[:1].isupper() and _text(tokens, index + 1) in ("'s", "'"):
        return True  # `5 times Ann's share`
    return word in _COMPARED or (
        word.endswith("er") and word not in ("after", "over", "per", "her", "under", "however")
    )


def _of(tokens: Sequence[Token], index: int) -> bool:
    return _low(tokens, index) in ("of", "the", "as", "full", "that")
