"""The tables. Rows are plain data; the rules between them are in store.py.

SQLModel's table models skip validation, so what must hold is a CHECK constraint or a trigger (migrations.py).
Times are RFC 3339 UTC text with microseconds, which sorts as it should. JSON columns are text.
"""

from __future__ import annotations

from sqlalchemy import CheckConstraint, Index
from sqlmodel import Field, SQLModel

DIGEST_CHECK = "length({0}) = 71 AND {0} GLOB 'blake3:*' AND substr({0}, 8) NOT GLOB '*[^0-9a-f]*'"


def _one_of(column: str, *values: str) -> CheckConstraint:
    listed = ", ".join(f"'{value}'" for value in values)
    return CheckConstraint(f"{column} IN ({listed})", name=f"{column}_known")


class Meta(SQLModel, table=True):
    key: str = Field(primary_key=True)
    value: str


class Problem(SQLModel, table=True):
    """A text to be solved. `canonical_key` is the digest of the gate's canonical form of the text."""

    __table_args__ = (Index("problem_key", "canonical_key"),)
    id: str = Field(primary_key=True)
    text: str
    reference: str | None = None
    canonical_key: str
    canonical_version: int
    source: str = ""
    created: str
    created_by: str


class Job(SQLModel, table=True):
    """Work for the device's queue, or a report of it. `progress` is the newest event, `result` the last word.

    `worker` names the process that took it on: its lock in live/ tells whether that process still lives.
    """

    __table_args__ = (
        _one_of("state", "queued", "running", "paused", "done", "failed", "cancelled", "interrupted"),
        Index("job_state", "state", "created"),
    )
    id: str = Field(primary_key=True)
    kind: str
    state: str = "queued"
    payload: str = "{}"
    progress: str = "{}"
    result: str = "{}"
    error: str = ""
    owner: str
    worker: str = ""
    created: str
    started: str | None = None
    finished: str | None = None


class Attempt(SQLModel, table=True):
    """One run of the frozen model on a problem. `version` grows with every change: decisions name it.

    `review`: `pending` -> `approved` | `rejected`; `flagged` and `skipped` items stay open for review.
    `staged` is the content digest of the staged artifact file, NULL once it is published or discarded.
    """

    __table_args__ = (
        _one_of("status", "solved", "truncated", "cancelled", "failed"),
        _one_of("review", "none", "pending", "flagged", "approved", "rejected"),
        Index("attempt_review", "review", "created"),
        Index("attempt_problem", "problem_id"),
    )
    id: str = Field(primary_key=True)
    problem_id: str = Field(foreign_key="problem.id")
    job_id: str | None = Field(default=None, foreign_key="job.id")
    number: int = 0
    origin: str = "solve"
    model: str
    identity: str
    environment: str
    sampling: str = "{}"
    thinking: str = ""
    solution: str = ""
    answer: str | None = None
    status: str
    review: str = "none"
    version: int = 1
    prompt_tokens: int = 0
    decode_tokens: int = 0
    seconds: float = 0.0
    tokens_per_second: float = 0.0
    joules: float | None = None
    flops: int = 0
    staged: str | None = None
    created: str
    created_by: str


class Evidence(SQLModel, table=True):
    """What an automatic check found. Append-only; a later verifier adds rows and never edits old ones."""

    __table_args__ = (
        _one_of("outcome", "pass", "fail", "unknown", "not_applicable"),
        Index("evidence_attempt", "attempt_id"),
    )
    id: int | None = Field(default=None, primary_key=True)
    attempt_id: str = Field(foreign_key="attempt.id")
    check_name: str
    outcome: str
    summary: str
    detail: str = "{}"
    verifier: str
    created: str


class Decision(SQLModel, table=True):
    """A person's word on an attempt. Append-only."""

    __table_args__ = (
        _one_of("action", "approve", "reject", "flag", "skip", "undo", "note"),
        CheckConstraint("action <> 'reject' OR length(trim(reason)) > 0", name="reject_has_reason"),
        Index("decision_attempt", "attempt_id"),
    )
    id: str = Field(primary_key=True)
    attempt_id: str = Field(foreign_key="attempt.id")
    attempt_version: int
    reviewer: str
    action: str
    reason: str = ""
    created: str


class Artifact(SQLModel, table=True):
    """An approved attempt's state. `digest` names the blob; the state column says whether it may be grafted.

    Only `published` is ever a candidate. `evicted` keeps the record and answer without the bytes. `held` awaits a
    person after a replay that did not repeat its answer. `revoked` and `quarantined` never come back.
    """

    __table_args__ = (
        CheckConstraint(DIGEST_CHECK.format("digest"), name="digest_form"),
        _one_of("kind", "solution", "segment"),
        _one_of("state", "published", "held", "evicted", "quarantined", "revoked", "imported"),
        Index("artifact_key", "canonical_key", "identity", "state"),
        Index("artifact_state", "state", "created"),
        Index("artifact_tokens", "state", "solve_tokens"),
        Index("artifact_size", "state", "size_bytes", "stored_bytes"),
        Index("artifact_uses", "state", "uses"),
        Index("artifact_model", "state", "model", "created"),
        Index("artifact_created", "created"),
        Index("artifact_attempt", "attempt_id"),
    )
    digest: str = Field(primary_key=True)
    kind: str = "solution"
    state: str = "published"
    state_reason: str = ""
    state_since: str = ""
    attempt_id: str | None = Field(default=None, foreign_key="attempt.id")
    problem_text: str
    canonical_key: str
    canonical_version: int
    answer: str
    model: str
    identity: str
    environment: str
    verifier: str = ""
    reviewer: str = ""
    size_bytes: int
    stored_bytes: int
    compression: str = "none"
    graft_point: int
    solve_tokens: int
    solve_seconds: float = 0.0
    solve_flops: int = 0
    solve_joules: float | None = None
    pinned: bool = False
    uses: int = 0
    last_used: str | None = None
    parent: str | None = None
    origin: str = "local"
    created: str


class Outcome(SQLModel, table=True):
    """What one ask led to. Append-only."""

    __table_args__ = (
        _one_of("verdict", "GRAFT", "TRANSFER", "REFUSE"),
        Index("outcome_created", "created"),
        Index("outcome_artifact", "artifact"),
    )
    id: str = Field(primary_key=True)
    query: str
    artifact: str | None = None
    policy: str
    verdict: str
    reasons: str = "[]"
    answer: str | None = None
    decode_tokens: int = 0
    prefill_tokens: int = 0
    seconds: float = 0.0
    joules: float | None = None
    flops: int = 0
    tokens_saved: int = 0
    seconds_saved: float = 0.0
    exactness: str = ""
    flagged: bool = False
    origin: str = "ask"
    model: str
    identity: str
    created: str
    created_by: str


class PairLabel(SQLModel, table=True):
    """A judgement on (stored problem, query): is a graft safe? Append-only, with its provenance."""

    __table_args__ = (_one_of("label", "safe", "unsafe", "unsure"),)
    id: str = Field(primary_key=True)
    stored: str
    query: str
    label: str
    note: str = ""
    source: str
    artifact: str | None = None
    created: str
    created_by: str


class Audit(SQLModel, table=True):
    """The hash chain: `digest` commits to this entry and to `previous`. Append-only."""

    seq: int = Field(primary_key=True)
    created: str
    actor: str
    action: str
    subject: str
    detail: str = "{}"
    previous: str
    digest: str


class Key(SQLModel, table=True):
    """An Ed25519 public key and what we think of it. Private keys live in files, never here."""

    __table_args__ = (_one_of("trust", "own", "trusted", "known"),)
    id: str = Field(primary_key=True)
    name: str
    public: str
    trust: str = "known"
    created: str


class Measurement(SQLModel, table=True):
    """A graft's certificate measured in some environment, or a replay audit's finding."""

    __table_args__ = (Index("measurement_artifact", "artifact"),)
    id: str = Field(primary_key=True)
    artifact: str = Field(foreign_key="artifact.digest")
    kind: str
    environment: str
    finding: str
    detail: str = "{}"
    created: str


class Lease(SQLModel, table=True):
    """An attempt that a reviewer has before them; expires by itself."""

    attempt_id: str = Field(primary_key=True, foreign_key="attempt.id")
    reviewer: str
    expires: str


class User(SQLModel, table=True):
    __table_args__ = (_one_of("role", "viewer", "solver", "reviewer", "admin"),)
    name: str = Field(primary_key=True)
    role: str
    password: str
    active: bool = True
    created: str


class Book(SQLModel, table=True):
    """A long text kept as segments. Answers only once a person accepted it."""

    __table_args__ = (_one_of("state", "building", "pending", "accepted", "revoked"),)
    id: str = Field(primary_key=True)
    name: str = Field(unique=True)
    state: str = "building"
    digest: str = ""
    model: str
    identity: str
    segment_tokens: int
    created: str
    created_by: str


class Segment(SQLModel, table=True):
    """One window of a book. `artifact` is NULL until its state is deposited."""

    __table_args__ = (Index("segment_book", "book_id", "ordinal"),)
    id: str = Field(primary_key=True)
    book_id: str = Field(foreign_key="book.id")
    ordinal: int
    file: str
    file_digest: str
    start: int
    end: int
    tokens: int
    text: str
    artifact: str | None = None
