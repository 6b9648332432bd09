"""Finds the final answer in a model's text, and brings answers into one form for display and grouping.

Pure text work. It must not know whether an answer is right, which model wrote it, or how two answers that
look different may still be equal (that is `core/equivalence.py`). The text is data: nothing in it is obeyed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

METHODS = ("boxed", "hashes", "answer_is", "answer_label", "choice", "last_number")
STATED = frozenset(METHODS[:5])  # the text itself says "this is the answer"; a last number is only a guess

_NUMBER = r"(?:\d{1,3}(?:,\d{3})+(?![\d])|\d+)(?:\.\d+)?|\.\d+"
_LAST_NUMBER = re.compile(
    rf"(?<![\w.\\])(?:(?<![\w)}}])[-−+])?(?:\\[dtc]?frac\s*\{{[^{{}}]{{1,80}}\}}\s*\{{[^{{}}]{{1,80}}\}}"
    rf"|(?:{_NUMBER})(?:\s?/\s?(?:{_NUMBER}))?)(?:\s?\\?%)?"
)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*")
_HASHES = re.compile(r"^[ \t]*#{4}[ \t]*(\S[^\n]*)", re.MULTILINE)
_ANSWER_IS = re.compile(
    r"\b(?:final\s+|correct\s+)?(?:answer|result)(?:\s+to\s+[^.\n]{1,60}?)?\s+(?:is|=)\s*:?\s*(?=(\S[^\n]{0,400}))",
    re.IGNORECASE,
)
_ANSWER_LABEL = re.compile(r"\b(?:answer|ans)\W{0,6}?[:=]\s*(?=(\S[^\n]{0,400}))", re.IGNORECASE)
_CHOICE = re.compile(r"\b(?:option|choice)\s*:?\s*\(?\*{0,2}([A-E])\*{0,2}\)?(?![\w'’])", re.IGNORECASE)
_ONLY_CHOICE = re.compile(r"\s*\(?\*{0,2}([A-E])\*{0,2}(?:\)|\.|\s|$)[^\n]{0,200}\s*", re.DOTALL)
_SENTENCE_END = re.compile(r"[.!?](?=\s|\*|$)|\s+(?=I hope\b)|<\|")


@dataclass(frozen=True)
class Extracted:
    """An answer as written, how it was found (one of `METHODS`), and where: `text[span[0]:span[1]]` holds it."""

    answer: str
    method: str
    span: tuple[int, int]


def extract(text: str) -> Extracted | None:
    """The final answer of `text`, by the most explicit statement in it; the last one where several say so.

    In order: a balanced box, `#### x`, "the answer is x", "answer: x", a choice letter A to E, the last number.
    None when there is nothing of the kind. Does not raise; time grows linearly with the text.
    """
    for find in (_boxed, _hashes, _answer_is, _answer_label, _choice, _last_number):
        found = find(text)
        if found is not None:
            return found
    return None


def split_thinking(text: str, open_marker: str | None, close_marker: str | None) -> tuple[str, str]:
    """(thinking, answer text) of a reasoning model's output, both stripped.

    A template may have written the opening marker into the prompt already: text up to a first close marker is
    then thinking. Thinking that never closes leaves no answer text. Without markers all of it is answer.
    """
    if not open_marker or not close_marker:
        return "", text.strip()
    thinking: list[str] = []
    answer: list[str] = []
    opened, closed = text.find(open_marker), text.find(close_marker)
    if closed >= 0 and (opened < 0 or closed < opened):
        thinking.append(text[:closed])
        text = text[closed + len(close_marker) :]
    while (opened := text.find(open_marker)) >= 0:
        answer.append(text[:opened])
        inside, marker, text = text[opened + len(open_marker) :].partition(close_marker)
        thinking.append(inside)
        if not marker:
            break
    answer.append(text)
    return "\n".join(part.strip() for part in thinking).strip(), "".join(answer).strip()


def normalise(answer: str) -> str:
    """One written form for answers that differ in notation only; the same value is never claimed beyond that.

    Removes what carries no meaning: math delimiters, boxes, emphasis, LaTeX spacing, a full stop at the end,
    a currency sign in front, a `\\text{unit}` behind a number, grouping of thousands, trailing zeros of a
    decimal. Keeps percent signs, order, signs, words.
    """
    text = answer.strip()
    previous = None
    while previous != text:
        previous = text
        text = _peel(text)
    for pattern, replacement in _REWRITES:
        text = pattern.sub(replacement, text)
    text = re.sub(r"\s+", " ", text).strip()
    choice = re.fullmatch(r"\(?([A-E])\)?[.:]?", text)
    if choice:
        return choice.group(1)
    return _plain_number(text)


_TEXT = "(?:text|textbf|textnormal|mbox|mathrm)"
_REWRITES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (r"\\left(?![a-z])|\\right(?![a-z])", ""),
        (r"(?<=\d),\\!\s*(?=\d{3})|(?<=\d)\{,\}(?=\d{3})", ""),
        (r"\\[,!;: ]|\\quad\b|\\qquad\b|~", " "),
        (r"\\[dtc]frac", r"\\frac"),
        (r"\\frac\s*(\d)\s*(\d)", r"\\frac{\1}{\2}"),
        (r"\\frac\s*(\d)\s*\{", r"\\frac{\1}{"),
        (r"\\sqrt\s*(\d)", r"\\sqrt{\1}"),
        (r"^\\?[$€£]\s*(?=[\d.][^$]*$)", ""),
        (rf"(?<=[\d}}])\s*\\{_TEXT}\{{(?!\s*[ei]\s*\}})\s*[A-Za-z. ]+\}}(?:\^\{{?[23]\}}?)?$", ""),
        (r"\\(?:text|textbf|textit|textnormal|mbox|mathrm|mathbf)\s*\{([^{}]*)\}", r"\1"),
        (r"\s*\\%", "%"),
        (r"(?<=\d)\s+%", "%"),
        ("−", "-"),
    )
)


def _peel(text: str) -> str:
    """Without one layer of wrapping that has no meaning of its own."""
    text = text.strip().rstrip("\\").strip()
    if len(text) > 1 and text.endswith((".", ",", ";")) and not text.endswith(".."):
        text = text[:-1].rstrip()
    for start, end in (("$$", "$$"), ("$", "$"), ("\\(", "\\)"), ("\\[", "\\]"), ("**", "**"), ("`", "`")):
        if len(text) > len(start) + len(end) and text.startswith(start) and text.endswith(end):
            inside = text[len(start) : -len(end)]
            if start not in inside:
                return inside.strip()
    box = _BOX.match(text)
    if box and text[box.end() : box.end() + 1] == "{" and _closing(text, box.end()) == len(text) - 1:
        return text[box.end() + 1 : -1].strip()
    return text


def _plain_number(text: str) -> str:
    number = re.fullmatch(r"([-+]?)\s?((?:\d{1,3}(?:,\d{3})+|\d*)(?:\.\d+)?)(%?)", text)
    if number is None or not number.group(2):
        return text
    sign, digits, percent = number.groups()
    whole, _, decimals = digits.replace(",", "").partition(".")
    whole, decimals = whole.lstrip("0") or "0", decimals.rstrip("0")
    value = f"{whole}.{decimals}" if decimals else whole
    return f"{'-' if sign == '-' and value != '0' else ''}{value}{percent}"


def _closing(text: str, opening: int) -> int | None:
    """Index of the brace that closes the one at `opening`; escaped braces do not count."""
    depth, i = 0, opening
    while i < len(text):
        if text[i] == "\\":
            i += 2
            continue
        depth += (text[i] == "{") - (text[i] == "}")
        if depth == 0:
            return i
        i += 1
    return None


def _boxed(text: str) -> Extracted | None:
    # A box that never closes is skipped by looking no further than the next one: no quadratic scan of "\boxed{" x n.
    end = len(text)
    for match in reversed(list(_BOX.finditer(text))):
        start = match.end()
        if text[start : start + 1] == "{":
            closing = _closing(text[:end], start)
            inside = text[start + 1 : closing] if closing is not None else ""
            if inside.strip():
                return Extracted(inside.strip(), "boxed", (start + 1, start + 1 + len(inside)))
        elif bare := re.compile(r"[-\w.]+").match(text, start):
            return Extracted(bare.group().rstrip("."), "boxed", bare.span())
        end = match.start()
    return None


def _hashes(text: str) -> Extracted | None:
    return _last(_HASHES, text, "hashes")


def _answer_is(text: str) -> Extracted | None:
    return _last(_ANSWER_IS, text, "answer_is")


def _answer_label(text: str) -> Extracted | None:
    return _last(_ANSWER_LABEL, text, "answer_label")


def _last(pattern: re.Pattern[str], text: str, method: str) -> Extracted | None:
    for match in reversed(list(pattern.finditer(text))):
        start, raw = match.start(1), match.group(1)
        if method != "hashes":
            end = _SENTENCE_END.search(raw)
            raw = raw[: end.start()] if end else raw
        answer = _cleaned(raw)
        if any(c.isalnum() for c in answer):
            begin = start + raw.find(answer)
            return Extracted(answer, method, (begin, begin + len(answer)))
    return None


def _cleaned(raw: str) -> str:
    """The statement without emphasis and closing punctuation; its only formula, or its leading choice letter."""
    answer = raw.strip().strip("*_` ").rstrip(".,;:").strip("*_` ")
    formulas = re.findall(r"\$([^$]+)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", answer)
    if len(formulas) == 1:
        return next(part for part in formulas[0] if part).strip()
    letter = re.match(r"\(?([A-E])(?:\)|[.:](?=\s|$))", answer)
    return letter.group(1) if letter else answer


def _choice(text: str) -> Extracted | None:
    found = list(_CHOICE.finditer(text))
    match = found[-1] if found else _ONLY_CHOICE.fullmatch(text)
    if match is None or (not found and match.group(1) == "A" and not re.match(r"\s*\(?\*{0,2}A[).*]|\s*A\s*$", text)):
        return None  # "A train leaves ..." begins with an article
    return Extracted(match.group(1).upper(), "choice", match.span(1))


def _last_number(text: str) -> Extracted | None:
    match = None
    for match in _LAST_NUMBER.finditer(text):  # noqa: B007  (the last one is wanted)
        pass
    if match is None:
        return None
    answer = match.group().strip()
    begin = match.start() + match.group().find(answer)
    return Extracted(answer, "last_number", (begin, begin + len(answer)))
