"""A threshold from labelled pairs whose false accepts are bounded, or a refusal that says what is missing.

Knows scores and labels, not where they come from. A calibration can only make the gate stricter: it sets the least
score that the gate asks for on top of its other rules.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from core.evaluate.stats import upper_bound
from core.gate.rules import rules_digest
from library.digest import canonical_json
from library.errors import FormatError

_SCALE = 10**6
_SCHEMA = 2


@dataclass(frozen=True)
class Calibration:
    """The result of `calibrate`.

    threshold: the least accepted score in [0, 1]. delta: the share of false accepts among different problems that the
    95 % upper bound (one-sided, exact) must not exceed. different/same: labels used. false_accepts: accepted different
    ones at the threshold. covered: accepted same ones. missing: how many more labels of different problems are needed
    before a threshold can be set; 0 where `usable`. rules: digest of the gate's rules that gave the scores.
    """

    threshold: float
    delta: float
    different: int
    same: int
    false_accepts: int
    covered: int
    missing: int
    rules: str = field(default_factory=rules_digest)

    @property
    def usable(self) -> bool:
        return self.missing == 0 and self.current

    @property
    def current(self) -> bool:
        """Whether it was made with the rules of this gate."""
        return self.rules == rules_digest()

    @property
    def bound(self) -> float:
        """The 95 % upper bound of the share of false accepts at the threshold."""
        return upper_bound(self.false_accepts, self.different) if self.different else 1.0

    def explain(self) -> str:
        """One sentence for a reviewer."""
        if not self.current:
            return (
                "the threshold was measured on other rules of the gate than this program's, and holds for those alone; "
                "make it again with evaluate calibrate"
            )
        if not self.usable:
            return (
                f"{self.different} labelled pairs of different problems are too few to bound false accepts by "
                f"{self.delta:.2%}: {self.missing} more are needed"
            )
        return (
            f"at a score of {self.threshold:.3f}, {self.false_accepts} of {self.different} different problems are "
            f"accepted (95 % upper bound {self.bound:.2%}, at most {self.delta:.2%}) and {self.covered} of "
            f"{self.same} same ones"
        )

    def to_json(self) -> bytes:
        """Canonical JSON; shares are whole millionths, since canonical JSON has no floats."""
        return canonical_json(
            {
                "schema": _SCHEMA,
                "threshold_ppm": round(self.threshold * _SCALE),
                "delta_ppm": round(self.delta * _SCALE),
                "different": self.different,
                "same": self.same,
                "false_accepts": self.false_accepts,
                "covered": self.covered,
                "missing": self.missing,
                "rules": self.rules,
            }
        )

    @classmethod
    def from_json(cls, data: bytes) -> Calibration:
        """The calibration of `to_json`'s bytes. Raises `FormatError` for all else, another encoding included."""
        try:
            value: Any = json.loads(data)
            if value["schema"] == 1:
                raise FormatError("the calibration is of an older version; make it again with evaluate calibrate")
            found = cls(
                threshold=value["threshold_ppm"] / _SCALE,
                delta=value["delta_ppm"] / _SCALE,
                rules=str(value["rules"]),
                **{k: int(value[k]) for k in ("different", "same", "false_accepts", "covered", "missing")},
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FormatError(f"not a calibration: {error}") from error
        if found.to_json() != data:
            raise FormatError("not a calibration in its canonical encoding")
        return found


def labels_needed(delta: float) -> int:
    """How many different pairs, none of them accepted, bound the false accepts by `delta` (299 for 1 %)."""
    low, high = 1, 1
    while upper_bound(0, high) > delta:
        high *= 2
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if upper_bound(0, middle) <= delta else (middle + 1, high)
    return low


def calibrate(labelled: Iterable[tuple[float, bool]], delta: float = 0.005) -> Calibration:
    """The lowest threshold that holds the bound, from (score, same problem) pairs.

    Scores are rounded up to millionths, so a stored calibration accepts no more than the fresh one. Raises `ValueError`
    where `delta` is not in (0, 1) or a score not in [0, 1]. Too few labels are a returned value with `missing` set.
    """
    if not 0.0 < delta < 1.0:
        raise ValueError(f"delta must be between 0 and 1, not {delta}")
    pairs = sorted(labelled)
    if any(not 0.0 <= s <= 1.0 for s, _ in pairs):
        raise ValueError("a score must be between 0 and 1")
    different = [s for s, same in pairs if not same]
    same = [s for s, is_same in pairs if is_same]
    needed = labels_needed(delta)
    if len(different) < needed:
        return Calibration(1.0, delta, len(different), len(same), 0, 0, needed - len(different))
    allowed = 0
    while allowed < len(different) and upper_bound(allowed + 1, len(different)) <= delta:
        allowed += 1
    # the threshold lies just above the highest score that must not be accepted
    barrier = different[-1 - allowed] if allowed < len(different) else 0.0
    threshold = min(1.0, (int(barrier * _SCALE) + 1) / _SCALE) if different else 0.0
    accepted = sum(s >= threshold for s in different)
    if accepted > allowed:  # scores of 1 that are false cannot be told apart from true ones
        return Calibration(1.0, delta, len(different), len(same), accepted, 0, 1)
    return Calibration(threshold, delta, len(different), len(same), accepted, sum(s >= threshold for s in same), 0)
