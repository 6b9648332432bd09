"""Variables that a page sets in Markdown: `*P*` and `*AB*` for `$P$` and `$AB$`, `**R**` for a bold letter.

The stars go only where neither can multiply and where no other star of the text could mean anything.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"(?<![\w*\\])(?P<mark>\*\*?)(?P<name>[A-Za-z]|[A-Z]{2,4})(?P=mark)(?![\w*])")
_OTHER = re.compile(r"(?<![\w*])\*\*?[^\W\d_][^*\n$\\]*[^\W_][.,:;!?]?\*\*?(?![\w*])")
_FORMULA = re.compile(
    r"\$\$.{0,4000}?\$\$|\$[^$]*\$|\\\(.{0,4000}?\\\)|\\\[.{0,4000}?\\\]|\[asy\].{0,9000}?\[/asy\]"
    r"|\\begin\{(\w+\*?)\}.{0,4000}?\\end\{\1\}",
    re.DOTALL,
)
_BEFORE = re.compile(r"(?:\A|[^\W\d_]{2,}|[,;.:?!(\"“>=<≤≥≠+\-−–]) ?\Z|\n\Z")
_AFTER = re.compile(r"(?:\Z|\n| ?(?:[^\W\d_]{2,}|[,;.:?!)\"”<=>≤≥≠+\-−–]|['’]s\b))")
_LETTERS = re.compile(r"(?<![A-Za-z\\])[A-Za-z]+")
_TELLS = re.compile(r"\s*(?:=|:=|denotes?\b|means?\b|is defined|be defined)")


def variables(text: str) -> list[tuple[int, int, str]]:
    """The stars to take out of a text, as (start, end, what to put there). Empty where any star may be a sign."""
    if "*" not in text:
        return []
    formulas = [found.span() for found in _FORMULA.finditer(text)]
    plain = "".join(_spared(text, formulas))
    found = list(_NAME.finditer(plain))
    if not found or not all(_BEFORE.search(plain, max(0, f.start() - 30), f.start()) for f in found):
        return []
    bare = _OTHER.sub(" ", _NAME.sub(" ", plain))
    if not all(_AFTER.match(plain, f.end()) for f in found) or "*" in bare:
        return []
    # a name with and without stars: they may be a sign of their own, as in `Let *n* = n(n+1)`
    unmarked = set(_LETTERS.findall(bare)) - {"a", "A", "I"}
    in_formulas = {letters for span in formulas for letters in _LETTERS.findall(text, *span)}
    for f in found:
        told = len(f["name"]) == 1 and f["name"] in in_formulas and _TELLS.match(plain, f.end())
        if f["name"] in unmarked or told or (f["mark"] == "**" and len(f["name"]) > 1):
            return []
    cuts: list[tuple[int, int, str]] = []
    for f in found:
        bold = f["mark"] == "**"
        cuts.append((f.start(), f.start("name"), "$\\textbf{" if bold else ""))
        cuts.append((f.end("name"), f.end(), "}$" if bold else ""))
    return cuts


def _spared(text: str, formulas: list[tuple[int, int]]) -> list[str]:
    """The text with the stars and letters of its formulas blanked, place for place."""
    pieces, place = [], 0
    for start, end in formulas:
        pieces.append(text[place:start])
        pieces.append("0" * (end - start))
        place = end
    return [*pieces, text[place:]]
