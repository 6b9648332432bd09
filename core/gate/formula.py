"""Writes a formula's tree as canonical tokens: what prints alike reads alike. Leaves running text to its subclass."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from typing import Any

from core.gate import symbols as sym
from core.gate.borders import DISPLAY_END
from core.gate.digits import number_at
from core.gate.latex_tree import (
    Char,
    Environment,
    Formula,
    Group,
    Macro,
    digit_at,
    dots_at,
    is_arc,
    lines_up,
    script_follows,
    skip_length,
    take_argument,
    take_option,
    wide_space,
)
from core.gate.rows import laid_out, one_row
from core.gate.symbols import DOUBLE_STRUCK
from core.gate.tokens import FIGURE_MASK, SCRIPTS, Token, letter, text_tokens

_OVER = {"over": "frac{", "choose": "binom{", "atop": "atop{"}
_ORDINAL = frozenset({"st", "nd", "rd", "th"})
_SWITCHES = {"bf": "mathbf", "cal": "mathcal", "frak": "mathfrak"}


class FormulaWriter(ABC):
    """Walks formulas and writes tokens to `out`. A subclass writes running text, figures and environments."""

    def __init__(self, source: str, original: str) -> None:
        self.source = source
        self.original = original
        self.out: list[Token] = []
        self._lowered = False

    @abstractmethod
    def prose(self, items: list[Any]) -> None:
        """Running text inside of a formula."""

    @abstractmethod
    def figure(self, start: int, end: int) -> None:
        """A figure's code in [start, end)."""

    @abstractmethod
    def environment(self, item: Environment, *, math: bool) -> None:
        """An environment, inside of a formula where `math`."""

    def formula(self, items: list[Any], start: int, end: int) -> None:
        self.out.append(Token("break", "¶", start, start, True))
        self.math(laid_out(items))
        display = self.source.startswith(("\\[", "$$", "\\begin"), start)
        self.out.append(Token("break", DISPLAY_END if display else "¶", end, end, True))

    def math(self, items: list[Any]) -> None:
        for position, item in enumerate(items):
            if isinstance(item, Macro) and item.name in _OVER:
                opening = _OVER[item.name]
                self.mark(opening, item.start, item.start)
                self.math(items[:position])
                self.mark("}{", item.start, item.end)
                self.math(items[position + 1 :])
                self.mark("}", item.end, item.end)
                return
        index = 0
        while index < len(items):
            index = self.math_item(items, index)

    def math_item(self, items: list[Any], index: int) -> int:
        item = items[index]
        if isinstance(item, Char):
            return self._math_char(items, index)
        if isinstance(item, Group) and _decimal_comma(items, index):
            self._sign("{,}", item)  # `2{,}5` is one number to some, `2,5` two
            return index + 1
        if isinstance(item, Group):
            first = item.items[0] if item.items else None
            wrapper = _SWITCHES.get(first.name) if isinstance(first, Macro) else None
            if wrapper is None:
                self.math(item.items)
            else:
                inner = [i for i in item.items[1:] if not (isinstance(i, Char) and i.text.isspace())]
                self.math([Macro(wrapper, item.start, item.start), Group(inner, item.start, item.end)])
            return index + 1
        if isinstance(item, Formula):
            self.math(item.items)
            return index + 1
        if isinstance(item, Environment):
            self.environment(item, math=True)
            return index + 1
        return self._math_macro(items, index)

    def _math_char(self, items: list[Any], index: int) -> int:
        char: Char = items[index]
        text = char.text
        if text.isspace() or text == "~":
            return index + 1
        if text.isdecimal() or (text == "." and digit_at(items, index + 1)):
            number, index = number_at(items, index, self.out, lowered=self._lowered)
            self.out.append(number)
            return index
        if text in "^_'′’":
            return self._scripts(items, index)
        if text == FIGURE_MASK:
            last = index
            while last + 1 < len(items) and isinstance(items[last + 1], Char) and items[last + 1].text == FIGURE_MASK:
                last += 1
            self.figure(char.start, items[last].end)
            return last + 1
        if text == "&":
            if not lines_up(items, index):
                self.out.append(Token("break", "¶", char.start, char.end, True))
            return index + 1
        if (variable := letter(text)) is not None:
            self.out.append(Token("letter", variable, char.start, char.end, True))
        elif text in DOUBLE_STRUCK:
            self._sign(f"\\mathbb{{{DOUBLE_STRUCK[text]}}}", char)
        elif text.isalpha() and text not in SCRIPTS:
            self.out.append(Token("letter", "$" + text, char.start, char.end, True))
        elif text == "." and dots_at(items, index):
            self._sign("…", Char("", char.start, items[index + 2].end))
            return index + 3
        elif text == "!":
            self._sign(text, char)
        elif text in ".,;:?()[]":
            self.out.append(Token("punct", text, char.start, char.end, True))
        else:
            for token in text_tokens(self.source, char.start, char.end):
                # between the signs of a formula a short dash is a minus
                text = "-" if token.text == "~-" or text == "–" else token.text
                self.out.append(token._replace(text=text, kind="sign" if text == "-" else token.kind, math=True))
        return index + 1

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
                argument, index = take_argument(items, index + 1)
                end = items[index - 1].end if index else end
                outer, self._lowered = self._lowered, item.text == "_"
                (sup if item.text == "^" else sub).extend(self._apart(argument))
                self._lowered = outer
            elif isinstance(item, Char) and item.text.isspace() and script_follows(items, index):
                index += 1
            else:
                break
        if sub:
            self.mark("_{", start, start)
            self.out.extend(sub)
            self.mark("}", end, end)
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
            self.mark("^{", start, start)
            self.out.extend(sup)
            self.mark("}", end, end)
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
        if name == "\\" or name in ("quad", "qquad", "cr", "newline", "hfill", "enspace") or wide_space(items, index):
            self.out.append(Token("break", "¶", macro.start, macro.end, True))
            if name in sym.DROP_WITH_ARGUMENT:
                return take_argument(items, index + 1)[1]
            return skip_length(items, index + 1) if name == "\\" else index + 1
        if name in ("bf", "bfseries"):
            self.mark("\\bf", macro.start, macro.end)  # `{\\bf v}` is a vector beside `v`
            return index + 1
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
        following = self.math_item(items, after)
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
        if name == "textsuperscript":
            argument, index = take_argument(items, index)
            self.raised(argument, macro)
        elif name in sym.TEXT_WRAPPERS:
            argument, index = take_argument(items, index)
            if name == "textbf" and len(argument) == 1 and isinstance(argument[0], Char) and argument[0].text.isalpha():
                self.mark("\\mathbf", start, macro.end)  # a vector
                self.mark("{", macro.end, macro.end)
                self.math(argument)
                self.mark("}", macro.end, macro.end)
                return index
            if not self._function(argument):
                self._words(argument)
        elif name in sym.UPRIGHT:
            argument, index = take_argument(items, index)
            self._upright(argument)
        elif name in sym.FRACTIONS or name in sym.BINOMIALS:
            top, index = take_argument(items, index)
            bottom, index = take_argument(items, index)
            self.mark("frac{" if name in sym.FRACTIONS else "binom{", start, macro.end)
            self.math(top)
            self.mark("}{", macro.end, macro.end)
            self.math(bottom)
            self.mark("}", macro.end, macro.end)
        elif name in ("pmod", "pod"):
            argument, index = take_argument(items, index)
            self.out.append(Token("punct", "(", start, macro.end, True))
            if name == "pmod":
                self._sign("mod", macro)
            self.math(argument)
            self.out.append(Token("punct", ")", macro.end, macro.end, True))
        elif name in sym.DROP_WITH_ARGUMENT:
            _, index = take_argument(items, index)
        elif name in sym.ONE_ARGUMENT:
            option, index = take_option(items, index) if name == "sqrt" else (None, index)
            argument, index = take_argument(items, index)
            name = sym.SAME_LOOK.get(name, name)
            single = argument[0].text if len(argument) == 1 and isinstance(argument[0], Char) else ""
            if single and (name == "mathbb" or (name == "mathbf" and single in sym.NUMBER_SETS)):
                self._sign(f"\\mathbb{{{single}}}", macro)
                return index
            self.mark(f"\\{name}", start, macro.end)
            if option is not None:
                self.mark("[", macro.end, macro.end)
                self.math(option)
                self.mark("]", macro.end, macro.end)
            self.mark("{", macro.end, macro.end)
            self.math(argument)
            self.mark("}", macro.end, macro.end)
        elif name == "substack" and one_row(take_argument(items, index)[0]):
            argument, index = take_argument(items, index)
            self.math(argument)  # rows that are one print as it stands
        elif name == "overset" and is_arc(items, index):
            _, index = take_argument(items, index)
            argument, index = take_argument(items, index)
            self.math([Macro("overarc", start, macro.end), Group(argument, macro.end, macro.end)])
        else:
            self.mark(f"\\{name}", start, macro.end)
            while index < len(items) and isinstance(items[index], Group):
                self.mark("{", items[index].start, items[index].start)
                self.math(items[index].items)
                self.mark("}", items[index].end, items[index].end)
                index += 1
        return index

    def raised(self, argument: list[Any], macro: Macro) -> None:
        """`\\textsuperscript{2}` as `^{2}`."""
        self._scripts([Char("^", macro.start, macro.end), Group(argument, macro.end, macro.end)], 0)

    def _function(self, argument: list[Any]) -> bool:
        """Writes a function's name that is set upright (`\\mathrm{lcm}`) as its command would; False for all else."""
        name = "".join(i.text for i in argument if isinstance(i, Char)).strip()
        if name not in sym.FUNCTIONS or any(not isinstance(i, Char) for i in argument):
            return False
        self.out.append(Token("sign", name, argument[0].start, argument[-1].end, True))
        return True

    def _upright(self, argument: list[Any]) -> None:
        """`\\mathrm{cm}` is a word; `\\mathrm{d}` and `\\mathrm{ABC}` are letters that stand upright."""
        text = "".join(i.text for i in argument if isinstance(i, Char))
        plain = len(argument) == len(text)
        word = text.strip(" ~")
        if self._function(argument):
            return
        unit = re.fullmatch(r"[A-Za-z]+(?:/[A-Za-z]+)?", word) is not None or word.isalpha()
        if plain and unit and len(word) > 1 and not word.isupper():
            self._words(argument)
        else:
            self.math(argument)

    def _words(self, argument: list[Any]) -> None:
        """Words inside of a formula: no border parts them from what follows, as `\\operatorname{rad}` shows."""
        first = len(self.out)
        self.prose(argument)
        self.out[first:] = [t._replace(math=True) if t.kind == "word" else t for t in self.out[first:]]

    def mark(self, text: str, start: int, end: int) -> None:
        self.out.append(Token("mark", text, start, end, True))

    def _sign(self, text: str, item: Any) -> None:
        self.out.append(Token("sign", text, item.start, item.end, True))


def _decimal_comma(items: list[Any], index: int) -> bool:
    item = items[index]
    comma = len(item.items) == 1 and isinstance(item.items[0], Char) and item.items[0].text == ","
    return comma and index > 0 and digit_at(items, index - 1) and digit_at(items, index + 1)
