"""Decides whether a stored problem's state may serve a query. Fails closed: any fault is a REFUSE."""

from __future__ import annotations

from core.gate.canonical import canonical
from core.gate.verdict import Judgement, Policy, Reason, Verdict


def judge(stored: str, query: str, policy: Policy = Policy.STRICT, *, calibration: object = None) -> Judgement:
    """The gate's verdict on serving `query` from the state of `stored`. Pure; never raises."""
    try:
        if policy is Policy.OFF:
            return Judgement(Verdict.GRAFT, policy, (Reason("off", "the gate is off"),), (), unsafe=True)
        if canonical(stored) == canonical(query):
            return Judgement(
                Verdict.GRAFT, policy, (Reason("identical", "the two texts print as the same problem"),), (), 1.0
            )
        return Judgement(Verdict.REFUSE, policy, (Reason("differs", "the two texts differ"),), (), 0.0)
    except Exception as error:
        reason = Reason("gate_error", f"the gate failed in judge: {type(error).__name__}")
        return Judgement(Verdict.REFUSE, policy, (reason,), ())
