"""Filling the buffers of all layers of a cache at once: one piece of memory, several threads copying.

Layer by layer, a long state costs a page fault for every 4 KiB of its sixty buffers, and one core copies while the
other waits. Knows buffers, not what is in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import prod
from typing import Any

import numpy as np
import torch

from core.cache import ALIGNMENT, GrowingLayer, SlidingBufferLayer
from library.memory import LARGE, room_for

Pair = tuple[torch.Tensor, torch.Tensor]  # target, source
_MOST_THREADS = 8  # memory is slower than as many


def fill(layers: Sequence[Any], sources: Sequence[Mapping[str, torch.Tensor]]) -> None:
    """Give the fresh in-place layers among these their keys and values on the CPU, if together they are large.

    Layers that are left (other classes, rows that are not aligned, small states) stay as they are, not initialised.
    The sources are copied once and not kept.
    """
    wanted = [
        (layer, source["keys"], source["values"])
        for layer, source in zip(layers, sources, strict=True)
        if isinstance(layer, GrowingLayer | SlidingBufferLayer) and {"keys", "values"} <= source.keys()
    ]
    size = sum(_size(*shape) for layer, keys, values in wanted for shape in layer.buffer_shapes(keys, values))
    if size < LARGE or any(t.device.type != "cpu" for _, *tensors in wanted for t in tensors):
        return
    memory, taken = torch.frombuffer(room_for(size), dtype=torch.uint8), 0

    def take(shape: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
        nonlocal taken
        start, taken = taken, taken + _size(shape, dtype)
        return memory[start : start + prod(shape) * dtype.itemsize].view(dtype).view(tuple(shape))

    _copy([pair for layer, keys, values in wanted for pair in layer.load_into(keys, values, take)])


def _size(shape: Sequence[int], dtype: torch.dtype) -> int:
    return -(-prod(shape) * dtype.itemsize // ALIGNMENT) * ALIGNMENT


def _copy(pairs: Sequence[Pair]) -> None:
    """Each thread a run of neighbours, so that no two of them wait for the same large page."""
    threads = max(1, min(_MOST_THREADS, torch.get_num_threads()))
    share = -(-len(pairs) // threads)
    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(_copy_run, [pairs[i : i + share] for i in range(0, len(pairs), share or 1)]))


def _copy_run(pairs: Sequence[Pair]) -> None:
    for target, source in pairs:  # numpy lets go of the interpreter meanwhile, and starts no threads of its own
        np.copyto(target.view(torch.uint8).numpy(), source.view(torch.uint8).numpy())
