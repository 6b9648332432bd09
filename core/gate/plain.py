"""Letters of plain text that other sites set as formulas: variables and names of points. Reads tokens only.

`triangle ABC`, `let n = 3` and `3x` print as `triangle $ABC$`, `let $n = 3$` and `$3x$` do. What may be a word or a
unit stays a word: the article `a`, the pronoun `I`, `5 m`.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.gate.tokens import Token

_LONGEST = 5
_AFTER_A_VARIABLE = frozenset(("= + - < > ≤ ≥ ≠ ^{ _{ , . ) : ; / · × ? ∈ ≡ | ! ]").split())  # noqa: SIM905
_OPERATORS = frozenset("= + - < > ≤ ≥ ≠ ^{ _{ · × ∈ ≡ | /".split())  # noqa: SIM905
_NEVER_AFTER_AN_ARTICLE = frozenset(
    "is are has have and or to lies was be denote denotes represent represents equals satisfies divides".split()  # noqa: SIM905
)
# Products that are no words of English.
_PRODUCTS = frozenset("xy yz zx xz xyz ab bc abc mn pq".split())  # noqa: SIM905
# After a number without a space; the other letters are units there (`5m`, `5k`).
_FACTORS = frozenset("xyznabqr")


def plain_letters(tokens: Sequence[Token], index: int) -> str:
    """The letters that the word at `index` would be in a formula, or an empty string where it is a word."""
    token = tokens[index]
    text = token.text
    if token.kind != "word" or not text.isascii() or not text.isalpha() or len(text) > _LONGEST:
        return ""
    if len(text) > 1:
        return text if text.isupper() or text in _PRODUCTS else ""
    before = tokens[index - 1] if index else None
    after = tokens[index + 1].text if index + 1 < len(tokens) else ""
    if before is not None and before.kind == "number":
        return text if before.end == token.start and text in _FACTORS else ""
    if text == "I":
        return text if after in _OPERATORS else ""
    if text == "a" or (text == "A" and (before is None or before.kind != "word")):
        return text if after in _AFTER_A_VARIABLE or after in _NEVER_AFTER_AN_ARTICLE or not after else ""
    return text


def has_algebra(tokens: Sequence[Token]) -> bool:
    """Whether plain text holds a formula: a variable beside an operator or a relation."""
    for index, token in enumerate(tokens):
        if token.kind == "word" and len(token.text) == 1 and plain_letters(tokens, index):
            sides = (tokens[index - 1].text if index else "", tokens[index + 1].text if index + 1 < len(tokens) else "")
            if any(side in _OPERATORS and side != "-" for side in sides):
                return True
    return False
