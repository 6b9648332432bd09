"""The gate: same problem, same family, or neither, with reasons. No model, no torch, no files but its tables."""

from __future__ import annotations

from core.gate.calibration import Calibration, calibrate, labels_needed
from core.gate.canonical import CANONICAL_VERSION, canonical, canonical_key
from core.gate.judge import judge
from core.gate.rules import rules_digest
from core.gate.verdict import Edit, Judgement, Policy, Reason, Verdict

__all__ = [
    "CANONICAL_VERSION",
    "Calibration",
    "Edit",
    "Judgement",
    "Policy",
    "Reason",
    "Verdict",
    "calibrate",
    "canonical",
    "canonical_key",
    "judge",
    "labels_needed",
    "rules_digest",
]
