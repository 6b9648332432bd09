"""Decides whether a stored problem's state may serve a query. Fails closed: any fault is a REFUSE.

The parts, in the order they are asked: safe text, canonical identity, family, edits, rewording, calibration. Each is
called through `_part`, which turns an exception into a refusal that names the part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from core.gate.align import MAX_UNITS, align
from core.gate.calibration import Calibration
from core.gate.canonical import MAX_LENGTH, canonical
from core.gate.hidden import hidden_characters
from core.gate.latex import LatexError
from core.gate.measures import score
from core.gate.reading import Reading, read_problem
from core.gate.reword import Rewording, reword
from core.gate.template import family
from core.gate.verdict import Edit, Judgement, Policy, Reason, Verdict

T = TypeVar("T")

# Above this share of common text a difference without an explanation is a near-miss, not a rewording.
MAX_VERBATIM = 0.8
# The least score of a rewording under `edits`; where it comes from is told in docs/gate.md.
MIN_SCORE = 0.2


class _Fault(Exception):
    """A part of the gate failed; carries the part's name."""

    def __init__(self, part: str, error: BaseException) -> None:
        super().__init__(part)
        self.part = part
        self.error = error


def judge(
    stored: str, query: str, policy: Policy = Policy.STRICT, *, calibration: Calibration | None = None
) -> Judgement:
    """The gate's verdict on serving `query` from the state of `stored`.

    Never raises: a fault in any part is a REFUSE with the reason `gate_error`. `calibration` is needed by
    `Policy.CALIBRATED` only. Reads no file but the gate's own tables; changes nothing.
    """
    try:
        policy = Policy(policy)
        judgement = _judge(stored, query, policy, calibration)
    except _Fault as fault:
        judgement = _refuse(Policy(policy), "gate_error", f"the gate failed in {fault.part}: {_name(fault.error)}")
    except Exception as error:
        # Anything else, a wrong argument's type included, is a fault of the gate as a whole
        known = policy if isinstance(policy, Policy) else Policy.STRICT
        judgement = _refuse(known, "gate_error", f"the gate failed: {_name(error)}")
    return judgement


def _name(error: BaseException) -> str:
    return f"{type(error).__name__}: {str(error)[:160]}"


def _part(name: str, call: Callable[[], T]) -> T:
    try:
        return call()
    except LatexError:
        raise
    except Exception as error:
        raise _Fault(name, error) from error


def _refuse(
    policy: Policy, code: str, text: str, edits: tuple[Edit, ...] = (), score: float | None = None
) -> Judgement:
    return Judgement(Verdict.REFUSE, policy, (Reason(code, text),), edits, score)


def _judge(stored: str, query: str, policy: Policy, calibration: Calibration | None) -> Judgement:
    if policy is Policy.OFF:
        return _off(stored, query)
    for side, text in (("stored problem", stored), ("query", query)):
        if not isinstance(text, str):
            raise TypeError(f"the {side} is not text")
        if not text.strip():
            return _refuse(policy, "empty", f"the {side} is empty")
        if len(text) > MAX_LENGTH:
            return _refuse(
                policy, "too_long", f"the {side} has {len(text)} characters; at most {MAX_LENGTH} are compared"
            )
        found = _part("hidden characters", lambda text=text: hidden_characters(text))  # type: ignore[misc]
        if found:
            return _refuse(policy, "hidden_characters", f"the {side} has characters that are not seen: {found}")
    try:
        same = _part("canonical form", lambda: canonical(stored) == canonical(query))
        if same:
            return Judgement(
                Verdict.GRAFT, policy, (Reason("identical", "both texts print as the same problem"),), (), 1.0
            )
        a = _part("reading", lambda: read_problem(stored))
        b = _part("reading", lambda: read_problem(query))
    except LatexError as error:
        return _refuse(policy, "unreadable", f"not compared: {error}")
    return _compare(stored, query, a, b, policy, calibration)


def _compare(
    stored: str, query: str, a: Reading, b: Reading, policy: Policy, calibration: Calibration | None
) -> Judgement:
    if max(len(a.tokens), len(b.tokens)) > MAX_UNITS or not a.tokens or not b.tokens:
        return _refuse(policy, "too_long", f"more than {MAX_UNITS} words and signs are not compared")
    formal = a.math or b.math
    edits, verbatim = _part("alignment", lambda: align(stored, query, a, b, formal=formal))
    unexplained = [e for e in edits if not e.explained]
    kin = _part("family", lambda: family(a, b)) if unexplained else None
    if kin is not None:
        return Judgement(Verdict.TRANSFER, policy, (Reason("family", kin),), edits, 0.0)
    against: tuple[Reason, ...]
    grounds: tuple[Reason, ...]
    told = tuple(Reason(e.kind, f"{e.reason}: {_quote(e)}") for e in unexplained[:6])
    if not edits:
        against = (Reason("border", "the formulas are parted in other places"),)
        value, accepted, grounds = 0.0, False, against
    elif not unexplained:
        value = 0.99
        against = ()
        accepted = True
        grounds = (Reason("explained", f"every edit keeps the meaning: {_summary(edits)}"),)
    else:
        rewording = _part("rewording", lambda: reword(a, b, verbatim))
        value, against = _weigh(rewording, unexplained, verbatim, formal)
        accepted = not against and value >= MIN_SCORE
        grounds = (
            Reason("reworded", "reworded throughout; numbers, their roles, names and the question are the same"),
            Reason("score", f"the measures of the rewording give {value:.2f}, at least {MIN_SCORE:.2f} is asked"),
        )
        if not against and not accepted:
            against = (Reason("score", f"the texts are too far apart: {value:.2f}, at least {MIN_SCORE:.2f} is asked"),)
    if policy is Policy.STRICT:
        reason = Reason("not_identical", "under the strict policy only texts that print alike are the same problem")
        return Judgement(Verdict.REFUSE, policy, (reason, *(told or grounds), *against), edits, value)
    if policy is Policy.CALIBRATED:
        accepted, grounds, against = _part(
            "calibration", lambda: _calibrated(calibration, value, accepted, grounds, against)
        )
    if accepted:
        return Judgement(Verdict.GRAFT, policy, grounds, edits, value)
    return Judgement(Verdict.REFUSE, policy, (*against, *told), edits, value)


def _weigh(
    rewording: Rewording, unexplained: list[Edit], verbatim: float, formal: bool
) -> tuple[float, tuple[Reason, ...]]:
    """The score of a rewording and what speaks against it; what contradicts also halves the score."""
    against = rewording.contradictions
    if formal:
        against += (Reason("formula", "texts with formulas are not accepted on wording alone"),)
    if verbatim > MAX_VERBATIM:
        against += (
            Reason("near_miss", "the texts are almost the same, and what differs is not known to mean the same"),
        )
    value = score(rewording.features)
    return (value if not against else value * 0.4), against


def _calibrated(
    calibration: Calibration | None,
    value: float,
    accepted: bool,
    grounds: tuple[Reason, ...],
    against: tuple[Reason, ...],
) -> tuple[bool, tuple[Reason, ...], tuple[Reason, ...]]:
    """The learned threshold on top of what `edits` accepts: it can only refuse more."""
    if calibration is None:
        return (
            False,
            grounds,
            (Reason("not_calibrated", "no calibration is given, so nothing can be accepted"), *against),
        )
    if not calibration.usable:
        return False, grounds, (Reason("not_calibrated", calibration.explain()), *against)
    if value < calibration.threshold:
        low = Reason("below_threshold", f"the score {value:.3f} is below the calibrated {calibration.threshold:.3f}")
        return False, grounds, (low, *against)
    if accepted:
        grounds += (Reason("calibrated", f"the score {value:.3f} reaches the calibrated {calibration.threshold:.3f}"),)
    return accepted, grounds, against


def _off(stored: str, query: str) -> Judgement:
    """The gate is off: GRAFT, marked unsafe, with the edits as they truly are where they can be told."""
    reasons: tuple[Reason, ...] = (Reason("off", "the gate is off: this graft is unsafe"),)
    edits: tuple[Edit, ...] = ()
    if isinstance(stored, str) and isinstance(query, str) and max(len(stored), len(query)) <= MAX_LENGTH:
        try:
            a, b = read_problem(stored), read_problem(query)
            if max(len(a.tokens), len(b.tokens)) <= MAX_UNITS:
                edits, _ = align(stored, query, a, b, formal=a.math or b.math)
        except Exception as error:
            reasons += (Reason("gate_error", f"the edits could not be told: {_name(error)}"),)
    return Judgement(Verdict.GRAFT, Policy.OFF, reasons, edits, None, unsafe=True)


def _quote(edit: Edit) -> str:
    left, right = " ".join(edit.stored.split())[:80], " ".join(edit.query.split())[:80]
    if not left:
        return f"added “{right}”"
    if not right:
        return f"left out “{left}”"
    return f"“{left}” became “{right}”"


def _summary(edits: tuple[Edit, ...]) -> str:
    reasons: dict[str, int] = {}
    for edit in edits:
        reasons[edit.reason] = reasons.get(edit.reason, 0) + 1
    return (
        "; ".join(f"{reason} ({count})" if count > 1 else reason for reason, count in reasons.items())
        or "only the typesetting differs"
    )
