"""Habits of sites that print one thing in two ways: named points, products of numbers, ordinals, what stands around a
problem. Reads and writes tokens; knows no edit and no verdict.

Each rule asks for a place in which the two ways cannot mean different things, and leaves all else as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from core.gate.choices import bullets, choices
from core.gate.fractions import fractions
from core.gate.sets import set_bars
from core.gate.signs import LONG_ARROWS, arrows, function_brackets, function_products
from core.gate.symbols import FUNCTIONS
from core.gate.tokens import Token

_STARTS = frozenset(", ; : . ¶ and".split())  # noqa: SIM905
_ENDS = frozenset(", ; : . ? ! ¶".split())  # noqa: SIM905
_SUFFIXES = frozenset({"th", "st", "nd", "rd"})
_POINTS = frozenset({"point", "points", "mark", "marks", "pt", "pts"})
# What prompts and benchmarks put after a problem: no part of it. Tokens of canonical text, lower case.
_INSTRUCTIONS = tuple(
    tuple(line.split())
    for line in (
        "please reason step by step , and put your final answer within \\boxed { } .",
        "please put your final answer within \\boxed { } .",
        "put your final answer within \\boxed { } .",
        "put your final answer in \\boxed { } .",
        "let 's think step by step and output the final answer within \\boxed { } .",
        "let 's think step by step .",
        "think step by step .",
    )
)


def habits(tokens: list[Token]) -> list[Token]:
    """The tokens with each habit in its one form. Linear; the order of the tokens stays."""
    present = {token.text for token in tokens}
    for signs, rule in _RULES:
        if not signs.isdisjoint(present):
            tokens = rule(tokens)
    tokens = _credits(tokens)
    return tokens[: _without_instruction(tokens)]


def _named_points(tokens: list[Token]) -> list[Token]:
    """`O=(0,0)` is the point `O(0,0)`: a capital, alone before the sign, then a bracket with a comma, then an end."""
    gone: set[int] = set()
    functions = _functions(tokens)
    for index, token in enumerate(tokens):
        if token.text != "=" or index + 1 >= len(tokens) or tokens[index + 1].text != "(":
            continue
        start = _name_start(tokens, index)
        if start is None or not _begins(tokens, start) or tokens[start].text.removeprefix("$") in functions:
            continue
        end = _tuple_end(tokens, index + 1)
        if end is not None and (end == len(tokens) or tokens[end].kind == "word" or tokens[end].text in _ENDS):
            gone.add(index)
    return [token for index, token in enumerate(tokens) if index not in gone] if gone else tokens


def _functions(tokens: Sequence[Token]) -> set[str]:
    """Capitals with a value of their own: `F` in `F(x,y) = x+y`, which is no point."""
    found: set[str] = set()
    for index in range(1, len(tokens)):
        if tokens[index].text == "(" and len(tokens[index - 1].text.removeprefix("$")) == 1:
            end = _tuple_end(tokens, index)
            if end is not None and end < len(tokens) and tokens[end].text == "=":
                found.add(tokens[index - 1].text.removeprefix("$"))
    return found


def _name_start(tokens: Sequence[Token], end: int) -> int | None:
    """Where the name of a point that ends before `end` starts: a capital, with an index or a prime at most."""
    index = end - 1
    if index >= 0 and tokens[index].text == "}":
        while index >= 0 and tokens[index].text not in ("_{", "^{"):
            index -= 1
        if index < 1 or end - index > 4 or (tokens[index].text == "^{" and tokens[index + 1].text != "′"):
            return None
        index -= 1
    if index < 0:
        return None
    name = tokens[index].text.removeprefix("$")
    capital = len(name) == 1 and "A" <= name <= "Z" and tokens[index].kind in ("letter", "word")
    return index if capital else None


def _begins(tokens: Sequence[Token], index: int) -> bool:
    if index == 0:
        return True
    before = tokens[index - 1]
    return (before.kind == "word" and not before.math) or before.text in _STARTS


def _tuple_end(tokens: Sequence[Token], index: int) -> int | None:
    """Past the bracket that opens at `index`, if a comma stands directly in it; else None."""
    depth, comma = 0, False
    for place in range(index, min(len(tokens), index + 60)):
        text = tokens[place].text
        if text in ("(", "[", "\\{"):
            depth += 1
        elif text in (")", "]", "\\}"):
            depth -= 1
            if depth == 0:
                return place + 1 if comma and text == ")" else None
        elif text == "," and depth == 1:
            comma = True
        elif tokens[place].kind == "break":
            return None
    return None


def _products(tokens: list[Token]) -> list[Token]:
    """`2\\times 3` is `2\\cdot 3` where one factor is a numeral and the other no set: numbers have one product."""
    if any(token.text in _VECTORS or token.text.lower() in _VECTOR_WORDS for token in tokens):
        return tokens  # the cross product of vectors is another than the dot product
    if any(token.text == "·" for token in tokens):
        return tokens  # both signs: the text may tell them apart
    out = list(tokens)
    for index in range(1, len(out) - 1):
        sides = (out[index - 1], out[index + 1])
        if out[index].text == "×" and any(s.kind == "number" for s in sides) and all(_factor(s) for s in sides):
            out[index] = out[index]._replace(text="·")
        elif out[index].text in ("×", "·") and all(_variable(s) for s in sides) and _is_told(out, index + 2):
            return tokens  # `a × b = ab + 1` gives the sign a meaning of its own
    return out


_VECTORS = frozenset({"\\vec", "\\mathbf", "\\hat"})
_VECTOR_WORDS = frozenset({"vector", "vectors", "cross", "dot"})


def _variable(token: Token) -> bool:
    return token.kind == "letter" or (token.kind == "word" and len(token.text) == 1)


def _is_told(tokens: Sequence[Token], index: int) -> bool:
    return index < len(tokens) and tokens[index].text in (
        "=", ")", "as", "be", "to", "denote", "is", "means", "stands",
    )  # fmt: skip


def _factor(token: Token) -> bool:
    return token.kind in ("number", "letter") or token.text in ("(", ")", "}", "!", "frac{", "°")


def _ordinals(tokens: list[Token]) -> list[Token]:
    """`$n$-th` is `$n$th`, and `10-th` is `10th`."""
    out: list[Token] = []
    for token in tokens:
        if token.text in _SUFFIXES and len(out) > 1 and out[-1].text == "-" and out[-1].end == token.start:
            base = out[-2]
            if base.kind == "letter" or base.text in (")", "}"):
                out.pop()
            elif base.kind == "number" and base.end == out[-1].start and not base.math:
                out[-2:] = [Token("word", base.text + token.text, base.start, token.end)]
                continue
            elif base.math and not out[-1].math and _counts(out[:-1], token):
                out.pop()
        if token.text in _SUFFIXES and out and _counts(out, token):
            number = out.pop()
            token = Token("word", number.text + token.text, number.start, token.end)
        out.append(token)
    return out


def _counts(out: Sequence[Token], suffix: Token) -> bool:
    """Whether a number alone stands before its suffix: `$13$th` and `13 th` are `13th`."""
    number = out[-1]
    if number.kind != "number" or not number.text.isdigit() or suffix.start - number.end > len(r"\text{"):
        return False
    if suffix.text in ("st", "rd") and not suffix.math and suffix.start - number.end > number.math:
        return False  # `21 st` may be stones
    before = out[-2] if len(out) > 1 else None
    if before is not None and before.kind != "word" and not (before.kind == "punct" and before.text in ",.;:?!("):
        return False
    if before is not None and before.kind == "word" and len(before.text) == 1 and before.text not in "aA":
        return False
    ending = "th" if number.text[-2:-1] == "1" else {"1": "st", "2": "nd", "3": "rd"}.get(number.text[-1], "th")
    return suffix.text == ending


def _triangles(tokens: list[Token]) -> list[Token]:
    """`\\Delta ABC` is `\\triangle ABC`: a product of four capitals would not begin with the difference sign."""
    out = list(tokens)
    for index, token in enumerate(out):
        corners = out[index + 1 : index + 4]
        if token.text == "$Δ" and len(corners) == 3 and all(c.text[1:].isupper() and c.text[0] == "$" for c in corners):
            out[index] = Token("sign", "△", token.start, token.end, token.math)
    return out


def is_worth(tokens: Sequence[Token], index: int) -> bool:
    """Whether `(10 points)` stands at `index`."""
    texts = [token.text for token in tokens[index : index + 4]]
    if len(texts) < 4 or texts[0] != "(" or not texts[1].isdigit() or texts[3] != ")":
        return False
    following = tokens[index + 4] if index + 4 < len(tokens) else None
    # `(5 points) are given` speaks of points
    starts = following is not None and (following.math or following.text[:1].isupper())
    return texts[2].lower() in _POINTS and starts


def _credits(tokens: list[Token]) -> list[Token]:
    """Without `Proposed by NAME` at the end and `(10 points)` at the start."""
    if len(tokens) > 4 and is_worth(tokens, 0):
        tokens = tokens[4:]
    for index in range(max(1, len(tokens) - 10), len(tokens) - 2):
        if tokens[index].text == "Proposed" and tokens[index + 1].text == "by" and tokens[index - 1].text in ".?!)":
            names = [t.text for t in tokens[index + 2 :]]
            if all(name[:1].isupper() or name in (",", ".", "and") for name in names):
                return tokens[:index]
    return tokens


def _without_instruction(tokens: Sequence[Token]) -> int:
    """How many tokens are left without an instruction at the end."""
    for words in _INSTRUCTIONS:
        size = len(words)
        if len(tokens) <= size or not tokens[-size].text[:1].isupper():
            continue  # `Do not think step by step.` is one sentence
        if tuple(token.text.lower() for token in tokens[-size:]) == words:
            return len(tokens) - size
    return len(tokens)


# Each rule with the signs of which it needs one.
_RULES: tuple[tuple[frozenset[str], Callable[[list[Token]], list[Token]]], ...] = (
    (frozenset({"="}), _named_points),
    (frozenset({"×"}), _products),
    (_SUFFIXES, _ordinals),
    (frozenset({"$Δ"}), _triangles),
    (frozenset("("), choices),
    (frozenset({"-", "~-", "*"}), bullets),
    (frozenset(LONG_ARROWS), arrows),
    (frozenset({"·"}), function_products),
    (FUNCTIONS, function_brackets),
    (frozenset({"/"}), fractions),
    (frozenset({"|"}), set_bars),
)
