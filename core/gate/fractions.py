"""`m/n` as the fraction that it prints, where nothing beside it leaves open what is above and what below the line.

`2m/n`, `1/2x`, `2 1/2`, `a/b/c` and `\\sin m/n` keep their slash: each may mean something else to somebody.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.gate.terms import as_letter, atom_after, atom_before, closes, opens
from core.gate.tokens import Token

# Words that are written with a slash, and signs with a meaning of their own between two letters.
_ABBREVIATIONS = frozenset({"w/o", "b/c", "n/a", "i/o", "a/c", "c/o", "r/c", "d/c"})
_OF_ITS_OWN = frozenset({"legendre", "jacobi", "kronecker"})
_CHOICES = "ABCDE"


def fractions(tokens: list[Token]) -> list[Token]:
    """The tokens with each quotient of two atoms that stands alone as a fraction. Linear; the order stays."""
    if any(token.kind == "word" and token.text.lower() in _OF_ITS_OWN for token in tokens):
        return tokens
    out: list[Token] = []
    done = 0
    labels: dict[int, int] | None = None
    for index, slash in enumerate(tokens):
        if slash.text != "/" or index < done:
            continue
        start, end = atom_before(tokens, index), atom_after(tokens, index + 1)
        if start is None or end is None or start < done or not _plainly(tokens, start, index):
            continue
        free = opens(tokens, start), closes(tokens, end)
        if not all(free):
            if labels is None:
                labels = _labels(tokens)
            if not (free[0] or start in labels.values()) or not (free[1] or end in labels):
                continue
        out.extend(tokens[done:start])
        first, last = tokens[start], tokens[end - 1]
        out.append(Token("mark", "frac{", first.start, first.start, slash.math))
        out.extend(map(as_letter, tokens[start:index]))
        out.append(Token("mark", "}{", slash.start, slash.end, slash.math))
        out.extend(map(as_letter, tokens[index + 1 : end]))
        out.append(Token("mark", "}", last.end, last.end, slash.math))
        done = end
    return [*out, *tokens[done:]] if done else tokens


def _plainly(tokens: Sequence[Token], start: int, slash: int) -> bool:
    """Whether the slash divides: `x^1/2` may be meant as a root, and `w/o` is a word."""
    if any(tokens[k].text == "^{" and tokens[k + 1].text == "1" for k in range(start, slash)):
        return False
    if tokens[slash].math and tokens[start].math:
        return True
    if (
        tokens[start].text == "w"
        or tokens[slash - 1].end < tokens[slash].start
        or tokens[slash].end < tokens[slash + 1].start
    ):
        return False  # `a box w/ 5 pens`
    letters = tokens[start].text + "/" + tokens[slash + 1].text
    return not any(tokens[k].text == "^{" for k in range(start, slash)) and letters.lower() not in _ABBREVIATIONS


def _labels(tokens: Sequence[Token]) -> dict[int, int]:
    """Start and end of `(A)`, `(B)`, ... before choices: none where one is missing or comes twice."""
    found: dict[str, list[int]] = {}
    for index in range(len(tokens) - 2):
        if tokens[index].text == "(" and tokens[index + 2].text == ")":
            found.setdefault(tokens[index + 1].text.removeprefix("$"), []).append(index)
    places = [place for name in _CHOICES for place in found.get(name, ())]
    whole = all(len(found.get(name, ())) == 1 for name in _CHOICES[:3]) and places == sorted(places)
    return {place: place + 3 for place in places} if whole else {}
