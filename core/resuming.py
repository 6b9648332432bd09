"""A replay's checkpoints in the library: kept at intervals, proven before they are gone on from.

A checkpoint is an artifact file of the first positions: its tokens and schedule must be the beginning of those that
are replayed, its identity and environment those of the running model, its bytes those of the digest that the library
recorded. Anything else is dropped and the replay starts over. Knows library and manifests, not how a replay runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from core.model import FrozenModel
from core.state import State, state_tensors, tensors_from_artifact
from library.artifact import decode_verified, encode, tensor_digests
from library.audit import now
from library.digest import Digest
from library.errors import CorruptError, ScionError, StoreError
from library.manifest import Cost, Manifest, Run
from library.store import Library

EVERY_SECONDS = 30.0  # of replay between two checkpoints
SHARE = 0.05  # of the time, at most, goes into checkpoints
STOPPING_SECONDS = 5.0  # less work than this is not worth a checkpoint at the end


class Kept:
    """The checkpoints of one artifact's replay by one model in this environment (core/replay.Checkpoints)."""

    def __init__(
        self,
        library: Library,
        model: FrozenModel,
        artifact: str,
        written: Manifest,
        *,
        every: float = EVERY_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._library, self._artifact, self._written = library, artifact, written
        self._identity, self._environment = model.identity, model.environment
        self._every, self._clock = every, clock
        self._last, self._wait = clock(), every

    def load(self) -> tuple[int, State] | None:
        digest = self._library.replay_checkpoint(self._artifact, self._environment.digest)
        if digest is None:
            return None
        try:
            opened = decode_verified(self._library.read_staged(digest), Digest.parse(digest))
            position = opened.manifest.graft_point
            if self._is_beginning(opened.manifest):
                return position, State(opened.manifest.layers, tensors_from_artifact(opened.tensors), position)
        except ScionError:
            pass  # gone, damaged or of another format: nothing is lost but time
        self.drop()
        return None

    def due(self, *, stopping: bool) -> bool:
        passed = self._clock() - self._last
        return passed >= (min(STOPPING_SECONDS, self._every) if stopping else self._wait)

    def save(self, position: int, state: State) -> None:
        begun = self._clock()
        tensors = state_tensors(state)
        ids = (*self._written.prompt_ids, *self._written.attempt_ids)[:position]
        prompt = min(position, len(self._written.prompt_ids))
        part = self._written.model_copy(
            update={
                "solution": "",
                "thinking": "",
                "answer": "",
                "prompt_ids": ids[:prompt],
                "attempt_ids": ids[prompt:],
                "schedule": beginning(self._written.schedule, position),
                "graft_point": position,
                "identity": self._identity,
                "environment": self._environment,
                "layers": state.layers,
                "tensors": tensor_digests(tensors),
                "certificate": None,
                "evidence": (),
                "decisions": (),
                "cost": Cost(prefill_tokens=0, decode_tokens=0, microseconds=0, millijoules=None, flops=0),
                "parent": self._artifact,
                "created": now(),
            }
        )
        try:
            encoded = encode(part, tensors)
            self._library.keep_checkpoint(self._artifact, self._environment.digest, encoded, position)
        except (StoreError, CorruptError):
            pass  # a full disk must not end a replay
        self._last = self._clock()
        self._wait = max(self._every, (self._last - begun) / SHARE)

    def drop(self) -> None:
        self._library.drop_checkpoint(self._artifact, self._environment.digest)

    def _is_beginning(self, part: Manifest) -> bool:
        whole, position = self._written, part.graft_point
        ids = (*whole.prompt_ids, *whole.attempt_ids)
        return (
            part.parent == self._artifact
            and part.identity == self._identity
            and part.environment == self._environment
            and 0 < position < len(ids)
            and (*part.prompt_ids, *part.attempt_ids) == ids[:position]
            and part.schedule == beginning(whole.schedule, position)
        )


def beginning(schedule: tuple[Run, ...], position: int) -> tuple[Run, ...] | None:
    """The calls that lead to `position`; None if no call ends there."""
    kept: list[Run] = []
    for run in schedule:
        whole = min(run.count, position // run.length)
        if whole:
            kept.append(run.model_copy(update={"count": whole}))
            position -= whole * run.length
        if whole < run.count:
            break
    return None if position else tuple(kept)
