"""What a graft costs beside what one would use instead, all in one run on the user's machine.

Every figure is a ratio of times measured side by side, with the times beside it. Nothing here is asserted in a test.
"""

from __future__ import annotations

import platform
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from core.cache import new_cache
from core.graft import follow_cue, grafted
from core.model import FrozenModel
from core.profiles import cue_ids
from core.solve import Plan, prefill, prefill_runs, solve
from core.state import capture, state_tensors
from library import manifest as m
from library.artifact import decode_verified, encode, tensor_digests
from library.audit import now
from library.digest import Digest
from library.store import Library

QUICK_SIZES = (256, 1024, 2048)
FULL_SIZES = (256, 512, 1024, 2048, 4096, 8064)
Say = Callable[[str], None]


@dataclass(frozen=True)
class Sized:
    """Seconds at one length in tokens; `bytes` is the artifact's size."""

    tokens: int
    bytes: int
    reprefill: float
    text_prefix: float
    graft_first_token: float
    restore: float
    plain_read_and_copy: float
    unverified_load: float

    @property
    def first_token_ratio(self) -> float:
        """How much sooner the first token comes after a graft than after a re-prefill of the same tokens."""
        return self.reprefill / self.graft_first_token

    @property
    def restore_ratio(self) -> float:
        """Read, verify, parse and restore, against a plain read and copy of the same bytes."""
        return self.restore / self.plain_read_and_copy


def bench(model: FrozenModel, *, quick: bool = False, say: Say = lambda text: None) -> dict[str, Any]:
    """All measurements on one model; JSON without further meaning than its names."""
    sizes = [n for n in (QUICK_SIZES if quick else FULL_SIZES) if n + 128 <= model.window]
    with (
        tempfile.TemporaryDirectory(prefix="scion-bench-") as folder,
        Library.open(Path(folder) / "library") as library,
    ):
        by_size = []
        for tokens in sizes:
            say(f"graft against re-prefill at {tokens} tokens")
            by_size.append(measure_size(model, library, tokens))
        say("decode loop against generate")
        decoding = measure_decode(model, tokens=48 if quick else 128)
        say("best of 8 against eight runs")
        best = measure_best_of(model, tokens=24 if quick else 64)
    largest = by_size[-1]
    return {
        "machine": machine(model),
        "quick": quick,
        "restore_ratio": largest.restore_ratio,
        "first_token_ratio": {str(s.tokens): s.first_token_ratio for s in by_size},
        **decoding,
        **best,
        "sizes": [
            {**s.__dict__, "first_token_ratio": s.first_token_ratio, "restore_ratio": s.restore_ratio} for s in by_size
        ],
    }


def machine(model: FrozenModel) -> dict[str, Any]:
    """What the figures were measured on."""
    return {**model.environment.fields, "model": model.name, "dtype": str(model.dtype), "system": platform.platform()}


def measure_size(model: FrozenModel, library: Library, tokens: int, rounds: int = 5) -> Sized:
    """One length: a state of natural-looking tokens is made, kept, and brought back `rounds` times (the best counts,
    except for the re-prefill, which runs once or twice, and the text prefix, which runs once)."""
    ids = _ids(model, tokens)
    reprefill = min(_timed(lambda: _prefill_and_choose(model, ids)) for _ in range(2 if tokens <= 1024 else 1))
    cache = new_cache(model.config, room=tokens + 96)
    with torch.inference_mode():
        prefill(model, cache, ids)
    encoded = _encoded(model, cache, ids)
    library.blobs.put(encoded.digest, encoded.parts())
    digest = str(encoded.digest)
    cue = cue_ids(model.tokenizer, model.profile.cues[0])

    def first_token() -> None:
        opened = decode_verified(library.read_blob(digest), Digest.parse(digest))
        follow_cue(model, grafted(model, opened, room=96), cue, limit=1)

    def restore() -> None:
        opened = decode_verified(library.read_blob(digest), Digest.parse(digest))
        grafted(model, opened, room=96)

    path = next(p for p in (library.root / "blobs").rglob("*") if p.is_file() and digest[-60:] in p.name)
    size = path.stat().st_size

    def plain() -> None:
        buffer = bytearray(size)
        with path.open("rb", buffering=0) as file:
            file.readinto(buffer)
        torch.frombuffer(buffer, dtype=torch.uint8).clone()

    unverified = safetensors.torch.save(dict(capture(cache, length=tokens).tensors))

    def load() -> None:
        for tensor in safetensors.torch.load(unverified).values():  # from memory, and nothing is checked
            tensor.clone()

    with torch.inference_mode():
        result = Sized(
            tokens=tokens,
            bytes=size,
            reprefill=reprefill,
            text_prefix=_timed(lambda: _prefill_and_choose(model, [*ids, *cue])),
            graft_first_token=_best(first_token, rounds),
            restore=_best(restore, rounds),
            plain_read_and_copy=_best(plain, rounds),
            unverified_load=_best(load, rounds),
        )
    path.unlink()
    return result


def measure_decode(model: FrozenModel, tokens: int) -> dict[str, Any]:
    """Our decode loop and transformers' `generate`, greedy, same prompt, same number of tokens; alternating."""
    prompt = model.prompt_ids("Ana has 9 stamps and finds 14 more. Tell a long story about her.")
    ids = torch.tensor([prompt], device=model.device)
    ours, theirs = [], []
    silent = _without_stops(model)
    for _ in range(3):
        ours.append(_timed(lambda: solve(silent, prompt, Plan(max_tokens=tokens))))
        with torch.inference_mode():
            theirs.append(
                _timed(
                    lambda: model.network.generate(
                        ids,
                        attention_mask=torch.ones_like(ids),
                        max_new_tokens=tokens,
                        min_new_tokens=tokens,
                        do_sample=False,
                        pad_token_id=0,
                    )
                )
            )
    return {
        "decode_ratio": min(theirs) / min(ours),
        "decode_tokens_per_second": tokens / min(ours),
        "generate_tokens_per_second": tokens / min(theirs),
    }


def measure_best_of(model: FrozenModel, tokens: int, attempts: int = 8) -> dict[str, Any]:
    """Eight attempts as one batch against eight runs of one attempt."""
    prompt = model.prompt_ids("Ana has 9 stamps and finds 14 more. How many does she have?")
    silent = _without_stops(model)
    batch = _timed(
        lambda: solve(silent, prompt, Plan(tokens, temperature=0.8, attempts=attempts, batch=attempts, top_p=0.95))
    )
    single = _timed(lambda: solve(silent, prompt, Plan(tokens, temperature=0.8, attempts=1, top_p=0.95)))
    return {
        "best_of_8_ratio": single * attempts / batch,
        "best_of_8_tokens_per_second": attempts * tokens / batch,
    }


def _ids(model: FrozenModel, tokens: int) -> list[int]:
    text = "The baker sold 12 rolls on Monday and 7 more on Tuesday; then she counted what was left. "
    once = model.tokenizer.encode(text, add_special_tokens=False)
    return (once * (tokens // len(once) + 1))[:tokens]


def _prefill_and_choose(model: FrozenModel, ids: Sequence[int]) -> int:
    logits = prefill(model, new_cache(model.config, room=len(ids) + 1), ids)
    return int(logits.argmax())


def _encoded(model: FrozenModel, cache: Any, ids: Sequence[int]) -> Any:
    state = capture(cache, length=len(ids))
    tensors = state_tensors(state)
    written = m.Manifest(
        schema_version=m.SCHEMA_VERSION,
        kind="solution",
        problem="bench",
        reference=None,
        solution="",
        thinking="",
        answer="",
        prompt_ids=tuple(ids),
        attempt_ids=(),
        schedule=tuple(prefill_runs(len(ids))),
        graft_point=len(ids),
        sampling=m.Sampling(temperature="0", top_p="1", seed=0, max_tokens=1),
        identity=model.identity,
        environment=model.environment,
        layers=state.layers,
        tensors=tensor_digests(tensors),
        certificate=None,
        evidence=(),
        decisions=(),
        cost=m.Cost(prefill_tokens=len(ids), decode_tokens=0, microseconds=0, millijoules=None, flops=0),
        parent=None,
        source=None,
        created=now(),
    )
    return encode(written, tensors)


def _without_stops(model: FrozenModel) -> FrozenModel:
    return replace(model, stop_ids=frozenset(), profile=replace(model.profile, stops=()))


def _timed(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter() - started


def _best(action: Callable[[], Any], rounds: int) -> float:
    return min(_timed(action) for _ in range(rounds))
