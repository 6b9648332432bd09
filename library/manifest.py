"""What an artifact says about itself: strict, frozen, without floats, so that it has one canonical encoding.

Knows the shape of the manifest, not how it is framed in a file (library/artifact.py) and not what the tensors
mean (core/state.py).
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

SCHEMA_VERSION = 1

DigestText = Annotated[str, StringConstraints(pattern=r"^blake3:[0-9a-f]{64}$")]
Ids = tuple[Annotated[int, Field(ge=0)], ...]
Json = None | bool | int | str | list[Any] | dict[str, Any]


class Frozen(BaseModel):
    """Unknown fields and silent conversions are refused: two programs must not read one file differently."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Run(Frozen):
    """`count` forward calls of `length` tokens each, in a batch of `batch` rows of which this state was `row`.

    The batch is part of the schedule: the rounding of a matrix product depends on its shape.
    """

    length: Annotated[int, Field(ge=1)]
    count: Annotated[int, Field(ge=1)]
    batch: Annotated[int, Field(ge=1)] = 1
    row: Annotated[int, Field(ge=0)] = 0


class LayerSpec(Frozen):
    """One cache layer: its kind, its tensors by role (role -> tensor name), its counters and constants.

    `kind` is a name from the registry in core/state.py (`full`, `sliding`, ...). `attributes` holds everything
    that the layer carries besides tensors, such as a sliding layer's cumulative length.
    """

    index: Annotated[int, Field(ge=0)]
    kind: str
    tensors: dict[str, str]
    attributes: dict[str, Any]


class Fingerprint(Frozen):
    """A digest and the readable fields that it commits to (digest = digest of the fields' canonical JSON)."""

    digest: DigestText
    fields: dict[str, Any]


class Certificate(Frozen):
    """The continuation of the live state at deposit: what a graft in the same environment must reproduce.

    `cue_ids`: the forced answer cue, one prefill call. `answer_ids`: greedy token ids after it, in order.
    `step_digests`: BLAKE3 of each step's float32 little-endian logits [vocabulary], one per answer id.
    `answer`: the text read off the answer ids.
    """

    cue_ids: Ids
    answer_ids: Ids
    step_digests: tuple[DigestText, ...]
    answer: str


class Sampling(Frozen):
    """How the attempt's tokens were chosen. Decimal strings, because floats have no canonical JSON."""

    temperature: str
    top_p: str
    seed: int
    max_tokens: Annotated[int, Field(ge=1)]
    attempt: Annotated[int, Field(ge=0)] = 0
    attempts: Annotated[int, Field(ge=1)] = 1


class Evidence(Frozen):
    check: str
    outcome: Literal["pass", "fail", "unknown", "not_applicable"]
    summary: str
    verifier: str


class DecisionNote(Frozen):
    id: str
    reviewer: str
    action: str
    reason: str
    time: str


class Cost(Frozen):
    """What the attempt cost: tokens, microseconds, millijoules (None: not metered), FLOPs (estimate)."""

    prefill_tokens: Annotated[int, Field(ge=0)]
    decode_tokens: Annotated[int, Field(ge=0)]
    microseconds: Annotated[int, Field(ge=0)]
    millijoules: int | None
    flops: Annotated[int, Field(ge=0)]


class Source(Frozen):
    """Where a segment's text stands in a book: characters [start, end) of a file with this digest."""

    book: str
    file: str
    file_digest: DigestText
    start: Annotated[int, Field(ge=0)]
    end: Annotated[int, Field(ge=0)]
    order: Annotated[int, Field(ge=0)]


class Manifest(Frozen):
    """Everything that an artifact commits to besides its tensors.

    `prompt_ids + attempt_ids` are the tokens at positions [0, graft_point) and the only tokens whose state the
    tensors hold; `schedule` covers exactly these positions.
    """

    schema_version: Annotated[int, Field(ge=1)]
    kind: Literal["solution", "segment"]
    problem: str
    reference: str | None
    solution: str
    thinking: str
    answer: str
    prompt_ids: Ids
    attempt_ids: Ids
    schedule: tuple[Run, ...]
    graft_point: Annotated[int, Field(ge=1)]
    sampling: Sampling
    identity: Fingerprint
    environment: Fingerprint
    layers: tuple[LayerSpec, ...]
    tensors: dict[str, DigestText]
    certificate: Certificate | None
    evidence: tuple[Evidence, ...]
    decisions: tuple[DecisionNote, ...]
    cost: Cost
    parent: DigestText | None
    source: Source | None
    created: str

    def check_lengths(self) -> str | None:
        """Why the manifest's own counts disagree, or None. Does not look at the tensors."""
        if len(self.prompt_ids) + len(self.attempt_ids) != self.graft_point:
            return "prompt_ids and attempt_ids do not add up to graft_point"
        if sum(run.length * run.count for run in self.schedule) != self.graft_point:
            return "the schedule does not add up to graft_point"
        if any(run.row >= run.batch for run in self.schedule):
            return "a schedule row lies outside its batch"
        if self.certificate and len(self.certificate.answer_ids) != len(self.certificate.step_digests):
            return "the certificate has not one digest a step"
        return None
