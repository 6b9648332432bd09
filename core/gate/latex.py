"""Reads a problem's text, LaTeX or plain, into canonical tokens with their places. Knows no English.

What prints alike reads alike: the parsing is pylatexenc's (`latex_tree`), formulas are written in `formula`.
"""

from __future__ import annotations

import re
from typing import Any

from core.gate import symbols as sym
from core.gate.borders import roots, tidy
from core.gate.dollars import mask
from core.gate.formula import FormulaWriter
from core.gate.habits import habits
from core.gate.labels import label_end
from core.gate.latex_tree import (
    Char,
    Environment,
    Formula,
    Group,
    LatexError,
    Macro,
    digit_at,
    digits_end,
    parse,
    script_at,
    separator,
    skip_length,
    take_argument,
)
from core.gate.markup import speaks_of_print, unmarked
from core.gate.rows import beside_relation, without_stop
from core.gate.tokens import FIGURE_MASK, Token, text_tokens

_AROUND_SIGNS = re.compile(r" ?([^\w\s\"]) ?")
_WRAPPED = re.compile(r"^(?:\[asy\]|<asy>|\\begin\{asy\})|(?:\[/asy\]|</asy>|\\end\{asy\})$")
# A matrix between its brackets is what the environment with brackets prints; cases are a column after a brace.
_BRACKETS = {
    "pmatrix": ("(", ")"), "bmatrix": ("[", "]"), "Bmatrix": ("\\{", "\\}"), "vmatrix": ("|", "|"),
    "Vmatrix": ("∥", "∥"), "cases": ("\\{", ""), "dcases": ("\\{", ""), "rcases": ("", "\\}"),
}  # fmt: skip


def read(text: str) -> list[Token]:
    """Canonical tokens of a problem's text, offsets into `text`. Raises `LatexError` on what cannot be read."""
    if speaks_of_print(text):
        raise LatexError("the text speaks of its own print, which is not compared")
    clean, starts, ends = unmarked(text)
    masked, figures = mask(clean)
    if figures or any(sign in masked for sign in "\\${}"):
        reader = _Reader(masked, clean)
        reader.prose(parse(masked))
        tokens = reader.out
    else:
        tokens = text_tokens(masked, 0, len(masked))
    tokens = roots(tidy(tokens))
    tokens = habits(tokens[label_end(tokens, clean) :])
    if clean is text or clean == text:
        return tokens
    # a token without length sits at its neighbour's place
    last = len(starts) - 1
    return [
        t._replace(
            start=starts[min(t.start, last)], end=ends[t.end - 1] if t.end > t.start else starts[min(t.end, last)]
        )
        for t in tokens
    ]


class _Reader(FormulaWriter):
    """Walks the parsed text once and writes tokens. `source` has masks, `original` the text as it came."""

    def prose(self, items: list[Any]) -> None:
        index = 0
        while index < len(items):
            item = items[index]
            if script_at(items, index):
                _, end = take_argument(items, index + 1)
                self._scripts(items[index:end], 0)
                index = end
            elif isinstance(item, Char):
                last = index
                while (
                    last + 1 < len(items)
                    and isinstance(items[last + 1], Char)
                    and items[last + 1].start == items[last].end
                    and (items[last + 1].text == FIGURE_MASK) == (item.text == FIGURE_MASK)
                    and not script_at(items, last + 1)
                ):
                    last += 1
                if item.text == FIGURE_MASK:
                    self.figure(item.start, items[last].end)
                else:
                    self.out.extend(text_tokens(self.source, item.start, items[last].end))
                index = last + 1
            elif isinstance(item, Formula):
                self.formula(item.items, item.start, item.end)
                index += 1
            elif isinstance(item, Group) and (end := self._grouped(items, index)):
                index = end
            elif isinstance(item, Group):
                # braces of plain text: a set or a fractional part, but for `{\\it words}` and `{}`
                first = item.items[0] if item.items else None
                shown = first is not None and not (isinstance(first, Macro) and first.name in sym.SPACING)
                if shown:
                    self.out.append(Token("sign", "\\{", item.start, item.start + 1))
                self.prose(item.items)
                if shown:
                    self.out.append(Token("sign", "\\}", item.end - 1, item.end))
                index += 1
            elif isinstance(item, Environment):
                self.environment(item, math=False)
                index += 1
            else:
                index = self._prose_macro(items, index)

    def _grouped(self, items: list[Any], index: int) -> int:
        """Past the groups of digits of `1{,}250` in running text, which the number before takes in; 0 without any."""
        number = self.out[-1] if self.out else None
        if number is None or number.kind != "number" or number.math or number.end != items[index].start:
            return 0
        if not number.text.isdigit() or len(number.text) > 3 or number.text[0] == "0":
            return 0
        end = index
        while end < len(items) and isinstance(items[end], Group) and separator(items, end) == 1:
            if digits_end(items, end + 1) != end + 4:
                return 0
            end += 4
        if end < len(items) and getattr(items[end], "text", "") == "." and digit_at(items, end + 1):
            end = digits_end(items, end + 1)
        if end > index:
            more = "".join(i.text for i in items[index:end] if isinstance(i, Char))
            self.out[-1] = number._replace(text=number.text + more, end=items[end - 1].end)
        return end if end > index else 0

    def _prose_macro(self, items: list[Any], index: int) -> int:
        macro: Macro = items[index]
        name = macro.name
        if name in sym.ESCAPED or name in sym.NAMED_ESCAPES:
            sign = sym.ESCAPED.get(name) or sym.NAMED_ESCAPES[name]
            self.out.append(Token("sign", "____" if sign == "_" else sign, macro.start, macro.end))
            return index + 1
        if name == "\\":
            return skip_length(items, index + 1)
        if name in sym.SPACING or name in sym.BREAKING:
            return index + 1
        if name == "item":
            self.out.append(Token("punct", "•", macro.start, macro.end))
            return index + 1
        if name == "textsuperscript":
            argument, index = take_argument(items, index + 1)
            self.raised(argument, macro)
            return index
        if name in sym.TEXT_WRAPPERS or name in ("underline", "uline"):
            argument, index = take_argument(items, index + 1)
            self.prose(argument)
            return index
        # anything else is a sign or command of formulas that a site set outside of one
        return self.math_item(items, index)

    def figure(self, start: int, end: int) -> None:
        # white space in a figure's code means nothing next to a sign
        code = _WRAPPED.sub("", self.original[start:end])
        raw = _AROUND_SIGNS.sub(r"\1", " ".join(code.split()))
        self.out.append(Token("figure", raw, start, end))

    def environment(self, item: Environment, *, math: bool) -> None:
        name = item.name.rstrip("*")
        body = item.items
        if name in sym.FIGURES:
            self.figure(item.start, item.end)
        elif name in sym.MATH_ENVIRONMENTS or name in sym.MATH_WITH_ARGUMENT:
            if name in sym.MATH_WITH_ARGUMENT:
                _, cut = take_argument(body, 0)
                body = body[cut:]
            if math:
                self.math(body)
            else:
                self.formula(body, item.start, item.end)
        elif name in sym.GRID_ENVIRONMENTS:
            self._grid(name, item)
        elif name in sym.LAYOUT_ENVIRONMENTS and not math:
            self.prose(body)
        else:
            self.mark(f"\\begin{{{name}}}", item.start, item.start)
            (self.math if math else self.prose)(body)
            self.mark(f"\\end{{{name}}}", item.end, item.end)

    def _grid(self, name: str, item: Environment) -> None:
        body = item.items
        bars = ""
        if name in ("array", "tabular"):
            columns, cut = take_argument(body, 0)
            shape = "".join(c.text if c.text == "|" else "c" for c in columns if isinstance(c, Char))
            bars = shape if "|" in shape else ""
            body = body[cut:]
        opening, closing = _BRACKETS.get(name, ("", ""))
        self.bracket(opening, item.start)
        name = name if name == "tabular" or bars else "matrix"
        self.mark(f"\\begin{{{name}}}{bars}", item.start, item.start)
        cell: list[Any] = []
        place = 0
        last = len(body)
        while last and (
            (isinstance(body[last - 1], Char) and body[last - 1].text.isspace())
            or (isinstance(body[last - 1], Macro) and body[last - 1].name in ("\\", "hline"))
        ):
            last -= 1  # a row's end before `\\end` prints nothing
        while place < last:
            part = body[place]
            row = isinstance(part, Macro) and part.name in ("\\", "cr")
            if (
                not row
                and isinstance(part, Char)
                and part.text == "&"
                and beside_relation(cell, body[place + 1 : last])
            ):
                place += 1  # `x &= 1`: no entry begins or ends with a relation, so this only lines up
            elif row or (isinstance(part, Char) and part.text == "&"):
                self._cell(without_stop(cell) if row and name == "matrix" else cell, name)
                cell = []
                self.mark("\\\\" if row else "&", part.start, part.end)
                place = skip_length(body, place + 1) if row else place + 1
            else:
                cell.append(part)
                place += 1
        self._cell(without_stop(cell) if name == "matrix" else cell, name)
        self.mark(f"\\end{{{name}}}", item.end, item.end)
        self.bracket(closing, item.end)

    def bracket(self, text: str, place: int) -> None:
        if text:
            kind = "punct" if text in "()[]" else "sign"
            self.out.append(Token(kind, text, place, place, True))

    def _cell(self, items: list[Any], name: str) -> None:
        if name == "tabular":
            self.prose(items)
        else:
            self.math(items)


__all__ = ["LatexError", "read"]
