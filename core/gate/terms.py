"""Where a term of a formula begins and ends: whether anything beside it could bind to it. Reads tokens only.

Each question is answered with yes only where the neighbour can be neither a factor, nor an operand, nor the name of a
function; a no costs a saving, a wrong yes would merge two problems.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.gate.plain import plain_letters
from core.gate.symbols import FUNCTIONS, GREEK, words
from core.gate.tokens import Token

RELATIONS = words("= < > ≤ ≥ ≠ ≡ ≈ ∼ ≃ ≅ ∈ ∉ → ⇒ ⇔ ⟹ ⟺ ↔ ↦")
_SUMS = words("+ - ± ∓ ~-")
_OPENING = words("( [ \\{ ⌊ ⌈ { _{ ^{ frac{ binom{ }{ & \\\\") | RELATIONS | _SUMS
_CLOSING = words(") ] \\} ⌋ ⌉ } }{ & \\\\ , ; ?") | RELATIONS | _SUMS
# In plain text these words take what stands next to them as an operand: `divided by 1/2`, `1/2 squared`.
_OPERANDS = words("dx dy dt du dr sqrt sinx cosx tanx lnx logx") | FUNCTIONS | frozenset(GREEK)
_NAMES = words("tg ctg cosec sgn cbrt abs floor ceil re im cis tr rank vol")
_BIND_AFTER = words("by over root choose mod modulo per times minus plus squared cubed") | _OPERANDS | _NAMES
# The only words inside of a formula that name no function of what follows.
_BETWEEN = words("and or if for when where is to with from then as but")
_BIND_BEFORE = words(
    "squared cubed factorial choose over mod modulo percent raised times divided th st nd rd "
    "half third fourth quarter tenth power"
)
_ROOTS = words("root roots square squares cube cubes factorial logarithm log sine cosine tangent power powers")


def opens(tokens: Sequence[Token], index: int) -> bool:
    """Whether nothing before the term that starts at `index` binds to it."""
    if index == 0:
        return True
    term, before = tokens[index], tokens[index - 1]
    text = before.text
    if before.kind in ("number", "letter", "break"):
        return False
    if before.kind == "figure":
        return True
    if before.kind == "word":
        if plain_letters(tokens, index - 1) or text.lower() in FUNCTIONS:
            return False
        if before.math:
            return text in _BETWEEN
        if term.math:
            return True  # the border of the formula stands between
        rooted = text == "of" and index > 1 and tokens[index - 2].text.lower() in _ROOTS
        return not (rooted or text.lower() in _BIND_AFTER or any(c.isdigit() for c in text))
    if text in ("-", "~-") and not term.math:
        # `3-1/2` of plain text is a mixed number to some
        return index < 2 or tokens[index - 2].kind != "number" or before.start > tokens[index - 2].end
    if text in (",", ";", "."):
        return before.kind == "punct" and not (index > 1 and text == "." and tokens[index - 2].kind == "number")
    if text == ":":
        return index > 1 and _is_word(tokens, index - 2)
    return text in _OPENING or text.startswith("\\begin{") or (before.kind == "punct" and text in "?!")


def closes(tokens: Sequence[Token], index: int) -> bool:
    """Whether nothing at `index` binds to the term before it."""
    if index >= len(tokens):
        return True
    after = tokens[index]
    text = after.text
    if after.kind in ("number", "letter", "break"):
        return False
    if after.kind == "figure":
        return True
    if after.kind == "word":
        if plain_letters(tokens, index) or len(text) == 1 or text.lower() in _OPERANDS or text[0] == "'":
            return False  # `1/2 x` and `3/4 m`: a unit or a factor
        bracket = index + 1 < len(tokens) and tokens[index + 1].text == "("
        if bracket and (after.math or tokens[index + 1].start == after.end):
            return False  # `1/2 vol(K)`
        touches = not after.math and not tokens[index - 1].math and after.start == tokens[index - 1].end
        if touches or any(c.isdigit() for c in text) or _names_function(text.lower()):
            return False  # `1/2rs`, `1/2 sin30`
        raised = text == "to" and index + 1 < len(tokens) and tokens[index + 1].text == "the"
        return not (raised or text.lower() in _BIND_BEFORE)
    if text == ".":
        return index + 1 >= len(tokens) or tokens[index + 1].kind != "number"
    if text == ":":
        return index + 1 >= len(tokens) or _is_word(tokens, index + 1)
    return text in _CLOSING or text.startswith("\\end{") or (after.kind == "punct" and text == "!")


def atom_after(tokens: Sequence[Token], index: int) -> int | None:
    """Past the number or letter at `index` with at most one index and one power of one sign; None for all else."""
    if index >= len(tokens) or not is_atom(tokens[index]):
        return None
    end = index + 1
    for _ in range(2):
        if end + 2 < len(tokens) and tokens[end].text in ("_{", "^{") and _script(tokens, end):
            end += 3
    return end


def atom_before(tokens: Sequence[Token], index: int) -> int | None:
    """Where the number or letter that ends before `index` starts, with its index and power; None for all else."""
    start = index - 1
    for _ in range(2):
        if start >= 3 and tokens[start].text == "}" and _script(tokens, start - 2):
            start -= 3
    return start if start >= 0 and is_atom(tokens[start]) and atom_after(tokens, start) == index else None


def is_atom(token: Token) -> bool:
    """A number, a letter of a formula, or one letter of plain text."""
    if token.kind == "number":
        return "," not in token.text
    if token.kind == "letter":
        return len(token.text) == 2
    return token.kind == "word" and len(token.text) == 1 and token.text.isascii()


def as_letter(token: Token) -> Token:
    """A letter of plain text as the letter of a formula that it is; other tokens as they are."""
    return token._replace(kind="letter", text="$" + token.text) if token.kind == "word" else token


def _script(tokens: Sequence[Token], index: int) -> bool:
    return (
        tokens[index].text in ("_{", "^{")
        and tokens[index + 1].kind in ("number", "letter")
        and tokens[index + 2].text == "}"
    )


def _names_function(word: str) -> bool:
    return word in _NAMES or (len(word) < 6 and word.startswith(("sin", "cos", "tan", "log")))


def _is_word(tokens: Sequence[Token], index: int) -> bool:
    token = tokens[index]
    return token.kind == "word" and len(token.text) > 1 and not plain_letters(tokens, index)
