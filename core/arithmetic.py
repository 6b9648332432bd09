"""Checks the arithmetic that a text does in passing: every plain "3 x 4 + 2 = 14" in it, in exact fractions.

Reads numbers, + - * / ^ and brackets; whatever touches a letter, a root or a unit is left alone, because a
wrong alarm costs a reviewer's trust. It must not know which problem the text solves. No eval: a small parser.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

_LONGEST_TEXT = 200_000
_LONGEST_SIDE = 200
_MOST = 500
_DEEPEST = 20
_LARGEST_BITS = 4096
_TOKEN = re.compile(r"\s*(?:((?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)\s?(%)?|([-+*/^()]))")
_RUN = re.compile(r"(?:[-+*/^()=≈.%\d\s]|(?<=\d),(?=\d{3}(?!\d)))+")
# Words that make the number behind them part of something that is not written in symbols.
_OPERATOR_WORDS = re.compile(
    r"\b(?:of|times|plus|minus|by|over|than|mod|modulo|root|log|sin|cos|tan|squared|cubed|half|twice|double)\s*$",
    re.IGNORECASE,
)
_AFTER = re.compile(r"\s*(?:(?:mod|remainder|rem|r|modulo|times|squared|cubed|percent)\b|\\p?mod|!|_)", re.IGNORECASE)
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\[dtc]?frac\s*\{([^{}]{1,80})\}\s*\{([^{}]{1,80})\}", r"((\1)/(\2))"),
        (r"\\times\b|\\cdot\b|[×⋅·∗]", "*"),
        (r"\\div\b|÷", "/"),
        (r"\\approx\b|\\simeq\b", "≈"),
        (r"[−–]", "-"),
        (r"(?<=[\d)])\s*\*\*\s*(?=\d)", "^"),
        (r"\*\*", " "),
        (r"\\left(?![a-z])|\\right(?![a-z])|\\[,;!: ]|\\\(|\\\)|\\\[|\\\]", " "),
        (r"\\?[$€£]", ""),
        (r"\\%", "%"),
        (r"\{,\}", ","),
        (r"\^\s*\{\s*(\d{1,3})\s*\}", r"^\1"),
        (r"(?<=[\d)])[ \t]+[xX][ \t]+(?=[\d(])", " * "),
        (r"(?m)^\s*\d{1,2}[.)]\s+", ""),
    )
)


@dataclass(frozen=True)
class Equation:
    """One "left = right" of a text, as written (symbols unified), and whether it holds.

    `rounded`: it holds after rounding the left side to the decimals that the right side shows.
    """

    text: str
    holds: bool
    rounded: bool


def equations(text: str) -> tuple[Equation, ...]:
    """The plain equations between numbers of `text`, in order, at most 500. Does not raise; linear in the text."""
    text = text[:_LONGEST_TEXT]
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    found: list[Equation] = []
    for line in text.splitlines():
        for match in _RUN.finditer(line):
            if "=" in match.group() or "≈" in match.group():
                found += _chain(line, match.start(), match.end())
        if len(found) >= _MOST:
            break
    return tuple(found[:_MOST])


def _chain(line: str, start: int, end: int) -> list[Equation]:
    """The equations of one run of arithmetic characters, each side against the next."""
    pieces = re.split(r"([=≈])", line[start:end])
    sides, signs = pieces[0::2], pieces[1::2]
    values = [_value(side) for side in sides]
    before, after = line[max(0, start - 24) : start], line[end : end + 24]
    if _tainted_before(before, sides[0]):
        values[0] = None
    if _tainted_after(after, sides[-1]):
        values[-1] = None
    found = []
    for i, sign in enumerate(signs):
        left, right = values[i], values[i + 1]
        if left is None or right is None or not (_calculates(sides[i]) or _calculates(sides[i + 1])):
            continue
        # "7 / 2 = 3.5": a plain number on the right may be rounded, and says so by its decimals
        rounded = left != right and not _calculates(sides[i + 1]) and _rounds_to(left, sides[i + 1], sign)
        written = f"{sides[i].strip()} {sign} {sides[i + 1].strip().rstrip('.')}"
        found.append(Equation(written, left == right or rounded, rounded))
    return found


def _tainted_before(before: str, side: str) -> bool:
    if not before.strip():
        return False
    touching = before[-1].isalnum() or before[-1] in "_\\}{<>!|]"
    first = side.strip()[:1]
    continues = first in set("+*/^-=)") or first == ""
    return (touching and not side[:1].isspace()) or continues or bool(_OPERATOR_WORDS.search(before))


def _tainted_after(after: str, side: str) -> bool:
    if not after:
        return False
    touching = not side[-1:].isspace() and (after[0].isalpha() or after[0] in "_\\{!|√")
    single_letter = re.match(r"\s*[b-zB-HJ-Z]\b(?!\s*[.)])", after) is not None
    return touching or single_letter or bool(_AFTER.match(after)) or after.lstrip()[:1] in set("\\√|{")


def _calculates(side: str) -> bool:
    return re.search(r"[\d)%]\s*[-+*/^]\s*[-(.\d]", side) is not None


def _rounds_to(left: Fraction, side: str, sign: str) -> bool:
    text = side.strip().rstrip(".").strip().strip("()").replace(",", "")
    number = re.fullmatch(r"-?\d*\.(\d+)(%?)", text)
    if number is None and sign == "≈":
        number = re.fullmatch(r"-?\d+()(%?)", text)
    if number is None:
        return False
    unit = Fraction(1, 10 ** len(number.group(1))) / (100 if number.group(2) else 1)
    right = _value(side)
    return right is not None and abs(left - right) <= unit / 2


def _value(side: str) -> Fraction | None:
    """The exact value of one side, or None when it is not plain arithmetic or too large to bother."""
    side = side.strip().rstrip(".").strip()
    if not side or len(side) > _LONGEST_SIDE or re.search(r"[-+]\s*[\d.]+\s?%", side[1:]):
        return None  # "100 - 25 %" means 75 to most writers
    tokens: list[str | Fraction] = []
    position = 0
    while position < len(side):
        match = _TOKEN.match(side, position)
        if match is None:
            return None
        number, percent, operator = match.groups()
        if number is not None:
            tokens.append(Fraction(number.replace(",", "")) / (100 if percent else 1))
        else:
            tokens.append(operator)
        position = match.end()
    try:
        parser = _Parser(tokens)
        value = parser.sum(0)
        return value if parser.at_end() else None
    except (_NotPlain, ZeroDivisionError):
        return None


class _NotPlain(Exception):
    pass


class _Parser:
    """sum: product (+|- product)*; product: power (*|/ power)*; power: atom (^ digits)?; atom: number | ( sum )."""

    def __init__(self, tokens: list[str | Fraction]) -> None:
        self._tokens = tokens
        self._next = 0

    def at_end(self) -> bool:
        return self._next == len(self._tokens)

    def _take(self, *operators: str) -> str | None:
        if not self.at_end() and self._tokens[self._next] in operators:
            self._next += 1
            return str(self._tokens[self._next - 1])
        return None

    def sum(self, depth: int) -> Fraction:
        if depth > _DEEPEST:
            raise _NotPlain
        value = self._product(depth)
        while operator := self._take("+", "-"):
            other = self._product(depth)
            value = value + other if operator == "+" else value - other
        return _small(value)

    def _product(self, depth: int) -> Fraction:
        value = self._signed(depth)
        while operator := self._take("*", "/"):
            other = self._signed(depth)
            value = _small(value * other if operator == "*" else value / other)
        return value

    def _signed(self, depth: int) -> Fraction:
        return -self._power(depth) if self._take("-") else self._power(depth)

    def _power(self, depth: int) -> Fraction:
        value = self._atom(depth)
        if self._take("^"):
            exponent = self._atom(depth)
            if exponent.denominator != 1 or not 0 <= exponent <= 64 or self._take("^"):
                raise _NotPlain
            value = _small(value ** int(exponent))
        return value

    def _atom(self, depth: int) -> Fraction:
        if self.at_end():
            raise _NotPlain
        token = self._tokens[self._next]
        self._next += 1
        if isinstance(token, Fraction):
            return token
        if token != "(":
            raise _NotPlain
        value = self.sum(depth + 1)
        if not self._take(")"):
            raise _NotPlain
        return value


def _small(value: Fraction) -> Fraction:
    if value.numerator.bit_length() > _LARGEST_BITS or value.denominator.bit_length() > _LARGEST_BITS:
        raise _NotPlain
    return value
