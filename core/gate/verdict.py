"""The values that the gate returns. Knows nothing of how they come about."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """GRAFT: same problem. TRANSFER: same family, other numbers or names. REFUSE: solve fresh."""

    GRAFT = "GRAFT"
    TRANSFER = "TRANSFER"
    REFUSE = "REFUSE"


class Policy(StrEnum):
    """How much the gate may accept; `OFF` is for experiments only and marks its judgement unsafe."""

    STRICT = "strict"
    EDITS = "edits"
    CALIBRATED = "calibrated"
    OFF = "off"


@dataclass(frozen=True)
class Reason:
    """Why a verdict was given: a stable code for programs, a sentence for a reviewer."""

    code: str
    text: str


@dataclass(frozen=True)
class Edit:
    """One difference between the two texts.

    The spans are character offsets in the two original texts, end exclusive; an empty span marks the place
    where the other text has something more. `explained` says that the edit is known to keep the meaning.
    """

    kind: str
    stored: str
    query: str
    stored_span: tuple[int, int]
    query_span: tuple[int, int]
    explained: bool
    reason: str


@dataclass(frozen=True)
class Judgement:
    """The gate's answer on one pair of texts, with all that a person needs to check it.

    `score` is between 0 and 1 where the two texts were compared word for word, and None where they were not.
    `unsafe` is true only under `Policy.OFF`.
    """

    verdict: Verdict
    policy: Policy
    reasons: tuple[Reason, ...]
    edits: tuple[Edit, ...]
    score: float | None = None
    unsafe: bool = False
