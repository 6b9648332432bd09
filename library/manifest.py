"""What an artifact says about itself: strict, frozen, without floats, so that it has one canonical encoding.

Knows the shape of the manifest, not how it is framed in a file (library/artifact.py) and not what the tensors
mean (core/state.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from library.digest import canonical_json, digest_json
from library.errors import FormatError

SCHEMA_VERSION = 1

# version -> the function that turns a manifest of that version into one of the next; the first version has none.
Migration = Callable[[dict[str, Any]], dict[str, Any]]
MIGRATIONS: Mapping[int, Migration] = {}
_INTEGER_DIGITS = 20  # the digits of 2**64 - 1

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

    def check_layers(self) -> str | None:
        """Why the layers and the tensors disagree, or None: each tensor belongs to exactly one role of one layer.

        A tensor that no layer names would never be restored; one named twice would be shared by two layers, and
        growing the one would change the other.
        """
        indices = [layer.index for layer in self.layers]
        if indices != sorted(set(indices)):
            return "layer indices are not strictly increasing"
        named = [name for layer in self.layers for name in layer.tensors.values()]
        if len(named) != len(set(named)):
            return "two layer roles name the same tensor"
        if set(named) != set(self.tensors):
            odd = sorted(set(named) ^ set(self.tensors))
            return f"tensors and layers do not match: {odd[0]!r} has no counterpart"
        return None

    def check_fingerprints(self) -> str | None:
        """Which fingerprint does not commit to its own fields, or None."""
        for name, print_ in (("identity", self.identity), ("environment", self.environment)):
            if str(digest_json(print_.fields)) != print_.digest:
                return f"the {name} digest is not that of its fields"
        return None

    def check(self) -> str | None:
        """The first of all inner contradictions, or None."""
        return self.check_lengths() or self.check_layers() or self.check_fingerprints()


def encode_manifest(manifest: Manifest) -> bytes:
    """The canonical JSON of a manifest of the current version. Raises `FormatError` when it contradicts itself."""
    if manifest.schema_version != SCHEMA_VERSION:
        raise FormatError(f"this program writes schema version {SCHEMA_VERSION}, not {manifest.schema_version}")
    try:
        # Not mode="json": that would quietly turn bytes and number keys in the free fields into text.
        encoded = canonical_json(manifest.model_dump())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the manifest has no canonical JSON: {error}") from error
    _refuse(manifest.check())
    return encoded


def parse_manifest(raw: bytes) -> Manifest:
    """The manifest in its one encoding, brought up to the current schema version.

    Raises `FormatError` for anything that does not re-encode to the same bytes (duplicate keys, spaces, floats,
    another key order, unknown or missing fields), for inner contradictions and for a newer schema version.
    """
    value = strict_json(raw)
    if not isinstance(value, dict):
        raise FormatError("the manifest is not a JSON object")
    version = value.get("schema_version")
    if type(version) is not int or version < 1:
        raise FormatError(f"not a schema version: {str(version)[:40]}")
    if version > SCHEMA_VERSION:
        raise FormatError(
            f"schema version {version} is newer than {SCHEMA_VERSION}; open it with the version that made it"
        )
    for step in range(version, SCHEMA_VERSION):
        value = {**MIGRATIONS[step](value), "schema_version": step + 1}
    try:
        manifest = Manifest.model_validate_json(raw if version == SCHEMA_VERSION else canonical_json(value))
        # An omitted field that has a default, or a number written another way, shows only here.
        same = version != SCHEMA_VERSION or canonical_json(manifest.model_dump()) == raw
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        raise FormatError(f"manifest field {'.'.join(map(str, first['loc']))}: {first['msg']}") from error
    except (ValueError, RecursionError) as error:
        raise FormatError(f"the manifest cannot be read: {error}") from error
    if not same:
        raise FormatError("the manifest is not in its canonical form")
    _refuse(manifest.check())
    return manifest


def strict_json(raw: bytes) -> Any:
    """The value of canonical JSON bytes; `FormatError` for every other spelling, and for integers beyond 64 bits."""
    try:
        value = json.loads(raw.decode("utf-8"), parse_int=_integer, parse_float=_no_float, parse_constant=_no_float)
        same = canonical_json(value) == raw
    except (ValueError, RecursionError) as error:
        raise FormatError(f"not canonical JSON: {str(error)[:200]}") from error
    if not same:
        raise FormatError("not canonical JSON: it re-encodes to other bytes")
    return value


def _refuse(problem: str | None) -> None:
    if problem:
        raise FormatError(f"the manifest contradicts itself: {problem}")


def _integer(text: str) -> int:
    if len(text) > _INTEGER_DIGITS or not -(1 << 63) <= (value := int(text)) < 1 << 64:
        raise FormatError(f"an integer beyond 64 bits: {text[:24]}")
    return value


def _no_float(text: str) -> float:
    raise FormatError(f"a number that is not an integer: {text[:40]}")
