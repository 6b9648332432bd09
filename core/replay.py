"""The replay audit: rebuild a state from its token ids under its schedule and compare it tensor by tensor.

It is the only proof that a state came from its tokens; a signature says only who deposited it. Knows manifests
and models, not the library.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from core.cache import keep_rows, new_cache
from core.graft import check_identity
from core.model import FrozenModel
from core.state import State, capture, state_tensors
from library.artifact import Artifact
from library.digest import digest_bytes
from library.errors import Cancelled, FormatError
from library.manifest import Manifest, Run

# Called with (positions done, positions in all).
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Mismatch:
    """A tensor that the rebuilt state does not share: largest difference, and the share of elements that differ."""

    name: str
    largest: float
    share: float


@dataclass(frozen=True)
class AuditReport:
    """`finding`: `reproduced` (all tensors bit-equal), `differs`, or `other-environment` (differs, but this is not
    the environment of the deposit, where other rounding is expected)."""

    finding: str
    tensors: int
    mismatches: tuple[Mismatch, ...]
    positions: int

    @property
    def reproduced(self) -> bool:
        return self.finding == "reproduced"


def audit(
    model: FrozenModel,
    artifact: Artifact,
    *,
    on_progress: Progress | None = None,
    cancelled: threading.Event | None = None,
) -> AuditReport:
    """Rebuild the artifact's state and compare digests. Raises `IdentityMismatch`, `FormatError`, `Cancelled`."""
    written = artifact.manifest
    check_identity(model, written.identity)
    if (reason := written.check_lengths()) is not None:
        raise FormatError(f"the artifact's schedule cannot be replayed: {reason}")
    state = rebuild(model, written, on_progress=on_progress, cancelled=cancelled)
    rebuilt = {tensor.name: tensor for tensor in state_tensors(state)}
    if rebuilt.keys() != artifact.tensors.keys():
        odd = sorted(rebuilt.keys() ^ artifact.tensors.keys())
        raise FormatError(f"the rebuilt state has other tensors than the artifact: {', '.join(odd[:4])}")
    mismatches = []
    for name, stored in artifact.tensors.items():
        if digest_bytes(rebuilt[name].data) != digest_bytes(stored.data):
            mismatches.append(_difference(name, state.tensors[name], stored.data))
    finding = "reproduced"
    if mismatches:
        same = written.environment.digest == model.environment.digest
        finding = "differs" if same else "other-environment"
    return AuditReport(finding, len(rebuilt), tuple(mismatches), written.graft_point)


def rebuild(
    model: FrozenModel,
    written: Manifest,
    *,
    on_progress: Progress | None = None,
    cancelled: threading.Event | None = None,
) -> State:
    """Run the model over the manifest's tokens in the calls of its schedule; the state that comes out.

    A run in a batch is replayed with all rows alike: a row's result depends on the batch's shape and its own
    place, not on what the other rows hold (models with experts, where it does, are never batched: core/solve.py).
    """
    ids = (*written.prompt_ids, *written.attempt_ids)
    cache = new_cache(model.config, room=len(ids))
    position, rows = 0, 1
    place = 0
    with torch.inference_mode(), model.lock:
        for run in written.schedule:
            cache, rows, place = _shape(cache, rows, place, run, position)
            for _ in range(run.count):
                if cancelled is not None and cancelled.is_set():
                    raise Cancelled("the audit was stopped; it starts over when it is asked for again")
                piece = [ids[position : position + run.length]] * rows
                model.forward(torch.tensor(piece, dtype=torch.long, device=model.device), cache)
                position += run.length
                if on_progress is not None:
                    on_progress(position, len(ids))
    return capture(cache, length=len(ids), row=place, batch=rows)


def _shape(cache: Any, rows: int, place: int, run: Run, position: int) -> tuple[Any, int, int]:
    """The cache in the batch that a run had: every row is a copy of the state so far."""
    if run.batch != rows:
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
