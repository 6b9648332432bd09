"""Verified bytes into a fresh cache, the answer cue, a few tokens; and the certificate that says it was exact.

Knows artifacts and models, not the gate or the library: whoever calls has decided that the state applies.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import torch

from core.model import FrozenModel, differing
from core.state import restore, tensors_from_artifact
from library.artifact import Artifact
from library.digest import digest_bytes
from library.errors import FormatError, IdentityMismatch
from library.manifest import Certificate, Fingerprint, Manifest

ANSWER_TOKENS = 64  # longest replayed answer
LARGEST_BATCH = 64  # the most that SCION_BATCH allows


class Exactness(StrEnum):
    """What a graft's continuation was, compared with the deposit's certificate."""

    EXACT = "byte-exact"
    ARGMAX = "argmax-equal"
    DIVERGENT = "divergent"
    UNCERTIFIED = "uncertified"


@dataclass(frozen=True)
class Continuation:
    """Greedy tokens after a cue. `step_digests`: BLAKE3 of each step's float32 logits [vocabulary]."""

    cue_ids: tuple[int, ...]
    ids: tuple[int, ...]
    step_digests: tuple[str, ...]
    answer: str
    closed: bool
    first_token_seconds: float
    seconds: float

    def certificate(self) -> Certificate:
        return Certificate(
            cue_ids=self.cue_ids, answer_ids=self.ids, step_digests=self.step_digests, answer=self.answer
        )


@dataclass(frozen=True)
class Replay:
    """A replayed answer. `measured` compares with the certificate in any environment; `exactness` is the claim."""

    continuation: Continuation
    exactness: Exactness
    measured: Exactness


def check_identity(model: FrozenModel, identity: Fingerprint) -> None:
    """Raises `IdentityMismatch`, naming each differing field, unless the state was made by this very model."""
    if identity.digest != model.identity.digest:
        raise IdentityMismatch(differing(identity.fields, model.identity.fields))


def grafted(model: FrozenModel, artifact: Artifact, *, room: int) -> Any:
    """A fresh cache that holds the artifact's state, with space for `room` more positions.

    The artifact must come from `library.artifact.decode`, which verified the very buffer that is copied here. Raises
    `IdentityMismatch`, `UnsupportedState`; `FormatError` if the restored cache's length is not the graft point.
    """
    check_identity(model, artifact.manifest.identity)
    tensors = tensors_from_artifact(artifact.tensors)
    cache = restore(artifact.manifest.layers, tensors, model.config, device=model.device, room=room)
    held = int(cache.get_seq_length())
    if held != artifact.manifest.graft_point:
        raise FormatError(f"the state holds {held} positions, its graft point is {artifact.manifest.graft_point}")
    return cache


def check_ids(model: FrozenModel, written: Manifest) -> None:
    """Raises `FormatError` for what this model cannot run: a foreign manifest may say anything.

    Tokens outside the vocabulary, more positions than the window has, or a batch that would take all memory.
    """
    certificate = written.certificate
    told = (certificate.cue_ids, certificate.answer_ids) if certificate else ((), ())
    positions = written.graft_point + sum(map(len, told))
    if positions > model.window:
        raise FormatError(f"the artifact has {positions} positions, the model's window is {model.window}")
    vocabulary = int(model.network.get_input_embeddings().weight.shape[0])
    largest = max((max(ids, default=0) for ids in (written.prompt_ids, written.attempt_ids, *told)), default=0)
    if largest >= vocabulary:
        raise FormatError(f"the artifact has the token {largest}, the model's vocabulary has {vocabulary}")
    batch = max((run.batch for run in written.schedule), default=1)
    if batch > LARGEST_BATCH:
        raise FormatError(f"the artifact's schedule has a batch of {batch}; at most {LARGEST_BATCH} rows are replayed")


def replay(model: FrozenModel, artifact: Artifact) -> Replay:
    """Graft and read the answer off with the artifact's own cue. Leaves model and artifact as they were."""
    certificate = artifact.manifest.certificate
    if certificate is None:
        raise FormatError("the artifact has no certificate: it cannot be replayed, only continued")
    check_ids(model, artifact.manifest)
    room = len(certificate.cue_ids) + max(ANSWER_TOKENS, len(certificate.answer_ids) + 1)
    # A segment's certificate is a probe of fixed length, not an answer that closes by itself.
    limit = len(certificate.answer_ids) if artifact.manifest.kind == "segment" else ANSWER_TOKENS
    continuation = follow_cue(model, grafted(model, artifact, room=room), certificate.cue_ids, limit)
    measured = compare(certificate, continuation)
    same_place = artifact.manifest.environment.digest == model.environment.digest
    return Replay(continuation, measured if same_place else Exactness.UNCERTIFIED, measured)


def follow_cue(model: FrozenModel, cache: Any, cue_ids: Sequence[int], limit: int = ANSWER_TOKENS) -> Continuation:
    """Feed the cue, then decode greedily until the brace that it opened is closed. Mutates `cache`."""
    started = time.perf_counter()
    ids: list[int] = []
    digests: list[str] = []
    first = 0.0
    step = torch.tensor([list(cue_ids)], dtype=torch.long, device=model.device)
    text, end = "", None
    with torch.inference_mode():
        while len(ids) < limit:
            logits = model.forward(step, cache)
            digests.append(logits_digest(logits))
            token = int(logits.argmax(dim=-1).item())
            ids.append(token)
            first = first or time.perf_counter() - started
            text = model.decode(ids)
            end = closing_brace(text)
            if end is not None or token in model.stop_ids:
                break
            step = torch.tensor([[token]], dtype=torch.long, device=model.device)
    answer = text if end is None else text[:end]
    seconds = time.perf_counter() - started
    return Continuation(tuple(cue_ids), tuple(ids), tuple(digests), answer.strip(), end is not None, first, seconds)


def compare(certificate: Certificate, continuation: Continuation) -> Exactness:
    """`byte-exact` if all logits are bitwise equal, `argmax-equal` if only the tokens are, else `divergent`."""
    if certificate.answer_ids != continuation.ids:
        return Exactness.DIVERGENT
    return Exactness.EXACT if certificate.step_digests == continuation.step_digests else Exactness.ARGMAX


def logits_digest(logits: torch.Tensor) -> str:
    """BLAKE3 of one step's logits [1, vocabulary] as float32 little-endian bytes (widening loses nothing)."""
    row = logits[0].detach().float().cpu().contiguous()
    return str(digest_bytes(row.view(torch.uint8).numpy().data))


def closing_brace(text: str) -> int | None:
    """Where the brace opened before `text` is closed in it, or None."""
    depth = 1
    for place, character in enumerate(text):
        if character == "{":
            depth += 1
        elif character == "}":
            depth -= 1
            if depth == 0:
                return place
    return None
