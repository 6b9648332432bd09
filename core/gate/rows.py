"""Formulas one below the other that sites set in an array, in aligned rows or as cases. Reads the tree, not tokens."""

from __future__ import annotations

from typing import Any

from core.gate import symbols as sym
from core.gate.latex_tree import Char, Environment, Group, Macro, take_argument

_RELATIONS = frozenset("=<>≤≥≠")
_NAMES = frozenset({"=", "<", ">", "≤", "≥", "≠", "≡"})
_ALIGNED = frozenset({"aligned", "gathered", "split"})


def laid_out(items: list[Any]) -> list[Any]:
    """A formula's tree in which an array of one formula a row is aligned rows, and aligned rows after a brace cases.

    Does not mutate `items`; gives them back where there is neither.
    """
    if not any(isinstance(item, Environment) for item in items):
        return items
    shown = [k for k, item in enumerate(items) if not _blank(item)]
    first = items[shown[0]]
    rest = [items[k] for k in shown[1:]]
    if isinstance(first, Environment) and all(isinstance(i, Char) and i.text in ",.;" for i in rest):
        body = _column(first)
        if body is not None:
            return [Environment("aligned", body, first.start, first.end), *rest]
    out = list(items)
    for a, b, c, d, e in zip(shown, shown[1:], shown[2:], shown[3:], shown[4:], strict=False):
        env = items[c]
        braced = _named(items[a], "left") and _named(items[b], "{", "lbrace") and _named(items[d], "right")
        if braced and isinstance(env, Environment) and env.name in _ALIGNED and getattr(items[e], "text", "") == ".":
            out[c] = env._replace(name="matrix")
    return out


def beside_relation(before: list[Any], after: list[Any]) -> bool:
    """Whether what stands before or after a `&` ends or begins with a relation: no entry does, so it lines up."""
    for items in (before[::-1], after):
        shown = next((i for i in items if not (isinstance(i, Char) and i.text.isspace())), None)
        if _relation(shown):
            return True
    return False


def without_stop(cell: list[Any]) -> list[Any]:
    """A row's last entry without the comma or full stop that some sites set after it: the row's end shows it."""
    last = len(cell)
    while last and isinstance(cell[last - 1], Char) and cell[last - 1].text.isspace():
        last -= 1
    stop = last > 1 and isinstance(cell[last - 1], Char) and cell[last - 1].text in ",.;"
    return cell[: last - 1] if stop else cell


def one_row(items: list[Any]) -> bool:
    return not any(_named(item, "\\", "cr") for item in items)


def _column(item: Environment) -> list[Any] | None:
    """The rows of an array in which each row is one formula with a relation; None for every other environment."""
    if item.name != "array":
        return None
    columns, cut = take_argument(item.items, 0)
    body = item.items[cut:]
    if cut > 2 or not columns or any(not isinstance(c, Char) or c.text not in "lcr " for c in columns):
        return None
    rows: list[list[Any]] = [[]]
    for part in body:
        if _named(part, "\\", "cr"):
            rows.append([])
        elif isinstance(part, Macro | Char | Group) and not _named(part, "hline", "cline", "multicolumn"):
            rows[-1].append(part)
        else:
            return None
    if all(map(_blank, rows[-1])):
        rows.pop()
    for row in rows:
        marks = [k for k, part in enumerate(row) if isinstance(part, Char) and part.text == "&"]
        if not any(map(_relation, row)) or not all(beside_relation(row[:k], row[k + 1 :]) for k in marks):
            return None
    return body


def _relation(item: Any) -> bool:
    if isinstance(item, Char):
        return item.text in _RELATIONS
    return isinstance(item, Macro) and sym.SIGNS.get(item.name) in _NAMES


def _named(item: Any, *names: str) -> bool:
    return isinstance(item, Macro) and item.name in names


def _blank(item: Any) -> bool:
    return (isinstance(item, Char) and item.text.isspace()) or (
        isinstance(item, Macro) and item.name != "right" and item.name != "left" and item.name in sym.SPACING
    )
