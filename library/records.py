"""The shapes of a bundle's listing and of the records in it: strict, frozen, without floats, like the manifest.

Knows no stream and no database (library/bundle.py, library/store.py).
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from library.manifest import DigestText, Frozen
from library.ustar import MAX_MEMBER_BYTES

Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:\-]{0,127}$")]
Count = Annotated[int, Field(ge=0)]


class ProblemRecord(Frozen):
    id: Id
    source: str
    created: str
    created_by: str


class AttemptRecord(Frozen):
    id: Id
    number: Count
    origin: str
    status: str
    version: Annotated[int, Field(ge=1)]
    created: str
    created_by: str


class EvidenceRecord(Frozen):
    check: str
    outcome: Literal["pass", "fail", "unknown", "not_applicable"]
    summary: str
    detail: str
    verifier: str
    created: str


class DecisionRecord(Frozen):
    id: Id
    attempt_version: int
    reviewer: str
    action: Literal["approve", "reject", "flag", "skip", "undo", "note"]
    reason: str
    created: str


class BundleRecord(Frozen):
    """What a library knows of an artifact beyond its manifest.

    Problem, answer, identity, tokens and cost are not repeated here: they are the manifest's, which the content
    digest covers, so that the two cannot disagree.
    """

    digest: DigestText
    model: str
    verifier: str
    reviewer: str
    problem: ProblemRecord | None
    attempt: AttemptRecord | None
    evidence: tuple[EvidenceRecord, ...]
    decisions: tuple[DecisionRecord, ...]


class Listed(Frozen):
    """One artifact of a bundle: its content digest and size in bytes, the digest and size of its record."""

    digest: DigestText
    size: Annotated[int, Field(ge=1, le=MAX_MEMBER_BYTES)]
    record: DigestText
    record_size: Annotated[int, Field(ge=1, le=MAX_MEMBER_BYTES)]


class Listing(Frozen):
    """The first member: what the bundle holds, in order of digest."""

    format: Literal["scion-bundle"]
    version: Annotated[int, Field(ge=1)]
    created: str
    entries: tuple[Listed, ...]
