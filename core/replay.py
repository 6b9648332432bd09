"""The replay audit: rebuild a state from its token ids under its schedule and compare it tensor by tensor.

It is the only proof that a state came from its tokens; a signature says only who deposited it. An interrupted replay
goes on from a checkpoint (core/resuming.py), but an accusation never rests on one. Knows manifests and models, not
the library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from core.cache import keep_rows, new_cache
from core.graft import check_identity, check_ids
from core.model import FrozenModel
from core.state import State, capture, restore, state_tensors
from library.artifact import Artifact
from library.digest import digest_bytes
from library.errors import Cancelled, FormatError
from library.manifest import Manifest, Run

# Called with (positions done, positions in all).
Progress = Callable[[int, int], None]


class Checkpoints(Protocol):
    """Where an interrupted replay goes on. Implementations prove what they load and may lose anything."""

    def load(self) -> tuple[int, State] | None:
        """The furthest known position and the state of the tokens before it, of one row; None: from the start."""

    def due(self, *, stopping: bool) -> bool:
        """Whether the work since the last one is worth keeping; `stopping`: there will be no other chance."""

    def save(self, position: int, state: State) -> None: ...

    def drop(self) -> None:
        """The replay is over, or what was loaded is no good."""


@dataclass(frozen=True)
class Mismatch:
    """A tensor that the rebuilt state does not share: largest difference, and the share of elements that differ."""

    name: str
    largest: float
    share: float


@dataclass(frozen=True)
class AuditReport:
    """`finding`: `reproduced` (all tensors bit-equal), `differs`, or `other-environment` (differs, but this is not
    the environment of the deposit, where other rounding is expected). `resumed`: positions that a checkpoint saved."""

    finding: str
    tensors: int
    mismatches: tuple[Mismatch, ...]
    positions: int
    resumed: int = 0

    @property
    def reproduced(self) -> bool:
        return self.finding == "reproduced"


def audit(
    model: FrozenModel,
    artifact: Artifact,
    *,
    on_progress: Progress | None = None,
    cancelled: threading.Event | None = None,
    checkpoints: Checkpoints | None = None,
) -> AuditReport:
    """Rebuild the artifact's state and compare digests. Raises `IdentityMismatch`, `FormatError`, `Cancelled`.

    What differs after going on from a checkpoint is rebuilt from the start before it is said.
    """
    written = artifact.manifest
    check_identity(model, written.identity)
    if (reason := written.check_lengths()) is not None:
        raise FormatError(f"the artifact's schedule cannot be replayed: {reason}")
    found = resume(model, written, on_progress=on_progress, cancelled=cancelled, checkpoints=checkpoints)
    mismatches = _compared(found.state, artifact)
    if mismatches and found.resumed:
        assert checkpoints is not None
        checkpoints.drop()
        found = resume(model, written, on_progress=on_progress, cancelled=cancelled, checkpoints=checkpoints)
        mismatches = _compared(found.state, artifact)
    if checkpoints is not None:
        checkpoints.drop()
    finding = "reproduced"
    if mismatches:
        same = written.environment.digest == model.environment.digest
        finding = "differs" if same else "other-environment"
    return AuditReport(finding, len(artifact.tensors), tuple(mismatches), written.graft_point, found.resumed)


def _compared(state: State, artifact: Artifact) -> list[Mismatch]:
    rebuilt = {tensor.name: tensor for tensor in state_tensors(state)}
    if rebuilt.keys() != artifact.tensors.keys():
        odd = sorted(rebuilt.keys() ^ artifact.tensors.keys())
        raise FormatError(f"the rebuilt state has other tensors than the artifact: {', '.join(odd[:4])}")
    return [
        _difference(name, state.tensors[name], stored.data)
        for name, stored in artifact.tensors.items()
        if digest_bytes(rebuilt[name].data) != digest_bytes(stored.data)
    ]


@dataclass(frozen=True)
class Rebuilt:
    """A state and how many of its positions a checkpoint saved."""

    state: State
    resumed: int


def rebuild(
    model: FrozenModel,
    written: Manifest,
    *,
    on_progress: Progress | None = None,
    cancelled: threading.Event | None = None,
) -> State:
    """Run the model over the manifest's tokens in the calls of its schedule; the state that comes out."""
    return resume(model, written, on_progress=on_progress, cancelled=cancelled).state


def resume(
    model: FrozenModel,
    written: Manifest,
    *,
    on_progress: Progress | None = None,
    cancelled: threading.Event | None = None,
    checkpoints: Checkpoints | None = None,
) -> Rebuilt:
    """As `rebuild`, from the last checkpoint on if there is one.

    A run in a batch is replayed with all rows alike: a row's result depends on the batch's shape and its own
    place, not on what the other rows hold (models with experts, where it does, are never batched: core/solve.py).
    That is also why a checkpoint need hold one row only.
    """
    check_ids(model, written)
    ids = (*written.prompt_ids, *written.attempt_ids)
    begun = checkpoints.load() if checkpoints is not None else None
    resumed = 0 if begun is None else begun[0]
    cache: Any
    if begun is None:
        cache = new_cache(model.config, room=len(ids))
    else:
        state = begun[1]
        cache = restore(state.layers, state.tensors, model.config, device=model.device, room=len(ids) - resumed)
        del state
    begun = None
    position, rows, place = 0, 1, 0
    with torch.inference_mode(), model.lock:
        for run in written.schedule:
            if position + run.length * run.count <= resumed:
                position += run.length * run.count
                continue
            cache, rows, place = _shape(cache, rows, place, run, position)
            for _ in range(run.count):
                if position < resumed:
                    position += run.length
                    continue
                stopping = cancelled is not None and cancelled.is_set()
                if checkpoints is not None and position > resumed and checkpoints.due(stopping=stopping):
                    checkpoints.save(position, capture(cache, length=position, row=place, batch=rows))
                if stopping:
                    raise Cancelled("the audit was stopped; it goes on from its last checkpoint when asked for again")
                piece = [ids[position : position + run.length]] * rows
                model.forward(torch.tensor(piece, dtype=torch.long, device=model.device), cache)
                position += run.length
                if on_progress is not None:
                    on_progress(position, len(ids))
    return Rebuilt(capture(cache, length=len(ids), row=place, batch=rows), resumed)


def _shape(cache: Any, rows: int, place: int, run: Run, position: int) -> tuple[Any, int, int]:
    """The cache in the batch that a run had: every row is a copy of the state so far."""
    if run.batch != rows or run.row != place:
        if position == 0:
            raise FormatError("a schedule must begin with a batch of one")
        keep_rows(cache, [place] * run.batch)
    return cache, run.batch, run.row


def _difference(name: str, rebuilt: torch.Tensor, stored: Any) -> Mismatch:
    raw = torch.frombuffer(bytearray(stored), dtype=torch.uint8)
    other = raw.view(rebuilt.dtype).reshape(rebuilt.shape)
    if not rebuilt.dtype.is_floating_point:
        return Mismatch(name, float("nan"), float((rebuilt != other).float().mean()))
    gap = (rebuilt.double() - other.double()).abs()
    return Mismatch(name, float(gap.max()) if gap.numel() else 0.0, float((gap > 0).double().mean()))


def describe(mismatches: Sequence[Mismatch], limit: int = 3) -> str:
    """The first few mismatches in words."""
    listed = [f"{m.name} (up to {m.largest:.3g}, {m.share:.1%} of elements)" for m in mismatches[:limit]]
    more = len(mismatches) - limit
    return ", ".join(listed) + (f" and {more} more" if more > 0 else "")
