"""Text of a model or a person as Markdown with formulas for `gr.Markdown`, with everything active taken out of it.

What stays: emphasis, lists, code, formulas. What goes: HTML, links, images, and dollar signs that are money.
"""

from __future__ import annotations

import re

from ui.render.html import visible

# A formula in dollars as Pandoc reads it: no space inside the signs, no digit right after the closing one, so that
# "$5 and $3" stays money.
_FORMULA = re.compile(
    r"\\\[(?P<square>.+?)\\\]"
    r"|\\\((?P<round>.+?)\\\)"
    r"|\$\$(?P<double>.+?)\$\$"
    r"|(?<![\\$])\$(?=\S)(?P<single>[^$\n]*?[^\s$\\])\$(?!\d)",
    re.DOTALL,
)
_BARE = re.compile(r"\\(?:boxed|frac|sqrt|text)\s*\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}(?:\{[^{}]*\})?")
# Commands of KaTeX that could name an address or a class; the renderer refuses them too.
_ACTIVE = re.compile(r"\\(?:href|url|includegraphics|html[A-Za-z]*|unicode|require|def|gdef|edef|let|newcommand)\b")
_ENTITIES = {
    "&": "&amp;", "<": "&lt;", ">": "&gt;", "[": "&#91;", "]": "&#93;", "!": "&#33;", "$": "&#36;", "{": "&#123;",
    "}": "&#125;", "~": "&#126;", "@": "&#64;", "|": "&#124;", "\\": "&#92;",
}  # fmt: skip
_SCHEME = re.compile(r"(?i)\b(https?|ftp|mailto|javascript|data|file|www)(?=[:.])")

DELIMITERS: list[dict[str, str | bool]] = [
    {"left": "\\[", "right": "\\]", "display": True},
    {"left": "\\(", "right": "\\)", "display": False},
]


def markdown(value: str, *, limit: int = 60_000) -> str:
    """Markdown that shows the text, formulas typeset, and can neither load nor run nor link to anything."""
    value = visible(value)
    cut = len(value) > limit
    value = value[:limit]
    parts: list[str] = []
    end = 0
    for match in _FORMULA.finditer(value):
        parts.append(_words(value[end : match.start()]))
        display = match.group("square") or match.group("double")
        parts.append(_formula(display or match.group("round") or match.group("single") or "", bool(display)))
        end = match.end()
    parts.append(_words(value[end:]))
    if cut:
        parts.append("\n\n*… the rest is left out here; the record holds the whole text.*")
    return "".join(parts)


def _words(value: str) -> str:
    parts: list[str] = []
    end = 0
    for match in _BARE.finditer(value):
        parts.append(_plain(value[end : match.start()]))
        parts.append(_formula(match.group(), False))
        end = match.end()
    parts.append(_plain(value[end:]))
    return "".join(parts)


def _plain(value: str) -> str:
    value = _SCHEME.sub(lambda match: match.group(1) + "\u2060", value)
    value = "".join(_ENTITIES.get(sign, sign) for sign in value)
    value = re.sub(r"(?m)^([ \t]*)(#+|=+|-{2,})(?=[ \t]*$|[ \t])", lambda m: m.group(1) + _coded(m.group(2)), value)
    value = re.sub(r"(?m)^ {4,}|^\t+", "", value)  # indentation would make it a code block, entities and all
    value = value.replace("`", "&#96;")
    return re.sub(r"(?<!\n)\n(?!\n)", "  \n", value)


def _coded(signs: str) -> str:
    return "".join(f"&#{ord(sign)};" for sign in signs)


def _formula(source: str, display: bool) -> str:
    if _ACTIVE.search(source) or ("<" in source and re.search(r"<[A-Za-z/!]", source)):
        return _plain(source)
    source = re.sub(r"\s*\n\s*", " ", source).strip()
    if not source:
        return ""
    return f"\\[{source}\\]" if display else f"\\({source}\\)"
