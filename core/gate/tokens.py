"""Words, numbers and signs of plain text, with their places. Knows Unicode and English spelling, not LaTeX."""

from __future__ import annotations

import re
import unicodedata
from typing import NamedTuple

from core.gate.symbols import DOUBLE_STRUCK, GREEK_LETTERS, UNICODE


class Token(NamedTuple):
    """One unit of the canonical form.

    kind: word, number, letter (a variable in a formula), sign, punct, mark (structure of a formula), break
    (the border of two formulas) or figure. `text` is the canonical spelling; [start, end) are character offsets in
    the original text.
    """

    kind: str
    text: str
    start: int
    end: int
    math: bool = False


_SUPER = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ", "0123456789+-=()ni", strict=True))
_SUB = dict(zip("₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₙᵢⱼₖₘₐₚₛₜₓ", "0123456789+-=()nijkmapstx", strict=True))
SCRIPTS = frozenset(_SUPER) | frozenset(_SUB)
_VULGAR = "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
_NOT_LETTER = "".join(_SUPER) + "".join(_SUB) + _VULGAR

CURRENCY_MASK = "\ue000"
PERCENT_MASK = "\ue001"
FIGURE_MASK = "\ue002"

_TEXT = re.compile(
    rf"""
    (?P<space>[\s\u00a0]+)
  | (?P<ordinal>\d+(?:st|nd|rd|th)\b)
  | (?P<number>(?<![\d,.])\d{{1,3}}(?:,\d{{3}})+(?!\d|,?\d)(?:\.\d+)?|\d+(?:\.\d+)?|(?<!\d)\.\d+)
  | (?P<word>[^\W\d_{_NOT_LETTER}][^\W_{_NOT_LETTER}]*(?:['’ʼ][^\W\d_{_NOT_LETTER}]+)*)
  | (?P<super>[{re.escape("".join(_SUPER))}]+)
  | (?P<sub>[{re.escape("".join(_SUB))}]+)
  | (?P<power>\^(?:\d+|[A-Za-z](?![A-Za-z])))
  | (?P<index>(?<=[A-Za-z])(?<![A-Za-z0-9_][A-Za-z])_(?:\d+|[A-Za-z])(?![\w{{]))
  | (?P<vulgar>[{_VULGAR}])
  | (?P<dots>\.{{3,}}|…|\.\s\.\s\.)
  | (?P<relation><=|>=|!=)
  | (?P<blank>_{{2,}})
  | (?P<double>``|''|["“”„«»])
  | (?P<single>['’‘ʼ`´′])
  | (?P<dash>---?|[–—―])
  | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CLITIC = re.compile(r"(?i)(.+?)(n't|'s|'re|'ve|'ll|'d|'m)$")
_FACTORIAL = re.compile(r"(?:\d|\)|(?<![A-Za-z])[A-Za-z])\Z")
_OPENS_A_TERM = frozenset("= < > ≤ ≥ ≠ ( [ , + · × /".split())  # noqa: SIM905
_ONLY_PUNCTUATION = frozenset(".,;:?!\"'()[]—")


def text_tokens(text: str, start: int, end: int) -> list[Token]:
    """Tokens of the plain text in [start, end); white space only separates. Linear in the length."""
    out: list[Token] = []
    for match in _TEXT.finditer(text, start, end):
        kind = match.lastgroup
        if kind == "space":
            continue
        raw, a, b = match.group(), match.start(), match.end()
        if kind == "word":
            _word(raw, a, b, out)
        elif kind == "number":
            out.append(Token("number", _number(raw, text, a, b), a, b))
        elif kind == "ordinal":
            out.append(Token("word", raw, a, b))
        elif kind == "super" or kind == "sub":
            table, mark = (_SUPER, "^{") if kind == "super" else (_SUB, "_{")
            out.append(Token("mark", mark, a, a))
            out.extend(_plain_digits("".join(table[c] for c in raw), a, b))
            out.append(Token("mark", "}", b, b))
        elif kind == "power" or kind == "index":
            out.append(Token("mark", "^{" if kind == "power" else "_{", a, a + 1))
            out.extend(_plain_digits(raw[1:], a + 1, b))
            out.append(Token("mark", "}", b, b))
        elif kind == "vulgar":
            top, _, bottom = unicodedata.normalize("NFKC", raw).partition("⁄")
            out.extend(fraction_tokens(top, bottom, a, b))
        elif kind == "dots":
            out.append(Token("sign", "…", a, b))
        elif kind == "relation":
            # `n!=6` may be a factorial that is 6: it is neither
            unequal = "≠" if text[a - 1 : a].isspace() else raw
            out.append(Token("sign", {"<=": "≤", ">=": "≥"}.get(raw, unequal), a, b))
        elif kind == "blank":
            # between digits or letters the length tells how many are missing: `4__6`
            inside = text[a - 1 : a].isalnum() or text[b : b + 1].isalnum()
            out.append(Token("sign", raw if inside else "____", a, b))
        elif kind == "double":
            out.append(Token("punct", '"', a, b))
        elif kind == "single":
            out.append(Token("punct", "'", a, b))
        elif kind == "dash":
            out.append(_dash(raw, text, a, b))
        else:
            _other(raw, text, a, b, out)
    return out


def fraction_tokens(top: str, bottom: str, start: int, end: int) -> list[Token]:
    """The canonical fraction of two numerals, as the LaTeX reader writes it."""
    return [
        Token("mark", "frac{", start, start),
        Token("number", top, start, end),
        Token("mark", "}{", end, end),
        Token("number", bottom, start, end),
        Token("mark", "}", end, end),
    ]


def letter(char: str) -> str | None:
    """The canonical spelling of a variable that is one Unicode sign (`𝑥`, `π`), or None."""
    if char in GREEK_LETTERS:
        return "$" + char
    if "\U0001d400" <= char <= "\U0001d7cb":
        if any(kind in unicodedata.name(char, "") for kind in ("BOLD", "SCRIPT", "FRAKTUR", "DOUBLE-STRUCK")):
            return None  # as `\mathbf{v}` is no `v`
        plain = unicodedata.normalize("NFKC", char)
        return "$" + plain if len(plain) == 1 and plain.isalpha() else None
    return None


def _plain_digits(text: str, start: int, end: int) -> list[Token]:
    return [
        Token("letter", "$" + part, start, end)
        if part.isalpha()
        else Token("number" if part[0].isdigit() else "sign", part, start, end)
        for part in re.findall(r"\d+|.", text)
    ]


def _word(raw: str, start: int, end: int, out: list[Token]) -> None:
    if len(raw) == 1 and (variable := letter(raw)) is not None:
        out.append(Token("letter", variable, start, end))
        return
    if len(raw) == 1 and raw in DOUBLE_STRUCK:
        out.append(Token("sign", f"\\mathbb{{{DOUBLE_STRUCK[raw]}}}", start, end))
        return
    text = unicodedata.normalize("NFC", raw.replace("’", "'").replace("ʼ", "'"))
    if not raw.isascii():
        text = "".join(UNICODE.get(c, c) for c in text)
        if any("\uff00" <= c <= "\uff5e" for c in text):
            text = "".join(unicodedata.normalize("NFKC", c) if "\uff00" <= c <= "\uff5e" else c for c in text)
    # `school 's` is how tokenised corpora print `school's`: the clitic is a word of its own in both.
    if "'" in text and len(text) == len(raw) and (parts := _CLITIC.match(text)) is not None:
        cut = start + len(parts.group(1))
        out.append(Token("word", parts.group(1), start, cut))
        out.append(Token("word", parts.group(2), cut, end))
        return
    # a clitic cut off by a corpus: the apostrophe came as a token before
    if out and out[-1].text == "'" and out[-1].end == start and text.lower() in {"s", "re", "ve", "ll", "d", "m"}:
        quote = out.pop()
        out.append(Token("word", "'" + text, quote.start, end))
        return
    out.append(Token("word", text, start, end))


def _number(raw: str, text: str, start: int, end: int) -> str:
    digits = "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in raw)
    if "," not in digits:
        return digits
    if _listed(text, start, end):
        return digits  # `(1,000)` may be a pair; left as it stands it merges with nothing else
    return digits.replace(",", "")


def _listed(text: str, start: int, end: int) -> bool:
    """Whether a number fills its bracket or stands beside a comma in one that holds no words: `(1,200,z)`."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before in ("(", "[", "{") and after in (")", "]", "}"):
        return True
    if not (before in ("(", "[", "{") or after in (")", "]", "}", ",")):
        return False
    opened = max(text.rfind(bracket, max(0, start - 60), start) for bracket in "([{")
    if opened < 0 or any(bracket in text[opened:start] for bracket in ")]}"):
        return False
    inside = re.split(r"[)\]}]", text[opened + 1 : end + 60], maxsplit=1)[0]
    return "," in inside.replace(text[start:end], "") and not re.search(r"[^\W\d_]{2}", inside)


def _dash(raw: str, text: str, start: int, end: int) -> Token:
    near = text[start - 1 : start] + text[end : end + 1]
    single = not text[start - 2 : start - 1].isalnum() or not text[end + 1 : end + 2].isalnum()
    operands = single and any(c.isalpha() or c in "()[]" for c in near) and not any(c.isspace() for c in near)
    if raw in ("–", "--") and (any(c.isdigit() for c in near) or operands):
        return Token("sign", raw, start, end)  # `5--3` may take away a negative number, `x–y` may be a difference
    return Token("punct", "—", start, end)


def _other(raw: str, text: str, start: int, end: int, out: list[Token]) -> None:
    around = text[start - 1 : start] + text[end : end + 1]
    if raw == "~" and len(around.strip()) == 2 and not around.isdecimal() and not around.isupper():
        return  # LaTeX's tie between two words; `~5` after a space says about 5
    if raw == CURRENCY_MASK:
        out.append(Token("sign", "\\$", start, end))
    elif raw == PERCENT_MASK:
        out.append(Token("sign", "%", start, end))
    elif raw == "!" and _FACTORIAL.search(text, max(0, start - 2), start):
        out.append(Token("sign", "!", start, end))  # a factorial in plain text: `5!`
    elif raw in _ONLY_PUNCTUATION:
        out.append(Token("punct", raw, start, end))
    else:
        sign = UNICODE.get(raw, raw)
        if sign == raw and (variable := letter(raw)) is not None:
            out.append(Token("letter", variable, start, end))
            return
        if sign == raw and "\uff01" <= raw <= "\uff5e":
            sign = unicodedata.normalize("NFKC", raw)
        spaced = text[start - 1 : start].isspace() and not text[end : end + 1].isspace()
        if sign == "-" and spaced and start > 0 and not (out and out[-1].text in _OPENS_A_TERM):
            sign = "~-"  # a sign before its number, not an operation: `5 -3` is not `5-3`
        out.append(Token("sign" if sign not in _ONLY_PUNCTUATION else "punct", sign, start, end))
