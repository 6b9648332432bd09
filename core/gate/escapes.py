"""Text whose backslashes were escaped once too often: `\\\\frac` for `\\frac`. Knows which commands there are."""

from __future__ import annotations

import re

from core.gate import symbols as sym

_RUN = re.compile(r"\\+")
_COMMAND = re.compile(r"[A-Za-z]+|.", re.DOTALL)
_DELIMITERS = frozenset("()[]{},;:!|%$&#_")
_KNOWN = frozenset(
    {"begin", "end", "not"}
    | set(sym.SIGNS)
    | set(sym.GREEK)
    | set(sym.FUNCTIONS)
    | set(sym.SPACING)
    | set(sym.FRACTIONS)
    | set(sym.BINOMIALS)
    | set(sym.ONE_ARGUMENT)
    | set(sym.TEXT_WRAPPERS)
    | set(sym.UPRIGHT)
    | set(sym.NAMED_ESCAPES)
    | {"pmod", "bmod", "quad", "qquad", "item", "displaystyle", "mathrm", "substack", "overset", "underset"}
)


def doubled(text: str) -> list[int]:
    """The places of the backslashes that are one too many: none where a single one is not doubled.

    A text whose only backslashes end its rows (`x=1\\\\y=2`) has no command behind them and stays.
    """
    runs = list(_RUN.finditer(text))
    if not runs or any((run.end() - run.start()) % 2 for run in runs):
        return []
    commands = 0
    formulas = 0
    for run in runs:
        if run.end() - run.start() != 2:
            continue
        found = _COMMAND.match(text, run.end())
        name = found.group() if found is not None else ""
        if len(name) > 1 and name in _KNOWN:
            # `y=x\\cos y` may be two rows
            row = name in sym.FUNCTIONS and text[run.start() - 1 : run.start()].isalnum()
            commands += len(name) > 2 and not row
        elif name not in _DELIMITERS or not name:
            return []
        formulas += name in ("(", "[")
    closed = formulas == len(re.findall(r"\\[)\]]", text))
    if not closed or not (commands or (formulas and "$" not in text)):
        return []
    return [place for run in runs for place in range(run.start(), run.end(), 2)]
