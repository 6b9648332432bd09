"""Reads LaTeX with pylatexenc into canonical tokens: what prints alike reads alike. Knows no English.

Every macro is given no argument of its own to the parser; arguments are taken here, so that `\\frac12`,
`\\frac 1 2` and `\\frac{1}{2}` are one thing, as TeX has it, and `x^10` is `x^{1}0`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from pylatexenc.latexwalker import LatexWalker
from pylatexenc.macrospec import EnvironmentSpec, LatexContextDb, MacroSpec

from core.gate import symbols as sym
from core.gate.dollars import mask
from core.gate.symbols import DOUBLE_STRUCK
from core.gate.tokens import FIGURE_MASK, Token, letter, text_tokens

MAX_DEPTH = 40
_DELIMITERS = frozenset("()[]|/<>.")
_OVER = {"over": "frac{", "choose": "binom{", "atop": "atop{"}
_ORDINAL = frozenset({"st", "nd", "rd", "th"})
_AROUND_SIGNS = re.compile(r" ?([^\w\s\"]) ?")
_SKIP_LENGTH = re.compile(r"\*?\s*\[[-\d.]+\s*[a-z]{2}\]")


class Char(NamedTuple):
    text: str
    start: int
    end: int


class Macro(NamedTuple):
    name: str
    start: int
    end: int


class Group(NamedTuple):
    items: list[Any]
    start: int
    end: int


class Formula(NamedTuple):
    items: list[Any]
    start: int
    end: int


class Environment(NamedTuple):
    name: str
    items: list[Any]
    start: int
    end: int


class LatexError(ValueError):
    """The text cannot be read as LaTeX; it then has no canonical form but itself."""


@lru_cache(maxsize=1)
def _context() -> LatexContextDb:
    context = LatexContextDb()
    context.set_unknown_macro_spec(MacroSpec("", args_parser=""))
    context.set_unknown_environment_spec(EnvironmentSpec("", args_parser=""))
    return context


def read(text: str) -> list[Token]:
    """Canonical tokens of a problem's text, offsets into `text`. Raises `LatexError` on what cannot be read."""
    masked, figures = mask(text)
    if "\\" not in masked and "$" not in masked and "{" not in masked and "}" not in masked:
        tokens = text_tokens(masked, 0, len(masked)) if not figures else None
        if tokens is not None:
            return _tidy(tokens)
    if _depth(masked) > MAX_DEPTH:
        raise LatexError(f"braces or environments are nested more than {MAX_DEPTH} deep")
    try:
        nodes = LatexWalker(masked, latex_context=_context(), tolerant_parsing=False).get_latex_nodes()[0]
        items = _items(nodes)
    except LatexError:
        raise
    except Exception as error:  # the parser raises several kinds, and IndexError on some broken texts
        raise LatexError(f"not readable as LaTeX: {str(error)[:120]}") from error
    reader = _Reader(masked, text)
    reader.prose(items)
    return _tidy(reader.out)


def _depth(text: str) -> int:
    depth = deepest = 0
    for found in re.finditer(r"\\.|[{}]|\\begin|\\end", text, re.DOTALL):
        piece = found.group()
        if piece == "{":
            depth += 1
        elif piece == "}":
            depth -= 1
        deepest = max(deepest, depth)
    return max(deepest, len(re.findall(r"\\begin\b", text)), len(re.findall(r"\\[(\[]", text)) // 8)


def _items(nodes: list[Any]) -> list[Any]:
    out: list[Any] = []
    for node in nodes:
        kind = type(node).__name__
        if kind == "LatexCharsNode":
            out.extend(Char(c, node.pos + i, node.pos + i + 1) for i, c in enumerate(node.chars))
        elif kind == "LatexMacroNode":
            end = node.pos + 1 + len(node.macroname)
            out.append(Macro(node.macroname, node.pos, end))
            if node.macro_post_space:
                out.append(Char(" ", end, end + 1))
        elif kind == "LatexGroupNode":
            out.append(Group(_items(node.nodelist), node.pos, node.pos + node.len))
        elif kind == "LatexMathNode":
            out.append(Formula(_items(node.nodelist), node.pos, node.pos + node.len))
        elif kind == "LatexEnvironmentNode":
            out.append(Environment(node.environmentname, _items(node.nodelist), node.pos, node.pos + node.len))
        elif kind != "LatexCommentNode":
            raise LatexError(f"unexpected part of a text: {kind}")
    return out


class _Reader:
    """Walks the parsed text once and writes tokens. `source` has masks, `original` the text as it came."""

    def __init__(self, source: str, original: str) -> None:
        self.source = source
        self.original = original
        self.out: list[Token] = []

    # --- running text ---------------------------------------------------------------------------------------

    def prose(self, items: list[Any]) -> None:
        index = 0
        while index < len(items):
            item = items[index]
            if isinstance(item, Char):
                last = index
                while (
                    last + 1 < len(items)
                    and isinstance(items[last + 1], Char)
                    and items[last + 1].start == items[last].end
                    and (items[last + 1].text == FIGURE_MASK) == (item.text == FIGURE_MASK)
                ):
                    last += 1
                if item.text == FIGURE_MASK:
                    self._figure(item.start, items[last].end)
                else:
                    self.out.extend(text_tokens(self.source, item.start, items[last].end))
                index = last + 1
            elif isinstance(item, Formula):
                self._formula(item.items, item.start, item.end)
                index += 1
            elif isinstance(item, Group):
                self.prose(item.items)
                index += 1
            elif isinstance(item, Environment):
                self._environment(item, math=False)
                index += 1
            else:
                index = self._prose_macro(items, index)

    def _prose_macro(self, items: list[Any], index: int) -> int:
        macro: Macro = items[index]
        name = macro.name
        if name in sym.ESCAPED or name in sym.NAMED_ESCAPES:
            sign = sym.ESCAPED.get(name) or sym.NAMED_ESCAPES[name]
            self.out.append(Token("sign", "____" if sign == "_" else sign, macro.start, macro.end))
            return index + 1
        if name == "\\":
            return _skip_length(items, index + 1)
        if name in sym.SPACING or name in sym.BREAKING:
            return index + 1
        if name == "item":
            self.out.append(Token("punct", "•", macro.start, macro.end))
            return index + 1
        if name in sym.TEXT_WRAPPERS or name in ("underline", "uline"):
            argument, index = _argument(items, index + 1)
            self.prose(argument)
            return index
        # anything else is a sign or command of formulas that a site set outside of one
        return self._math_item(items, index)

    def _figure(self, start: int, end: int) -> None:
        # white space in a figure's code means nothing next to a sign
        raw = _AROUND_SIGNS.sub(r"\1", " ".join(self.original[start:end].split()))
        self.out.append(Token("figure", raw, start, end))

    # --- formulas -------------------------------------------------------------------------------------------

    def _formula(self, items: list[Any], start: int, end: int) -> None:
        self.out.append(Token("break", "¶", start, start, True))
        self.math(items)
        self.out.append(Token("break", "¶", end, end, True))

    def math(self, items: list[Any]) -> None:
        for position, item in enumerate(items):
            if isinstance(item, Macro) and item.name in _OVER:
                opening = _OVER[item.name]
                self._mark(opening, item.start, item.start)
                self.math(items[:position])
                self._mark("}{", item.start, item.end)
                self.math(items[position + 1 :])
                self._mark("}", item.end, item.end)
                return
        index = 0
        while index < len(items):
            index = self._math_item(items, index)

    def _math_item(self, items: list[Any], index: int) -> int:
        item = items[index]
        if isinstance(item, Char):
            return self._math_char(items, index)
        if isinstance(item, Group):
            self.math(item.items)
            return index + 1
        if isinstance(item, Formula):
            self.math(item.items)
            return index + 1
        if isinstance(item, Environment):
            self._environment(item, math=True)
            return index + 1
        return self._math_macro(items, index)

    def _math_char(self, items: list[Any], index: int) -> int:
        char: Char = items[index]
        text = char.text
        if text.isspace() or text == "~":
            return index + 1
        if text.isdecimal() or (text == "." and _digit_at(items, index + 1)):
            return self._math_number(items, index)
        if text in "^_'′’":
            return self._scripts(items, index)
        if text == FIGURE_MASK:
            last = index
            while last + 1 < len(items) and isinstance(items[last + 1], Char) and items[last + 1].text == FIGURE_MASK:
                last += 1
            self._figure(char.start, items[last].end)
            return last + 1
        if text == "&":
            return index + 1
        if (variable := letter(text)) is not None:
            self.out.append(Token("letter", variable, char.start, char.end, True))
        elif text in DOUBLE_STRUCK:
            self._sign(f"\\mathbb{{{DOUBLE_STRUCK[text]}}}", char)
        elif text.isalpha():
            self.out.append(Token("letter", "$" + text, char.start, char.end, True))
        elif text == "." and _dots_at(items, index):
            self._sign("…", Char("", char.start, items[index + 2].end))
            return index + 3
        elif text in ".,;:?()[]":
            self.out.append(Token("punct", text, char.start, char.end, True))
        else:
            for token in text_tokens(self.source, char.start, char.end):
                self.out.append(token._replace(text="-" if token.text == "~-" else token.text, math=True))
        return index + 1

    def _math_number(self, items: list[Any], index: int) -> int:
        """Digits with their point and their grouping (`1{,}000`, `1\\,000`, and `1,000` outside of brackets)."""
        start = items[index].start
        last = _digits_end(items, index)
        leading = "".join(i.text for i in items[index:last])
        if 1 <= len(leading) <= 3 and leading[0] != "0":
            last = self._groups_end(items, last)
        if (
            last < len(items)
            and isinstance(items[last], Char)
            and items[last].text == "."
            and _digit_at(items, last + 1)
        ):
            last = _digits_end(items, last + 1)
        digits = "".join(
            i.text for i in items[index:last] if isinstance(i, Char) and (i.text.isdecimal() or i.text == ".")
        )
        self.out.append(Token("number", digits, start, items[last - 1].end, True))
        return last

    def _groups_end(self, items: list[Any], index: int) -> int:
        """Past all groups of three digits after `index`; `index` itself where they are a list or no groups at all."""
        place = index
        bare = False
        while (size := _separator(items, place)) and _digits_end(items, place + size) == place + size + 3:
            bare = bare or (size == 1 and isinstance(items[place], Char))
            place += size + 3
        # a bare comma in brackets separates, and so does one before a shorter or longer run of digits
        listed = (
            isinstance(items[place], Char) and items[place].text == "," and _digit_at(items, place + 1)
            if (place < len(items))
            else False
        )
        return index if bare and (listed or self._in_brackets()) else place

    def _in_brackets(self) -> bool:
        """Whether the formula being written has an open bracket: a comma there separates."""
        depth = 0
        for token in reversed(self.out):
            if token.kind == "break":
                break
            if token.text in (")", "]", "\\}"):
                depth -= 1
            elif token.text in ("(", "[", "\\{"):
                depth += 1
                if depth > 0:
                    return True
        return False

    def _scripts(self, items: list[Any], index: int) -> int:
        """Sub- and superscripts after one base, subscript first; primes and degree signs become signs."""
        sub: list[Token] = []
        sup: list[Token] = []
        start = items[index].start
        end = items[index].end
        while index < len(items):
            item = items[index]
            if isinstance(item, Char) and item.text in "'′’":
                sup.append(Token("sign", "′", item.start, item.end, True))
                index, end = index + 1, item.end
            elif isinstance(item, Char) and item.text in "^_":
                argument, index = _argument(items, index + 1)
                end = items[index - 1].end if index else end
                (sup if item.text == "^" else sub).extend(self._apart(argument))
            elif isinstance(item, Char) and item.text.isspace() and _script_follows(items, index):
                index += 1
            else:
                break
        if sub:
            self._mark("_{", start, start)
            self.out.extend(sub)
            self._mark("}", end, end)
        suffix = "".join(t.text.lstrip("$") for t in sup)
        if suffix in _ORDINAL and len(sup) > 1:
            sup = [Token("word", suffix, sup[0].start, sup[-1].end, True)]
        if len(sup) == 1 and sup[0].text in ("∘", "°"):
            self.out.append(Token("sign", "°", start, end, True))
        elif len(sup) == 1 and sup[0].text in _ORDINAL and self.out and self.out[-1].kind == "number":
            base = self.out.pop()
            self.out.append(Token("word", base.text + sup[0].text, base.start, end))
        elif len(sup) == 1 and sup[0].text in _ORDINAL:
            self.out.append(sup[0])
        elif sup:
            self._mark("^{", start, start)
            self.out.extend(sup)
            self._mark("}", end, end)
        return index

    def _apart(self, items: list[Any]) -> list[Token]:
        outer, self.out = self.out, []
        self.math(items)
        inner, self.out = self.out, outer
        return inner

    def _math_macro(self, items: list[Any], index: int) -> int:
        macro: Macro = items[index]
        name = macro.name
        if name in sym.DELIMITER_SIZES:
            index += 1
            if index < len(items) and isinstance(items[index], Char) and items[index].text == ".":
                index += 1
            return index
        if name == "\\" or name in ("quad", "qquad", "cr", "newline"):
            self.out.append(Token("break", "¶", macro.start, macro.end, True))
            return _skip_length(items, index + 1) if name == "\\" else index + 1
        if name in sym.SPACING:
            return index + 1
        if name in sym.ESCAPED or name in sym.NAMED_ESCAPES:
            self._sign(sym.ESCAPED.get(name) or sym.NAMED_ESCAPES[name], macro)
        elif name in sym.SIGNS:
            self._sign(sym.SIGNS[name], macro)
        elif name in sym.GREEK:
            self.out.append(Token("letter", "$" + sym.GREEK[name], macro.start, macro.end, True))
        elif name in sym.FUNCTIONS:
            self._sign(name, macro)
        elif name == "bmod":
            self._sign("mod", macro)
        elif name == "not":
            return self._negated(items, index)
        else:
            return self._macro_with_arguments(items, index)
        return index + 1

    def _negated(self, items: list[Any], index: int) -> int:
        before = len(self.out)
        after = index + 1
        while after < len(items) and isinstance(items[after], Char) and items[after].text.isspace():
            after += 1
        if after >= len(items):
            return after
        following = self._math_item(items, after)
        if len(self.out) > before:
            token = self.out[before]
            known = {"=": "≠", "∈": "∉", "|": "∤", "∥": "∦"}
            text = known.get(token.text, "\\not" + token.text)
            self.out[before] = Token("sign", text, items[index].start, token.end, True)
        return following

    def _macro_with_arguments(self, items: list[Any], index: int) -> int:
        macro: Macro = items[index]
        name, start = macro.name, macro.start
        index += 1
        if name in sym.TEXT_WRAPPERS:
            argument, index = _argument(items, index)
            self.prose(argument)
        elif name in sym.UPRIGHT:
            argument, index = _argument(items, index)
            self._upright(argument)
        elif name in sym.FRACTIONS or name in sym.BINOMIALS:
            top, index = _argument(items, index)
            bottom, index = _argument(items, index)
            self._mark("frac{" if name in sym.FRACTIONS else "binom{", start, macro.end)
            self.math(top)
            self._mark("}{", macro.end, macro.end)
            self.math(bottom)
            self._mark("}", macro.end, macro.end)
        elif name in ("pmod", "pod"):
            argument, index = _argument(items, index)
            self.out.append(Token("punct", "(", start, macro.end, True))
            if name == "pmod":
                self._sign("mod", macro)
            self.math(argument)
            self.out.append(Token("punct", ")", macro.end, macro.end, True))
        elif name in sym.DROP_WITH_ARGUMENT:
            _, index = _argument(items, index)
        elif name in sym.ONE_ARGUMENT:
            option, index = _option(items, index) if name == "sqrt" else (None, index)
            argument, index = _argument(items, index)
            if name == "mathbb" and len(argument) == 1 and isinstance(argument[0], Char):
                self._sign(f"\\mathbb{{{argument[0].text}}}", macro)
                return index
            self._mark(f"\\{name}", start, macro.end)
            if option is not None:
                self._mark("[", macro.end, macro.end)
                self.math(option)
                self._mark("]", macro.end, macro.end)
            self._mark("{", macro.end, macro.end)
            self.math(argument)
            self._mark("}", macro.end, macro.end)
        else:
            self._mark(f"\\{name}", start, macro.end)
            while index < len(items) and isinstance(items[index], Group):
                self._mark("{", items[index].start, items[index].start)
                self.math(items[index].items)
                self._mark("}", items[index].end, items[index].end)
                index += 1
        return index

    def _upright(self, argument: list[Any]) -> None:
        """`\\mathrm{cm}` is a word; `\\mathrm{d}` and `\\mathrm{ABC}` are letters that stand upright."""
        text = "".join(i.text for i in argument if isinstance(i, Char))
        plain = len(argument) == len(text)
        word = text.strip()
        if plain and word.isalpha() and len(word) > 1 and not word.isupper():
            self.prose(argument)
        else:
            self.math(argument)

    # --- environments ---------------------------------------------------------------------------------------

    def _environment(self, item: Environment, *, math: bool) -> None:
        name = item.name.rstrip("*")
        body = item.items
        if name in sym.FIGURES:
            self._figure(item.start, item.end)
        elif name in sym.MATH_ENVIRONMENTS or name in sym.MATH_WITH_ARGUMENT:
            if name in sym.MATH_WITH_ARGUMENT:
                _, cut = _argument(body, 0)
                body = body[cut:]
            if math:
                self.math(body)
            else:
                self._formula(body, item.start, item.end)
        elif name in sym.GRID_ENVIRONMENTS:
            self._grid(name, item)
        elif name in sym.LAYOUT_ENVIRONMENTS and not math:
            self.prose(body)
        else:
            self._mark(f"\\begin{{{name}}}", item.start, item.start)
            (self.math if math else self.prose)(body)
            self._mark(f"\\end{{{name}}}", item.end, item.end)

    def _grid(self, name: str, item: Environment) -> None:
        body = item.items
        bars = ""
        if name in ("array", "tabular"):
            columns, cut = _argument(body, 0)
            bars = "|" * sum(isinstance(c, Char) and c.text == "|" for c in columns)
            body = body[cut:]
        name = "cases" if name == "dcases" else name
        self._mark(f"\\begin{{{name}}}{bars}", item.start, item.start)
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
            if row or (isinstance(part, Char) and part.text == "&"):
                self._cell(cell, name)
                cell = []
                self._mark("\\\\" if row else "&", part.start, part.end)
                place = _skip_length(body, place + 1) if row else place + 1
            else:
                cell.append(part)
                place += 1
        self._cell(cell, name)
        self._mark(f"\\end{{{name}}}", item.end, item.end)

    def _cell(self, items: list[Any], name: str) -> None:
        if name == "tabular":
            self.prose(items)
        else:
            self.math(items)

    def _mark(self, text: str, start: int, end: int) -> None:
        self.out.append(Token("mark", text, start, end, True))

    def _sign(self, text: str, item: Any) -> None:
        self.out.append(Token("sign", text, item.start, item.end, True))


def _argument(items: list[Any], index: int) -> tuple[list[Any], int]:
    """What TeX would take as the next argument: a group, a command with nothing after it, or one sign."""
    while index < len(items) and isinstance(items[index], Char) and items[index].text.isspace():
        index += 1
    if index >= len(items):
        return [], index
    item = items[index]
    if isinstance(item, Group):
        return item.items, index + 1
    if isinstance(item, Macro) and item.name in (
        sym.FRACTIONS | sym.BINOMIALS | sym.ONE_ARGUMENT | sym.UPRIGHT | sym.TEXT_WRAPPERS
    ):
        end = index + 1
        for _ in range(2 if item.name in sym.FRACTIONS | sym.BINOMIALS else 1):
            _, end = _argument(items, end)
        return items[index:end], end
    return [item], index + 1


def _option(items: list[Any], index: int) -> tuple[list[Any] | None, int]:
    if index < len(items) and isinstance(items[index], Char) and items[index].text == "[":
        for end in range(index + 1, len(items)):
            if isinstance(items[end], Char) and items[end].text == "]":
                return items[index + 1 : end], end + 1
    return None, index


def _digit_at(items: list[Any], index: int) -> bool:
    return index < len(items) and isinstance(items[index], Char) and items[index].text.isdecimal()


def _digits_end(items: list[Any], index: int) -> int:
    while _digit_at(items, index):
        index += 1
    return index


def _separator(items: list[Any], index: int) -> int:
    """How many items separate two groups of digits at `index`: `,`, `{,}`, `\\,` or `,\\!`; 0 for none."""
    if index >= len(items):
        return 0
    item = items[index]
    if isinstance(item, Char) and item.text == ",":
        following = items[index + 1] if index + 1 < len(items) else None
        return 2 if isinstance(following, Macro) and following.name == "!" else 1
    thin = isinstance(item, Macro) and item.name == ","
    braced = isinstance(item, Group) and len(item.items) == 1 and getattr(item.items[0], "text", "") == ","
    return 1 if thin or braced else 0


def _dots_at(items: list[Any], index: int) -> bool:
    return all(
        index + k < len(items) and isinstance(items[index + k], Char) and items[index + k].text == "." for k in range(3)
    )


def _script_follows(items: list[Any], index: int) -> bool:
    while index < len(items) and isinstance(items[index], Char) and items[index].text.isspace():
        index += 1
    return index < len(items) and isinstance(items[index], Char) and items[index].text in "^_'"


def _skip_length(items: list[Any], index: int) -> int:
    """Past the optional `*` and `[2pt]` after a line's end."""
    text = "".join(i.text if isinstance(i, Char) else "\0" for i in items[index : index + 12])
    found = _SKIP_LENGTH.match(text)
    return index + (found.end() if found else 0)


def _tidy(tokens: list[Token]) -> list[Token]:
    """Drops borders of formulas that other tokens already show: next to words, punctuation or the ends."""
    out: list[Token] = []
    pending: Token | None = None
    for token in tokens:
        if token.kind == "break":
            pending = pending or token
            continue
        if pending is not None and out and _bare(out[-1], closing=True) and _bare(token, closing=False):
            out.append(pending)
        pending = None
        out.append(token)
    return out


def _bare(token: Token, *, closing: bool) -> bool:
    if token.kind in ("word", "figure") or (token.kind == "punct" and token.text not in "()[]"):
        return False
    if not token.math:
        return False
    return token.text not in (("(", "[", "\\{") if closing else (")", "]", "\\}"))


__all__ = ["MAX_DEPTH", "LatexError", "read"]
