"""Cuts a text into the units that are lined up: numbers by value, words by spelling, formula signs as they are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from core.gate.lexicon import spellings
from core.gate.plain import plain_letters
from core.gate.quantities import Quantity
from core.gate.tokens import Token

_FORMS = {"percent": "%", "times": "x", "ordinal": "th"}
_PRODUCT_FOLLOWS = frozenset({"letter", "number"})


class Unit(NamedTuple):
    """A number, word or sign with the key under which it is compared.

    kind is a token's kind, `number` with the value in the key, or `ratio` for a quotient of two single signs. [first,
    last) are token indexes, `text` the canonical spelling.
    """

    key: str
    kind: str
    text: str
    first: int
    last: int
    math: bool


def units(tokens: Sequence[Token], numbers: Sequence[Quantity], *, formal: bool = False) -> list[Unit]:
    """The units of a text in order; every token is in one, or in several where `formal` and a word is letters."""
    starts = {q.first: q for q in numbers}
    out: list[Unit] = []
    index = 0
    while index < len(tokens):
        q = starts.get(index)
        ratio = None if q is not None and q.last - q.first > 1 else _ratio(tokens, index)
        if ratio is not None:
            key, last = ratio
            out.append(Unit(key, "ratio", _join(tokens, index, last), index, last, tokens[index].math))
            index = last
        elif q is not None:
            key = f"#{q.value}{_FORMS.get(q.form, '')}"
            out.append(Unit(key, "number", _join(tokens, q.first, q.last), q.first, q.last, tokens[index].math))
            index = q.last
        else:
            token = tokens[index]
            letters = plain_letters(tokens, index) if formal and token.text.lower() not in spellings() else ""
            if letters:
                if out and out[-1].kind == "letter":  # `AB CD` are two formulas
                    out.append(Unit("¶", "break", "¶", index, index + 1, True))
                out.extend(Unit("$" + letter, "letter", "$" + letter, index, index + 1, True) for letter in letters)
                index += 1
                continue
            out.append(Unit(_key(token), token.kind, token.text, index, index + 1, token.math))
            index += 1
    return out


def _join(tokens: Sequence[Token], first: int, last: int) -> str:
    return " ".join(t.text for t in tokens[first:last])


@lru_cache(maxsize=20_000)
def _word_key(text: str) -> str:
    low = text.lower() if len(text) > 1 else text
    return spellings().get(low, low)


def _key(token: Token) -> str:
    if token.kind == "word":
        return _word_key(token.text)
    if token.kind == "sign" and token.text in ("°", "△", "∠"):
        return spellings()[token.text]
    if token.kind == "letter" and token.text == "$π":
        return "pi"
    return token.text


def _atom(tokens: Sequence[Token], index: int) -> bool:
    return 0 <= index < len(tokens) and tokens[index].kind in _PRODUCT_FOLLOWS


def _stands_alone(tokens: Sequence[Token], first: int, last: int) -> bool:
    """No product, power or further quotient touches the quotient, so `a/b` and the fraction are one."""
    before = tokens[first - 1] if first else None
    after = tokens[last] if last < len(tokens) else None
    if before is not None and before.math and (before.kind in _PRODUCT_FOLLOWS or before.text in ("/", ")", "]", "}")):
        return False
    return not (
        after is not None
        and after.math
        and (after.kind in _PRODUCT_FOLLOWS or after.text in ("/", "(", "[", "^{", "_{", "!", "frac{"))
    )


def _ratio(tokens: Sequence[Token], index: int) -> tuple[str, int] | None:
    """`\\frac{m}{n}` and `m/n` of single letters (or a letter and a number) where both read the same."""
    if tokens[index].text == "frac{" and index + 4 < len(tokens):
        if (
            _atom(tokens, index + 1)
            and tokens[index + 2].text == "}{"
            and _atom(tokens, index + 3)
            and tokens[index + 4].text == "}"
        ):
            top, bottom, last = tokens[index + 1], tokens[index + 3], index + 5
        else:
            return None
    elif (
        _atom(tokens, index) and index + 2 < len(tokens) and tokens[index + 1].text == "/" and _atom(tokens, index + 2)
    ):
        top, bottom, last = tokens[index], tokens[index + 2], index + 3
    else:
        return None
    if top.kind == bottom.kind == "number" or not _stands_alone(tokens, index, last):
        return None
    return f"{top.text}/{bottom.text}", last
