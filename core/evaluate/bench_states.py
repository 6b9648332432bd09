"""One length of state: what it costs to have it again, by a graft and by what one would use instead.

Times of one machine, taken side by side; nothing here is asserted in a test.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch

from core.cache import new_cache
from core.deposit import prefill_manifest
from core.graft import follow_cue, grafted
from core.model import FrozenModel
from core.profiles import cue_ids
from core.solve import prefill
from core.state import State, capture, state_tensors
from library.artifact import Encoded, decode_verified, encode
from library.digest import Digest
from library.memory import room_for
from library.store import Library

STEPS = 7  # single steps timed at each length


@dataclass(frozen=True)
class Sized:
    """Seconds at one length in tokens; `bytes` is the artifact's size, `step` one decode step behind that length."""

    tokens: int
    bytes: int
    step: float
    reprefill: float
    text_prefix: float
    graft_first_token: float
    restore: float
    read: float
    plain_read_and_copy: float
    torch_save: float
    safetensors_save: float
    unverified_load: float

    @property
    def first_token_ratio(self) -> float:
        """How much sooner the first token comes after a graft than after a re-prefill of the same tokens."""
        return self.reprefill / self.graft_first_token

    @property
    def restore_ratio(self) -> float:
        """Read, verify, parse and restore, against a plain read and copy of the same bytes."""
        return self.restore / self.plain_read_and_copy


def measure_size(model: FrozenModel, library: Library, tokens: int, rounds: int = 7) -> Sized:
    """A state of natural-looking tokens is made, kept, and brought back `rounds` times (the best counts, except for
    the re-prefill, which runs once or twice, and the text prefix, which runs once)."""
    ids = natural_ids(model, tokens)
    cue = cue_ids(model.tokenizer, model.profile.cues[0])
    with torch.inference_mode():
        reprefill = min(timed(lambda: _prefill_and_choose(model, ids)) for _ in range(2 if tokens <= 1024 else 1))
        text_prefix = timed(lambda: _prefill_and_choose(model, [*ids, *cue]))
        cache = new_cache(model.config, room=tokens + 96)
        prefill(model, cache, ids)
        state = capture(cache, length=tokens)
        one = torch.tensor([[ids[0]]], device=model.device)
        step = statistics.median(timed(lambda: model.forward(one, cache)) for _ in range(STEPS))
        encoded = _encoded(model, state, ids)
        library.blobs.put(encoded.digest, encoded.parts())
        digest = str(encoded.digest)

        def restore() -> Any:
            return grafted(model, decode_verified(library.read_blob(digest), Digest.parse(digest)), room=96)

        path = next(p for p in (library.root / "blobs").rglob("*") if p.is_file() and digest[-60:] in p.name)
        size = path.stat().st_size
        saves = _saved(state)
        result = Sized(
            tokens=tokens,
            bytes=size,
            step=step,
            reprefill=reprefill,
            text_prefix=text_prefix,
            graft_first_token=best(lambda: follow_cue(model, restore(), cue, limit=1), rounds),
            restore=best(restore, rounds),
            read=best(lambda: library.read_blob(digest), rounds),
            plain_read_and_copy=best(lambda: _read_and_copy(path, size), rounds),
            torch_save=saves[0],
            safetensors_save=saves[1],
            unverified_load=saves[2],
        )
    path.unlink()
    return result


def natural_ids(model: FrozenModel, tokens: int) -> list[int]:
    """So many token ids of a text that repeats itself."""
    text = "The baker sold 12 rolls on Monday and 7 more on Tuesday; then she counted what was left. "
    once = model.tokenizer.encode(text, add_special_tokens=False)
    return list((once * (tokens // len(once) + 1))[:tokens])


def solve_seconds(sizes: Sequence[Sized]) -> dict[int, float]:
    """Seconds to decode each length token by token: the measured steps, joined by straight lines and summed up."""
    total, found = 0.0, {}
    before, place = sizes[0].step, 0
    for one in sizes:
        total += (one.tokens - place) * (before + one.step) / 2
        before, place = one.step, one.tokens
        found[one.tokens] = total
    return found


def timed(action: Callable[[], Any]) -> float:
    """Seconds of one call, the device's work included."""
    started = time.perf_counter()
    action()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def best(action: Callable[[], Any], rounds: int) -> float:
    return min(timed(action) for _ in range(rounds))


def _read_and_copy(path: Path, size: int) -> None:
    """The least that could be done: one read into fresh memory, one copy into other fresh memory; large pages both."""
    held, copied = room_for(size), room_for(size)
    with path.open("rb", buffering=0) as file:
        filled = 0
        while filled < size and (count := file.readinto(held[filled:])):
            filled += count
    np.copyto(np.frombuffer(copied, dtype=np.uint8), np.frombuffer(held, dtype=np.uint8))


def _saved(state: State) -> tuple[float, float, float]:
    """Seconds of torch.save, of safetensors' save, and of safetensors' load with a copy.

    Nothing is hashed, synced or bound to a model. torch.load is not timed: it unpickles, which nothing here may do.
    """
    tensors = dict(state.tensors)
    with tempfile.TemporaryDirectory(prefix="scion-save-") as folder:
        plain, safe = Path(folder) / "state.pt", Path(folder) / "state.safetensors"
        by_torch = min(timed(lambda: torch.save(tensors, plain)) for _ in range(3))
        by_safetensors = min(timed(lambda: safetensors.torch.save_file(tensors, safe)) for _ in range(3))
        load = min(timed(lambda: [t.clone() for t in safetensors.torch.load_file(safe).values()]) for _ in range(3))
    return by_torch, by_safetensors, load


def _prefill_and_choose(model: FrozenModel, ids: Sequence[int]) -> int:
    return int(prefill(model, new_cache(model.config, room=len(ids) + 1), ids).argmax())


def _encoded(model: FrozenModel, state: State, ids: Sequence[int]) -> Encoded:
    written = prefill_manifest(model, state, ids, kind="solution", problem="bench", max_tokens=1)
    return encode(written, state_tensors(state))
