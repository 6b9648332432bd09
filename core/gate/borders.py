"""The borders of formulas that other tokens show, and what a plain root sign takes. Reads and writes tokens."""

from __future__ import annotations

from core.gate.terms import RELATIONS
from core.gate.tokens import Token

DISPLAY_END = "¶¶"  # the end of a formula on lines of its own, until `tidy` has seen it
_UNITS = frozenset({"°", "%", "\\$", "…"})
_ENDS = frozenset(") } ! | ⌋ ⌉ °".split())  # noqa: SIM905
# Words with which only a new sentence begins.
_SENTENCES = frozenset(
    "find determine compute evaluate calculate what how which if let suppose given show prove express then the here "  # noqa: SIM905
    "note assume consider for it there".split()
)


def tidy(tokens: list[Token]) -> list[Token]:
    """Drops borders of formulas that other tokens already show: next to words, punctuation or the ends."""
    out: list[Token] = []
    pending: Token | None = None
    display = False
    for index, token in enumerate(tokens):
        if token.kind == "break":
            display = token.text == DISPLAY_END
            pending = pending or token._replace(text="¶")
            continue
        if pending is not None and display and out and _ends_a_sentence(out[-1], token):
            out.append(Token("punct", ".", out[-1].end, out[-1].end, True))
        numbers = bool(out) and out[-1].kind == token.kind == "number"  # `$1$ $2$` is `1 2`
        if pending is not None and out and not numbers:
            bare = _bare(out[-1], closing=True) and _bare(token, closing=False)
            if bare or _gap(out[-1], pending, token, tokens[index : index + 4]):
                out.append(pending)
        pending = None
        out.append(token)
    return out


def _ends_a_sentence(before: Token, after: Token) -> bool:
    """Whether the full stop that some sites set at the end of a displayed formula is missing here."""
    starts = after.kind == "word" and not after.math and after.text.istitle() and after.text.lower() in _SENTENCES
    return starts and before.math and (before.kind != "punct" or before.text in ")]")


def _gap(left: Token, border: Token, right: Token, following: list[Token]) -> bool:
    """Whether white space parts a plain number from a formula that would be its factor: `add 2 $n$ times`."""
    if left.kind == "number" and not left.math and right.math:
        # `2 $\frac{1}{2}$` is a mixed number
        mixed = right.text == "frac{" and [t.kind for t in following[1:]] == ["number", "mark", "number"]
        quiet = right.text in RELATIONS or (right.kind == "punct" and right.text not in "([") or right.text in _UNITS
        return border.start > left.end and not mixed and not quiet and right.kind != "word"
    if right.kind == "number" and not right.math and left.math:
        return right.start > border.end and (left.kind == "letter" or left.text in _ENDS)
    return False


def _bare(token: Token, *, closing: bool) -> bool:
    if token.kind in ("word", "figure") or (token.kind == "punct" and token.text not in "()[]"):
        return False
    if not token.math:
        return False
    return token.text not in (("(", "[", "\\{") if closing else (")", "]", "\\}"))


def roots(tokens: list[Token]) -> list[Token]:
    """`√3` as `\\sqrt{3}`, where no power, index or factor after it leaves open what is under the root."""
    if not any(t.text == "√" for t in tokens):
        return tokens
    out: list[Token] = []
    index = 0
    while index < len(tokens):
        root, under = tokens[index], tokens[index + 1] if index + 1 < len(tokens) else None
        after = tokens[index + 2] if index + 2 < len(tokens) else None
        single = under is not None and (
            under.kind in ("number", "letter") or (len(under.text) == 1 and under.text.isalpha())
        )
        open_end = after is not None and (
            after.kind == "letter"
            or after.text in ("^{", "_{", "!", "(", "frac{")
            or after.text == "/"
            or (under is not None and after.start == under.end and after.text.isalnum())
        )
        if root.text != "√" or under is None or not single or open_end:
            out.append(root)
            index += 1
            continue
        text = under.text if under.kind != "word" else "$" + under.text
        out.append(Token("mark", "\\sqrt", root.start, root.end, root.math))
        out.append(Token("mark", "{", root.end, root.end, root.math))
        out.append(under._replace(text=text, kind="letter" if under.kind == "word" else under.kind))
        out.append(Token("mark", "}", under.end, under.end, root.math))
        index += 2
    return out
