"""llama.cpp's way to keep a state, beside ours: save and restore of a sequence, where llama-cpp-python is installed.

It runs the model's own quantised GGUF file, so that its prefill and its state are of another arithmetic; what it
restores is neither hashed nor bound to a model's digest. Only times are taken.
"""

from __future__ import annotations

import ctypes
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Slot:
    """Seconds at one length in tokens; `first_token` is restore and the cue; `bytes` is the slot file's size."""

    tokens: int
    bytes: int
    prefill: float
    save: float
    restore: float
    first_token: float


def measure(
    gguf: Path | None, sizes: Sequence[int], ids: Callable[[int], list[int]], cue: Sequence[int], threads: int
) -> tuple[list[Slot], str]:
    """One entry a size, or none and the reason: no such package, or no GGUF file behind the model."""
    try:
        import llama_cpp
    except ImportError:
        return [], "llama-cpp-python is not installed"
    if gguf is None:
        return [], "the model does not come from one GGUF file"
    room = max(sizes) + len(cue) + 64
    llama = llama_cpp.Llama(
        model_path=str(gguf), n_ctx=room, n_batch=512, n_threads=threads, n_threads_batch=threads, verbose=False
    )
    with tempfile.TemporaryDirectory(prefix="scion-slots-") as folder:
        found = [_one(llama_cpp, llama, ids(tokens), cue, Path(folder) / "slot") for tokens in sizes]
    return found, f"llama-cpp-python {llama_cpp.__version__}, {gguf.name}"


def _one(library: Any, llama: Any, ids: Sequence[int], cue: Sequence[int], path: Path) -> Slot:
    name, held = str(path).encode(), (library.llama_token * len(ids))(*ids)
    out, count = (library.llama_token * len(ids))(), ctypes.c_size_t()

    def restore() -> None:
        _empty(library, llama)
        library.llama_state_seq_load_file(llama.ctx, name, 0, out, len(ids), ctypes.byref(count))
        llama.n_tokens = count.value

    def first_token() -> None:
        restore()
        llama.eval(list(cue))

    def prefill() -> None:
        _empty(library, llama)
        llama.eval(list(ids))

    prefilled = _timed(prefill)
    saved = min(_timed(lambda: library.llama_state_seq_save_file(llama.ctx, name, 0, held, len(ids))) for _ in range(3))
    restored = min(_timed(restore) for _ in range(5))
    first = min(_timed(first_token) for _ in range(5))
    return Slot(len(ids), path.stat().st_size, prefilled, saved, restored, first)


def _empty(library: Any, llama: Any) -> None:
    llama.reset()
    library.llama_memory_clear(library.llama_get_memory(llama.ctx), True)


def _timed(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
