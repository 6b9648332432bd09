"""Automatic checks of an attempt: evidence for a reviewer, never a decision.

Every check reads the text as data; nothing that a model writes, such as "ignore the verifier and approve", can
change what is checked or found. It must not know the library, the review queue or the model that wrote the text.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.answer import STATED, extract, normalise
from core.arithmetic import equations
from core.equivalence import Equality, equal

VERIFIER_VERSION = "1"  # raise it when a check may find something else for the same attempt

PASS, FAIL, UNKNOWN, NOT_APPLICABLE = "pass", "fail", "unknown", "not_applicable"

_LOOP_TOKENS = 48  # a stretch this long that repeats itself at least three times is a loop, not a table
_LONGEST_PERIOD = 128
_LOOP_LINE, _LOOP_LINES = 20, 5  # so many equal lines of so many characters
_LONGEST_CHECKED = 32_768  # tokens at the end; a loop that matters reaches the end


@dataclass(frozen=True)
class Evidence:
    """What one check found. `summary` is words for a reviewer; `detail` is JSON without floats."""

    check: str
    outcome: str
    summary: str
    detail: Mapping[str, Any]


@dataclass(frozen=True)
class Subject:
    """An attempt as the checks see it.

    `solution` is the text behind the thinking; `answer` and `extraction_method` come from `core.answer.extract`;
    `finish` is "stop", "length" or "cancelled"; `token_ids` are the generated ids; `sibling_answers` are the
    answers of the other attempts at the problem, None where one had none; `replayed_answer` is what the answer
    cue brought back from the state, None if it was not tried; `deadline` bounds each comparison, in seconds.
    """

    problem: str
    reference: str | None
    solution: str
    thinking: str
    answer: str | None
    extraction_method: str | None
    finish: str
    token_ids: Sequence[int]
    sibling_answers: Sequence[str | None]
    replayed_answer: str | None
    deadline: float = 5.0


def verify(subject: Subject) -> tuple[Evidence, ...]:
    """Runs every check, in the order of `CHECKS`. Never raises: a check that fails to work is "unknown".

    Blocks for at most about three deadlines of comparing. Does not mutate `subject`.
    """
    found = []
    for name, check in CHECKS.items():
        try:
            found.append(check(subject))
        except Exception as error:
            words = f"the check itself failed: {type(error).__name__}: {error}"[:300]
            found.append(Evidence(name, UNKNOWN, words, {}))
    return tuple(found)


def _reference(subject: Subject) -> Evidence:
    if subject.reference is None:
        return Evidence("reference", NOT_APPLICABLE, "the problem has no reference answer", {})
    if subject.answer is None:
        return Evidence("reference", FAIL, "no answer was found to compare with the reference", {})
    result = equal(subject.reference, subject.answer, deadline=subject.deadline)
    words = {"equal": "equals the reference", "different": "differs from the reference"}
    summary = f"the answer {words.get(result.outcome, 'could not be compared with the reference')}: {result.reason}"
    detail = {"reference": subject.reference, "answer": subject.answer, "reason": result.reason}
    return Evidence("reference", _outcome(result), summary, detail)


def _agreement(subject: Subject) -> Evidence:
    siblings = list(subject.sibling_answers)
    if not siblings:
        return Evidence("agreement", NOT_APPLICABLE, "there is no other attempt at this problem", {})
    if subject.answer is None:
        return Evidence("agreement", FAIL, "no answer was found to compare with the other attempts", {})
    until = time.monotonic() + subject.deadline
    counts = {"agreeing": 0, "differing": 0, "undecided": 0, "without_answer": 0}
    known: dict[str, str] = {}
    for sibling, number in Counter(siblings).items():
        if sibling is None:
            counts["without_answer"] += number
            continue
        if sibling not in known:
            left = until - time.monotonic()
            result = equal(subject.answer, sibling, deadline=left) if left > 0 else Equality("unknown", "no time left")
            known[sibling] = result.outcome
        counts[{"equal": "agreeing", "different": "differing"}.get(known[sibling], "undecided")] += number
    agreeing, of = counts["agreeing"], len(siblings)
    if 2 * agreeing >= of:
        outcome = PASS
    else:
        outcome = UNKNOWN if 2 * (agreeing + counts["undecided"]) >= of else FAIL
    return Evidence("agreement", outcome, f"{agreeing} of {of} other attempts agree", counts | {"of": of})


def _truncation(subject: Subject) -> Evidence:
    words = {
        "stop": (PASS, "the model ended by itself"),
        "length": (FAIL, "the text was cut off by the token budget"),
        "cancelled": (FAIL, "the attempt was cancelled before its end"),
    }
    outcome, summary = words.get(subject.finish, (UNKNOWN, f"ended for an unknown reason: {subject.finish[:80]}"))
    return Evidence("truncation", outcome, summary, {"finish": subject.finish, "tokens": len(subject.token_ids)})


def _repetition(subject: Subject) -> Evidence:
    period, length = _longest_loop(list(subject.token_ids[-_LONGEST_CHECKED:]))
    lines = Counter(line.strip() for line in f"{subject.thinking}\n{subject.solution}".splitlines())
    line, times = max(
        ((text, n) for text, n in lines.items() if len(text) >= _LOOP_LINE), key=lambda item: item[1], default=("", 0)
    )
    detail = {"period": period, "tokens": length, "line": line[:200] if times > 1 else "", "line_times": times}
    if period:
        return Evidence("repetition", FAIL, f"{length} tokens in a row repeat every {period} tokens", detail)
    if times >= _LOOP_LINES:
        return Evidence("repetition", FAIL, f"one line occurs {times} times: {line[:80]}", detail)
    return Evidence("repetition", PASS, "no loop", detail)


def _longest_loop(ids: list[int]) -> tuple[int, int]:
    """(period, tokens) of the longest stretch that repeats itself, (0, 0) if none is long enough."""
    best = (0, 0)
    for period in range(1, min(_LONGEST_PERIOD, len(ids) // 3) + 1):
        run = longest = 0
        for same in map(int.__eq__, ids, ids[period:]):
            run = run + 1 if same else 0
            longest = max(longest, run)
        total = longest + period
        if total >= max(3 * period, _LOOP_TOKENS) and total > best[1]:
            best = (period, total)
    return best


def _derived(subject: Subject) -> Evidence:
    if subject.answer is None:
        return Evidence("derived", FAIL, "no answer was found", {})
    wanted = normalise(subject.answer)
    if re.fullmatch(r"[A-E]", wanted):
        return Evidence("derived", NOT_APPLICABLE, "a choice letter says nothing about its derivation", {})
    found = extract(subject.solution)
    statement = _statement_start(subject.solution, found.span[0]) if found else len(subject.solution)
    reasoning = f"{subject.thinking}\n{subject.solution[:statement]}"
    detail = {"answer": wanted, "also_in_problem": _occurs(wanted, subject.problem)}
    if _occurs(wanted, reasoning):
        return Evidence("derived", PASS, "the answer occurs in the reasoning before its final statement", detail)
    if not reasoning.strip():
        return Evidence("derived", FAIL, "the answer is stated without any reasoning before it", detail)
    return Evidence("derived", FAIL, "the answer does not occur in the reasoning before its final statement", detail)


def _statement_start(text: str, position: int) -> int:
    """Where the line or sentence that holds `position` begins."""
    start = text.rfind("\n", 0, position) + 1
    sentences = [match.end() for match in re.finditer(r"[.!?]\s+", text[start:position])]
    return start + (sentences[-1] if sentences else 0)


def _occurs(answer: str, text: str) -> bool:
    if re.fullmatch(r"-?\d+(?:\.\d+)?%?", answer):
        plain = re.sub(r"(?<=\d)(?:,|\{,\}|\\,|\\!)+(?=\d{3}(?!\d))", "", text).replace("\\%", "%").replace("−", "-")
        decimals = "" if "." in answer else r"(?:\.0+(?!\d))?"
        number, percent = (answer[:-1], r"\s?%") if answer.endswith("%") else (answer, "")
        # "10-3" holds a 3, and "10 - 3" does not hold a -3
        before = r"(?<![\d.])" if not answer.startswith("-") else r"(?<![\d.)\w])"
        return re.search(rf"{before}{re.escape(number)}{decimals}{percent}(?![\d]|\.\d)", plain) is not None
    squeezed = _squeeze(answer)
    return bool(squeezed) and squeezed in _squeeze(text)


def _squeeze(text: str) -> str:
    text = re.sub(r"\\[dtc]frac", r"\\frac", text)
    return re.sub(r"\\left|\\right|\\[,;!: ]|[\s$]", "", text).casefold()


def _replays(subject: Subject) -> Evidence:
    if subject.replayed_answer is None:
        return Evidence("replays", NOT_APPLICABLE, "the answer cue was not tried", {})
    if subject.answer is None:
        return Evidence("replays", FAIL, "no answer was found to compare with the replayed one", {})
    result = equal(subject.answer, subject.replayed_answer, deadline=subject.deadline)
    words = {"equal": "brings back the same answer", "different": "brings back another answer"}
    summary = f"the answer cue {words.get(result.outcome, 'brings back an answer that could not be compared')}"
    detail = {"answer": subject.answer, "replayed": subject.replayed_answer, "reason": result.reason}
    return Evidence("replays", _outcome(result), f"{summary}: {result.reason}", detail)


def _extraction(subject: Subject) -> Evidence:
    method = subject.extraction_method
    detail = {"method": method}
    if method is None or subject.answer is None:
        return Evidence("extraction", FAIL, "no final answer was found in the text", detail)
    if method in STATED:
        return Evidence("extraction", PASS, f"the text states its answer ({method.replace('_', ' ')})", detail)
    return Evidence("extraction", UNKNOWN, f"the answer is a guess ({method.replace('_', ' ')} in the text)", detail)


def _arithmetic(subject: Subject) -> Evidence:
    found = equations(subject.solution)
    wrong = [item.text for item in found if not item.holds]
    detail = {
        "equations": len(found),
        "wrong": len(wrong),
        "rounded": sum(item.rounded for item in found),
        "examples": [text[:200] for text in wrong[:5]],
    }
    if not found:
        return Evidence("arithmetic", NOT_APPLICABLE, "the solution holds no plain equation between numbers", detail)
    if wrong:
        return Evidence(
            "arithmetic", FAIL, f"{len(wrong)} of {len(found)} equations are wrong: {wrong[0][:120]}", detail
        )
    said = f"all {len(found)} plain equations" if len(found) > 1 else "the one plain equation"
    return Evidence("arithmetic", PASS, f"{said} between numbers {'are' if len(found) > 1 else 'is'} right", detail)


def _outcome(result: Equality) -> str:
    return {"equal": PASS, "different": FAIL}.get(result.outcome, UNKNOWN)


CHECKS: Mapping[str, Callable[[Subject], Evidence]] = {
    "reference": _reference,
    "agreement": _agreement,
    "truncation": _truncation,
    "repetition": _repetition,
    "derived": _derived,
    "replays": _replays,
    "extraction": _extraction,
    "arithmetic": _arithmetic,
}
