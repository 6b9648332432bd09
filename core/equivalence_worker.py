"""The process that compares two answers: math-verify proposes, exact arithmetic confirms.

Started and killed by `core/equivalence.py`, spoken to in JSON lines: {"id", "gold", "pred", "seconds"} in,
{"id", "outcome", "reason", "last"} out. Everything that can hang, crash or eat memory lives here and nowhere
else. It must not import torch, a user interface or the library; it writes no file.
"""

from __future__ import annotations

import json
import math
import os
import re
import sys
from typing import Any, TextIO

from core.answer import extract, normalise

_MEMORY_BYTES = 2 << 30
_LONGEST = 100_000  # characters; a longer "answer" is not one
_SHORT = 160  # up to here a text is an answer, not a solution that contains one
_DELIMITED = re.compile(r"\$|\\\(|\\\[|\\boxed|\\begin\{align")
_NUMBER_LIKE = re.compile(
    r"[-+]?\\?[$€£]?\s?(?:(?:\d{1,3}(?:[ ,]\d{3})+|\d+)(?:[.,]\d+)?|\.\d+)(?:\s?/\s?\d+)?\s?\$?"
    r"(?:[€£]|[a-zA-Z²³]{1,12}\.?)?"
)
_PROSE = re.compile(r"[A-Za-z]{2,}\s+[A-Za-z]{2,}\s+[A-Za-z]{2,}")
_PERCENT = re.compile(r"%|\b(?:percent(?:age)?|pct)\b", re.IGNORECASE)
_UNORDERED = re.compile(r"\\\{|\\pm|\\mp|\bor\b|\band\b|\}\s*,?\s*\\boxed|=")
_WITH_UNIT = re.compile(r"[-+\d.,/ ]*(?:\\frac\{\d+\}\{\d+\})?\s*[A-Za-z²³]{2,}(?:[ /][A-Za-z²³]+)*\.?")
_BROKEN = re.compile(r"(?<!\$)\$\s*\n[^$]*\n\s*\$(?!\$)|\\\(\s*\n")
_MARK = "\\Psi_{77}"
_BASE = re.compile(r"[0-9A-F]_\{?\s*(\d+)")
_UNIT = re.compile(
    r"[\d}]\s*\\(?:text|textbf|textnormal|mbox|mathrm)\{\s*([A-Za-z. /]+?)\.?\s*\}(\^\{?\d\}?)?"
    r"|\d\s*([A-Za-z]{1,20}|[²³€£]|\b[A-Za-z]{1,20}[²³])\s*\.?$"
)
_NOT_UNITS = {"and", "or", "i", "e", "x", "y", "z", "n", "pi", "percent", "percentage", "pct"}


def compare(gold: str, pred: str) -> tuple[str, str]:
    """(outcome, reason), outcome "equal", "different" or "unknown". May hang or raise; the caller has a deadline."""
    if max(len(gold), len(pred)) > _LONGEST:
        return "unknown", "an answer is longer than any answer should be"
    focus_gold, focus_pred = _focus(gold), _focus(pred)
    broken = any(_BROKEN.search(text) for text in (gold, pred))
    doubt = "a formula is broken over lines" if broken else _doubt(focus_gold, focus_pred)
    plain_gold, plain_pred = normalise(focus_gold), normalise(focus_pred)
    if not any(c.isalnum() for c in plain_gold) or not any(c.isalnum() for c in plain_pred):
        return "unknown", "an answer is empty"
    if doubt is None and plain_gold == plain_pred and max(len(gold), len(pred)) <= _SHORT:
        return "equal", "the same text"
    return _compare_parsed(gold, pred, doubt)


def _compare_parsed(gold: str, pred: str, doubt: str | None) -> tuple[str, str]:
    from math_verify import parse, verify

    from core.equivalence_exact import CONFIRMED, REFUTED, confirm

    gold, pred = _rewritten(gold), _rewritten(pred)
    parsed = [parse(_delimited(text), parsing_timeout=None) for text in (gold, pred)]
    golds, preds = ([item for item in items if not isinstance(item, str)] for items in parsed)
    if not golds or not preds:
        same = _words(_focus(gold)) == _words(_focus(pred)) != ""
        if same and doubt is None:
            return "equal", "the same words"
        return "unknown", f"{'the reference' if not golds else 'the answer'} cannot be read as mathematics"
    g, p = golds[0], preds[0]
    if not verify(g, p, timeout_seconds=None):
        return "different", "not the same value"
    doubt = doubt or _reordered(g, p, gold, pred)
    for text in (gold, pred):
        if doubt is None and _unread(text):
            doubt = "part of an answer cannot be read"
    if doubt is not None:
        same = normalise(_focus(gold)) == normalise(_focus(pred))
        return ("equal", "the same text") if same and doubt.startswith("part") else ("unknown", doubt)
    verdict = confirm(g, p)
    if verdict == CONFIRMED:
        return "equal", "the same value, confirmed exactly"
    if verdict == REFUTED:
        return "different", "the same only when rounded or read loosely"
    if _words(_focus(gold)) == _words(_focus(pred)) != "":
        return "equal", "the same words"
    return "unknown", "likely the same, but exact arithmetic could not confirm it"


def _focus(text: str) -> str:
    """The answer inside a longer text; a short text is the answer itself."""
    if len(text) <= _SHORT and "\\boxed" not in text:
        return _only_formula(text)
    found = extract(text)
    return found.answer if found else text


def _only_formula(text: str) -> str:
    """The formula in "Answer $ 9 $", if there is exactly one and only words stand in front of it."""
    match = re.fullmatch(r"[A-Za-z :*,']+(?:\$\$?|\\\(|\\\[)([^$]+?)(?:\$\$?|\\\)|\\\])\s*[.*]*", text.strip())
    return match.group(1).strip() if match else text


def _doubt(gold: str, pred: str) -> str | None:
    """What the parser would drop without a word and a reader would not: percent, number base, unit."""
    if bool(_PERCENT.search(gold)) != bool(_PERCENT.search(pred)):
        return "one is a percentage and the other is not"
    if _BASE.findall(gold) != _BASE.findall(pred):
        return "the number bases differ"
    words = [
        _letters(text) for text in (gold, pred) if re.fullmatch(r"[\s$]*(?:\\text\w*\{)?[A-Za-z]{3,}[\s}$.]*", text)
    ]
    if len(words) == 2 and words[0] != words[1]:
        return "different words"  # read as products of letters, "act" would be "cat"
    units = [_units(gold), _units(pred)]
    if units[0] and units[1] and units[0] != units[1]:
        return "the units differ"
    return None


def _units(text: str) -> set[str]:
    found = set()
    for in_text, power, bare in _UNIT.findall(text.strip().rstrip("$ ")):
        unit = re.sub(r"[\s.]", "", (in_text or bare)).casefold()
        if unit and unit not in _NOT_UNITS:
            stem = unit[:-1] if len(unit) > 3 and unit.endswith("s") else unit
            found.add(stem + re.sub(r"\D", "", power))
    return found


def _delimited(text: str) -> str:
    """A bare answer as a formula, so that the parser sees all of it and not only its last number."""
    bare = text.strip()
    if _DELIMITED.search(bare) or len(bare) > 2 * _SHORT or _NUMBER_LIKE.fullmatch(bare):
        return bare
    if _PERCENT.search(bare) and not re.search(r"\\[a-z]", bare):
        return bare
    return bare if _PROSE.search(bare) else f"${bare}$"


def _rewritten(text: str) -> str:
    """What writers mean and the parser misreads: 2^-99, 2**5, 1e5, 0.\\overline{3}, \\mathrm{e}, 4\\,000."""
    text = re.sub(r"\*\*", "^", text) if not re.search(r"\*\*\s*[A-Za-z]", text) else text
    text = re.sub(r"\^\s*([-+]?\d+)", r"^{\1}", text)
    text = re.sub(r"(?<![\w.])(\d+(?:\.\d+)?)[eE]([-+]?\d{1,4})(?!\w)", r"(\1 \\cdot 10^{\2})", text)
    text = re.sub(r"\\(?:mathrm|text)\s*\{\s*([ei])\s*\}", r"\1", text)
    text = re.sub(r"(?<=\d)\\,\s*(?=\d{3}(?!\d))", "", text)
    return re.sub(r"(\d+)\.(\d*)\\overline\s*\{(\d+)\}", _repeating, text)


def _repeating(match: re.Match[str]) -> str:
    """A repeating decimal as a fraction: 0.1\\overline{6} = (16 - 1) / 90."""
    whole, fixed, period = match.groups()
    numerator = int(whole + fixed + period) - int(whole + fixed)
    return rf"\frac{{{numerator}}}{{{(10 ** len(period) - 1) * 10 ** len(fixed)}}}"


def _unread(text: str) -> bool:
    r"""Whether the parser passes over part of an answer, which it does without a word.

    It reads 1.\overline{3} + 7 as 1: a mark set behind the answer must come out again. It takes the h of x + 2h
    for a unit: letters may only go missing as a word behind a number. Prose cannot be tested and is let through.
    """
    from math_verify import parse

    answer = normalise(_focus(text)).replace("$", " ").strip()
    if _PROSE.search(re.sub(r"\\[a-zA-Z]+", " ", answer)) or _PERCENT.search(answer):
        return False
    if _NUMBER_LIKE.fullmatch(answer):
        return bool(re.search(r"\d\s*[A-Za-z]\.?$", answer))
    read = [item for item in parse(f"${answer}$", parsing_timeout=None) if isinstance(item, str)]
    if not read or read[-1].count("{") != read[-1].count("}"):
        return True
    if len(_symbols(read[-1])) < len(_symbols(answer)) and not _WITH_UNIT.fullmatch(answer):
        return True
    for marked in (
        f"{answer} + {_MARK}",
        f"{answer}, {_MARK}",
        rf"{answer} \cdot {_MARK}",
        rf"{answer} \cup \{{{_MARK}\}}",
    ):
        for item in parse(f"${marked}$", parsing_timeout=None)[:1]:
            if not isinstance(item, str) and any("77" in str(symbol) for symbol in item.free_symbols):
                return False
    return True


def _symbols(text: str) -> str:
    """The letters of an answer that may be variables."""
    return re.sub(r"\\[a-zA-Z]+|\b(?:and|or)\b|[^A-Za-z]", "", text)


def _reordered(gold: Any, pred: Any, gold_text: str, pred_text: str) -> str | None:
    """A plain list in another order is doubtful; a set, "x or y", roots and lists of points have no order."""
    from sympy import FiniteSet, Number

    if not (isinstance(gold, FiniteSet) and isinstance(pred, FiniteSet)) or _UNORDERED.search(
        gold_text + " " + pred_text
    ):
        return None
    rows = [list(getattr(item, "_unsorted_args", item.args)) for item in (gold, pred)]
    if not all(isinstance(item, Number) for row in rows for item in row) or len(rows[0]) != len(rows[1]):
        return None
    same = all(abs(g - p) < 1e-6 for g, p in zip(*rows, strict=True))
    return None if same else "the same items in another order"


def _letters(text: str) -> str:
    stripped = re.sub(r"\\(?:text\w*|mbox|mathrm|mathbf|boxed)|\\[,;!: ]", " ", text)
    return "".join(c for c in stripped.casefold() if c.isalpha())


def _words(text: str) -> str:
    """The text without case, spaces and wrapping; every sign stays, so that A∪B is not A∩B."""
    plain = re.sub(r"\\(?:text\w*|mbox|mathrm|mathbf|boxed)|\\[,;!: ]", " ", normalise(text))
    squeezed = re.sub(r"[\s${}]|\.$", "", plain).casefold()
    return squeezed if any(c.isalnum() for c in squeezed) else ""


def limit_memory() -> None:
    """Caps this process's address space where the system can."""
    try:
        import resource
    except ImportError:  # not a POSIX system: the deadline alone protects
        return
    try:
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY_BYTES, _MEMORY_BYTES))
    except (ValueError, OSError):
        return  # macOS refuses this limit


def limit_seconds(seconds: float) -> None:
    """Ends this process if one comparison burns that much processor time, even when nobody is left to kill it."""
    try:
        import resource
    except ImportError:
        return
    usage = resource.getrusage(resource.RUSAGE_SELF)
    soft = math.ceil(usage.ru_utime + usage.ru_stime + seconds) + 2
    try:
        resource.setrlimit(resource.RLIMIT_CPU, (soft, resource.getrlimit(resource.RLIMIT_CPU)[1]))
    except (ValueError, OSError):
        return


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answers until the requests end. After running out of memory it says so, marked `last`, and leaves."""
    _say(replies, {"ready": True})
    for line in requests:
        request = json.loads(line)
        limit_seconds(float(request["seconds"]))
        last = False
        try:
            outcome, reason = compare(request["gold"], request["pred"])
        except (MemoryError, RecursionError) as error:
            outcome, reason, last = "unknown", f"too large to compare ({type(error).__name__})", True
        except Exception as error:
            outcome, reason = "unknown", f"could not be compared ({type(error).__name__})"
        _say(replies, {"id": request["id"], "outcome": outcome, "reason": reason, "last": last})
        if last:
            return


def _say(replies: TextIO, message: dict[str, Any]) -> None:
    replies.write(json.dumps(message) + "\n")
    replies.flush()


def main() -> None:
    # A library that prints must not speak in the protocol's name: replies keep their own descriptor.
    replies = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    limit_memory()
    compare("1/2", "2/4")  # imports and grammar tables, before "ready", so that no deadline pays for them
    serve(sys.stdin, replies)


if __name__ == "__main__":
    main()
