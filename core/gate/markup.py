"""Takes the markup of web pages and Markdown off a text: entities, tags and emphasis. Knows no LaTeX and no meaning.

Only what a reader never sees goes, and only where it cannot be a sign: a tag needs its closing tag (`$a<b>c$` lacks
one), emphasis needs words inside and no number beside it (`2 *x* 3` is a product).
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from core.gate.emphasis import variables
from core.gate.escapes import doubled
from core.gate.hidden import hidden_characters

_ENTITIES = frozenset(
    "lt gt le ge ne amp nbsp quot apos lsquo rsquo ldquo rdquo ndash mdash hellip minus times divide middot sdot deg "  # noqa: SIM905
    "plusmn radic infin pi theta alpha beta gamma delta omega frac12 frac13 frac14 frac34 sup1 sup2 sup3 thinsp ensp "
    "emsp euro pound cent yen cap cup isin notin sum prod ang prime Prime and or rarr lfloor rfloor lceil rceil".split()
)
_ENTITY = r"&(?:#\d{2,6}|#x[0-9A-Fa-f]{2,5}|[A-Za-z]{2,8}\d{0,2});"
_TAG = r"</?(?:p|br|div|span|i|em|b|strong|u|sup|sub)(?: [^<>]{0,80})?\s?/?>|\[/?[biu]\]"
_FIGURE = r"\[asy\].*?\[/asy\]|<asy>.*?</asy>|\\begin\{(?:asy|tikzpicture)\}.*?\\end\{(?:asy|tikzpicture)\}"
_INSIDE = r"[^\W\d_][^*_\n$\\]*?[^\W_][.,:;!?]?"
_EMPHASIS = "|".join(
    rf"(?<![^\s(\"“>]){mark}(?=(?P<{name}>{_INSIDE}){mark}(?![\w*]))"
    for name, mark in (("two", r"\*\*"), ("one", r"\*"), ("low", "__"), ("line", "_"))
)
_ALL = re.compile(rf"(?P<figure>{_FIGURE})|(?P<entity>{_ENTITY})|(?P<tag>{_TAG})|{_EMPHASIS}", re.DOTALL)
# A text that speaks of its own print means it: `the underlined digit of 3<u>8</u>5`.
_OF_PRINT = re.compile(
    r"(?i)(?<![\\\w])(?:underlin|underscor|bold|italic|highlight|slanted"
    r"|(?:red|blue|green|colou?red|marked|indicated|shaded|circled|boxed) (?:digit|letter|number|term))"
)
_PRINTED_SO = re.compile(
    r"</?(?:span|i|em|b|strong|u)\b|\[/?[biu]\]|\*|\b_|_\b|\\(?:underline|uline|textbf|textit|emph|bf|it|color|boldsymbol)\b"
)
_FACTOR = re.compile(r"[\d)\]=+\-/(] *\Z|\A *[\d(=+/*]")
_MARKS = re.compile(r"[&<*_#]|\[/|\\\\|'''")
_WIKI_BOLD = re.compile(r"(?<![\w'])'''(?=([^\W\d_][^'\n$\\*]*[^\W_][.,:;!?]?)'''(?![\w']))")
_HEADING = re.compile(r"\s*#{1,6} +(?=\S)")
_BLOCKS = frozenset({"p", "br", "div"})
_SCRIPTS = {"sup": "^{", "sub": "_{"}


def unmarked(text: str) -> tuple[str, Sequence[int], Sequence[int]]:
    """`text` without markup, and where each of its characters starts and ends in `text`. Linear; does not raise.

    The places are ranges over `text` itself where there is no markup.
    """
    if not _MARKS.search(text):
        return text, range(len(text)), range(1, len(text) + 1)
    closing: set[int] = set()
    cuts: list[tuple[int, int, str]] = []
    if (heading := _HEADING.match(text)) is not None:
        cuts.append((heading.start(), heading.end(), ""))
    cuts.extend((place, place + 1, "") for place in doubled(text))
    cuts.extend(variables(text))
    for found in _WIKI_BOLD.finditer(text):
        if len(found.group(1)) > 3:
            after = found.end() + len(found.group(1))
            cuts += [(*found.span(), ""), (after, after + 3, "")]
    for found in _ALL.finditer(text, heading.end() if heading else 0):
        start, end = found.span()
        if found["entity"] is not None:
            char = _character(found["entity"])
            if char is not None:
                cuts.append((start, end, char))
        elif found["tag"] is not None:
            name = re.sub(r"[^a-z].*", "", found["tag"].lstrip("<[/"))
            partner = re.compile(rf"</{name}\s?>" if text[start] == "<" else rf"\[/{name}\]").search(text, end)
            if name == "br" or start in closing:
                cuts.append((start, end, _printed(name, closing=start in closing)))
            elif (
                partner is not None
                and name in ("b", "strong")
                and re.fullmatch(r"\s*[^\W\d_]\s*", text[end : partner.start()])
            ):
                continue  # one letter in bold is a vector
            elif partner is not None and _outside_formulas(text, start, end, partner.start()):
                closing.add(partner.start())
                cuts.append((start, end, _printed(name, closing=False)))
        elif found["figure"] is None:
            inside = next(v for v in (found["two"], found["one"], found["low"], found["line"]) if v is not None)
            letters = len(re.findall(r"[^\W\d_]", inside))
            sides = text[max(0, start - 3) : start], text[2 * end + len(inside) - start :][:3]
            ahead, behind = _FACTOR.search(sides[0]), _FACTOR.match(sides[1])
            factor, both = ahead or behind, ahead and behind
            if (letters > 3 and not both) or (letters > 1 and not factor):
                cuts.append((start, end, ""))
                cuts.append((end + len(inside), 2 * end + len(inside) - start, ""))
    return _cut(text, sorted(cuts))


def speaks_of_print(text: str) -> bool:
    """Whether a text tells what is underlined, bold or coloured in it and has such marks: none of them may go then."""
    return _OF_PRINT.search(text) is not None and _PRINTED_SO.search(text) is not None


def _outside_formulas(text: str, start: int, end: int, closing: int) -> bool:
    """Whether no formula of dollars begins or ends between a tag and its closing tag."""
    dollars = text.count("$", end, closing)
    return not dollars or (dollars % 2 == 0 and text.count("$", 0, start) % 2 == 0)


def _character(entity: str) -> str | None:
    name = entity[1:-1]
    if not name.startswith("#") and name not in _ENTITIES:
        return None
    char = html.unescape(entity)
    return None if len(char) != 1 or hidden_characters(char) else char


def _printed(name: str, *, closing: bool) -> str:
    if name in _BLOCKS:
        return "\n"
    if name in _SCRIPTS:
        return "}" if closing else _SCRIPTS[name]
    return ""


def _cut(text: str, cuts: list[tuple[int, int, str]]) -> tuple[str, list[int], list[int]]:
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    place = 0
    for start, end, new in [*cuts, (len(text), len(text), "")]:
        if start < place:
            continue  # two marks that overlap: the first stands
        pieces.append(text[place:start])
        starts.extend(range(place, start))
        ends.extend(range(place + 1, start + 1))
        pieces.append(new)
        starts.extend([start] * len(new))
        ends.extend([end] * len(new))
        place = end
    return "".join(pieces), starts, ends
