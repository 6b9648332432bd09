"""LaTeX as a tree of characters, commands, groups, formulas and environments, parsed with pylatexenc. Knows no meaning.

The parser is told of no macro's arguments; they are taken here, so that `\\frac12`, `\\frac 1 2` and
`\\frac{1}{2}` are one thing, as TeX has it, and `x^10` is `x^{1}0`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

from pylatexenc.latexwalker import LatexWalker
from pylatexenc.macrospec import EnvironmentSpec, LatexContextDb, MacroSpec

from core.gate import symbols as sym

MAX_DEPTH = 40
_ROW_ENDS = frozenset({"\\", "cr", "quad", "qquad", "phantom"})
_LINED_UP = frozenset("≤≥≠≪≫≡≈∼≃≅∝∈×÷·±∓→⇒⇔⟹⟺↦⊂⊆|")
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


def parse(source: str) -> list[Any]:
    """The tree of a text whose money and figures are masked. Raises `LatexError` on what cannot be read."""
    if _depth(source) > MAX_DEPTH:
        raise LatexError(f"braces or environments are nested more than {MAX_DEPTH} deep")
    try:
        nodes = LatexWalker(source, latex_context=_context(), tolerant_parsing=False).get_latex_nodes()[0]
        return _items(nodes)
    except LatexError:
        raise
    except Exception as error:  # the parser raises several kinds, and IndexError on some broken texts
        reason = " ".join(str(error).split())
        raise LatexError(f"not readable as LaTeX: {reason[:120]}") from error


def take_argument(items: list[Any], index: int) -> tuple[list[Any], int]:
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
            _, end = take_argument(items, end)
        return items[index:end], end
    return [item], index + 1


def take_option(items: list[Any], index: int) -> tuple[list[Any] | None, int]:
    given = index
    while index < len(items) and isinstance(items[index], Char) and items[index].text.isspace():
        index += 1
    if index < len(items) and isinstance(items[index], Char) and items[index].text == "[":
        for end in range(index + 1, len(items)):
            if isinstance(items[end], Char) and items[end].text == "]":
                return items[index + 1 : end], end + 1
    return None, given


def digit_at(items: list[Any], index: int) -> bool:
    return index < len(items) and isinstance(items[index], Char) and items[index].text.isdecimal()


def digits_end(items: list[Any], index: int) -> int:
    while digit_at(items, index):
        index += 1
    return index


def separator(items: list[Any], index: int) -> int:
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


def dots_at(items: list[Any], index: int) -> bool:
    return all(
        index + k < len(items) and isinstance(items[index + k], Char) and items[index + k].text == "." for k in range(3)
    )


def script_at(items: list[Any], index: int) -> bool:
    """Whether running text has a raised or lowered group here: `x^{2}`, `45^\\circ`, `a_{1}` without dollars."""
    item = items[index]
    if not isinstance(item, Char) or item.text not in "^_" or index + 1 >= len(items):
        return False
    before = items[index - 1] if index else None
    base = isinstance(before, Char) and (before.text.isalnum() or before.text in ")]|")
    return base and isinstance(items[index + 1], Group | Macro)


def script_follows(items: list[Any], index: int) -> bool:
    while index < len(items) and isinstance(items[index], Char) and items[index].text.isspace():
        index += 1
    return index < len(items) and isinstance(items[index], Char) and items[index].text in "^_'"


def skip_length(items: list[Any], index: int) -> int:
    """Past the optional `*` and `[2pt]` after a line's end."""
    text = "".join(i.text if isinstance(i, Char) else "\0" for i in items[index : index + 12])
    found = _SKIP_LENGTH.match(text)
    return index + (found.end() if found else 0)


def lines_up(items: list[Any], index: int) -> bool:
    """Whether the `&` at `index` only lines rows up: at a row's start or end, or beside a relation, or beside another
    sign while the row has no relation yet. Else it is a gap between two formulas."""
    related = _has_relation(items, index)
    for step in (-1, 1):
        place = index + step
        while 0 <= place < len(items) and _prints_nothing(items[place]):
            place += step
        if not 0 <= place < len(items):
            return True
        item = items[place]
        if isinstance(item, Macro) and item.name in _ROW_ENDS:
            return True
        if _is_relation(item) or (not related and _is_sign(item)):
            return True
    return False


def _is_relation(item: Any) -> bool:
    if isinstance(item, Char):
        return item.text in "=<>≤≥≠"
    return isinstance(item, Macro) and sym.SIGNS.get(item.name, "a")[0] in "≤≥<>≠=≡≈∼"


def _is_sign(item: Any) -> bool:
    if isinstance(item, Char):
        return item.text in "+-&"
    return isinstance(item, Macro) and sym.SIGNS.get(item.name, "a")[0] in _LINED_UP


def _has_relation(items: list[Any], index: int) -> bool:
    """Whether a relation stands in the row before `index`."""
    for item in reversed(items[:index]):
        if isinstance(item, Macro) and item.name in _ROW_ENDS:
            return False
        if _is_relation(item):
            return True
    return False


def wide_space(items: list[Any], index: int) -> bool:
    """Whether a space as wide as `\\quad` stands at `index`: `\\hspace{2em}`, or two of `\\ ` and `\\;` in a row."""
    name = items[index].name
    if name in _LENGTHS:
        argument, _ = take_argument(items, index + 1)
        found = _LENGTH.fullmatch("".join(i.text for i in argument if isinstance(i, Char)))
        return found is not None and float(found[1]) * _EMS[found[2]] >= 1
    following = items[index + 1] if index + 1 < len(items) else None
    return name in _THICK and isinstance(following, Macro) and following.name in _THICK


_LENGTHS = frozenset({"hspace", "hspace*", "mspace", "hskip"})
_LENGTH = re.compile(r"(\d{0,4}\.?\d{1,4}) ?(em|ex|cm|mm|pt|in|mu)")
_EMS = {"em": 1.0, "ex": 0.5, "cm": 2.5, "mm": 0.25, "pt": 0.1, "in": 7.0, "mu": 1 / 18}
_THICK = frozenset({" ", ";"})


def _prints_nothing(item: Any) -> bool:
    return (isinstance(item, Char) and item.text.isspace()) or (isinstance(item, Macro) and item.name in sym.SPACING)


def is_arc(items: list[Any], index: int) -> bool:
    argument, _ = take_argument(items, index)
    shown = [i for i in argument if not (isinstance(i, Char) and i.text.isspace())]
    return len(shown) == 1 and isinstance(shown[0], Macro) and shown[0].name == "frown"
