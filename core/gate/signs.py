"""Signs and names of functions that are printed in two ways: arrows, `\\log(x)`, `10\\cdot\\gcd`. Reads tokens only."""

from __future__ import annotations

from core.gate.symbols import words
from core.gate.terms import closes, is_atom, opens
from core.gate.tokens import Token

LONG_ARROWS = {"⟹": "⇒", "⟺": "⇔", "⟶": "→", "⟵": "←", "⟷": "↔", "⟸": "⇐", "⟼": "↦"}
# Functions that are written with and without brackets.
_BARE = words("sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg")
_FACTORS = _BARE | words("gcd lcm min max det exp")


def arrows(tokens: list[Token]) -> list[Token]:
    """Long arrows as short ones, but where a text has both: it may tell them apart."""
    present = {token.text for token in tokens}
    short = {long: arrow for long, arrow in LONG_ARROWS.items() if long in present and arrow not in present}
    return [t._replace(text=short[t.text]) if t.text in short else t for t in tokens] if short else tokens


def function_brackets(tokens: list[Token]) -> list[Token]:
    """`\\log(x)` as `\\log x`: one letter or number, and nothing after it that could be taken in."""
    gone: set[int] = set()
    for index, token in enumerate(tokens):
        if token.text not in _BARE or not token.math:
            continue
        place = index + 1
        for _ in range(2):
            if place + 2 < len(tokens) and tokens[place].text in ("_{", "^{") and tokens[place + 2].text == "}":
                place += 3
        inside = tokens[place : place + 3]
        if len(inside) < 3 or inside[0].text != "(" or inside[2].text != ")" or not is_atom(inside[1]):
            continue
        if inside[0].math and inside[1].math and closes(tokens, place + 3):
            gone |= {place, place + 2}
    return [token for index, token in enumerate(tokens) if index not in gone] if gone else tokens


def function_products(tokens: list[Token]) -> list[Token]:
    """`10\\cdot\\gcd(a,b)` as `10\\gcd(a,b)`: a number before a function can only be its factor."""
    if any(
        tokens[k].text == "·" and tokens[k - 1].kind == tokens[k + 1].kind == "letter"
        for k in range(1, len(tokens) - 1)
    ):
        return tokens  # the text may give the sign a meaning of its own
    gone = {
        index
        for index in range(1, len(tokens) - 1)
        if tokens[index].text == "·"
        and tokens[index + 1].text in _FACTORS
        and tokens[index + 1].kind == "sign"
        and tokens[index - 1].kind == "number"
        and tokens[index - 1].math
        and opens(tokens, index - 1)
    }
    return [token for index, token in enumerate(tokens) if index not in gone] if gone else tokens
