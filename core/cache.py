"""Preallocated cache layers that write in place, and the batch operations that best-of-k sampling needs.

transformers' dynamic layers concatenate all keys and values at every token (`cache_utils.py`, 5.24): O(length)
bytes moved per token and layer. These layers write the new positions into a buffer and hand out views of it, with
the inner strides and the alignment of the concatenated tensor, so that attention runs the same kernels on the same
numbers and the logits are the same bits (tests/core/test_cache.py).

Must not know how a state is stored (core/state) or what the tokens mean.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from transformers.cache_utils import Cache, DynamicCache, DynamicLayer, DynamicSlidingWindowLayer

from library.errors import UnsupportedState, UsageError

if TYPE_CHECKING:
    from transformers import PreTrainedConfig

SLACK = 512  # positions that a sliding buffer may run on before its window is moved back to the front

# Bytes. torch aligns tensors to it, and a vector register is no wider. With rows (of one head and position) that are
# a multiple of it, every head and position begins aligned wherever it lies. Otherwise BLAS may round differently with
# the place in memory: measured on AVX-512 with rows of 40 bytes (head dimension 10, float32), not with 48, 80 or 96.
ALIGNMENT = 64


def new_cache(config: PreTrainedConfig, *, room: int, batch: int = 1) -> DynamicCache:
    """An empty cache for a model with this config.

    `room`: positions expected in all; more are taken at the cost of a reallocation. `batch`: rows of the first call.
    Memory is taken at the first call. Layers that are neither full nor sliding attention stay transformers' own.
    Raises UsageError for a room or batch below 1.
    """
    if room < 1 or batch < 1:
        raise UsageError(f"a cache needs room for a position and a row, not room={room}, batch={batch}")
    cache = DynamicCache(config=config)
    cache.layers = [_in_place(layer, room, batch) for layer in cache.layers]
    return cache


def _in_place(layer: Any, room: int, batch: int) -> Any:
    if type(layer) is DynamicLayer:
        return GrowingLayer(room, batch)
    if type(layer) is DynamicSlidingWindowLayer and layer.sliding_window > 1:
        return SlidingBufferLayer(layer.sliding_window, room, batch)
    return layer


def expand(cache: Cache, rows: int) -> Cache:
    """Repeat a one-row cache `rows` times, so that `rows` samples share one prefill. Mutates and returns `cache`."""
    return keep_rows(cache, [0] * rows)


def keep_rows(cache: Cache, indices: Sequence[int]) -> Cache:
    """Keep these batch rows, in this order (a row may occur twice). Mutates and returns `cache`."""
    if not indices or min(indices) < 0:
        raise UsageError(f"rows {list(indices)!r} cannot be kept")
    index: Any = torch.tensor(list(indices), dtype=torch.long)
    cache.reorder_cache(index)  # index_select in every layer class, which batch_select_indices is not
    for layer in cache.layers:
        if hasattr(layer, "batch_size"):  # a static layer notes it at its first call only
            layer.batch_size = len(indices)
    return cache


def _aligned(tensor: torch.Tensor) -> bool:
    return tensor.shape[-1] * tensor.element_size() % ALIGNMENT == 0


class _Buffered(DynamicLayer):
    """Keys and values as views of two buffers [rows, heads, capacity, head dimension].

    Where rows are not aligned there are no buffers, and the layer does what transformers' own does.
    """

    keys: torch.Tensor
    values: torch.Tensor

    def __init__(self, *, room: int, batch: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.room = room
        self.batch = batch
        self._buffers: tuple[torch.Tensor, torch.Tensor] | None = None
        self._start = 0  # where in the buffers the held positions begin

    @property
    def held(self) -> int:
        return self.keys.shape[-2] if self.keys is not None and self.keys.ndim == 4 else 0

    @property
    def capacity(self) -> int:
        return self._buffers[0].shape[-2] if self._buffers is not None else 0

    def load(self, keys: torch.Tensor, values: torch.Tensor, device: torch.device) -> None:
        """Take over these positions: one copy, straight into the buffers. The sources are not kept or written."""
        self.batch = keys.shape[0]
        self.lazy_initialization(keys.new_empty(0, device=device), values.new_empty(0, device=device))
        aligned = _aligned(keys) and _aligned(values)
        self._allocate(keys, values, max(self._first_capacity(), keys.shape[-2]) if aligned else keys.shape[-2])
        if not aligned:
            self._buffers = None

    def load_into(
        self, keys: torch.Tensor, values: torch.Tensor, take: Callable[[Sequence[int], torch.dtype], torch.Tensor]
    ) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """As `load`, with buffers from `take`, and the copies (target, source) left to the caller; none of either
        where rows are not aligned. Give it the memory that `buffer_shapes` asks for."""
        if not (_aligned(keys) and _aligned(values)):
            return []
        held = keys.shape[-2]
        self.batch = keys.shape[0]
        self.lazy_initialization(keys.new_empty(0, device="cpu"), values.new_empty(0, device="cpu"))
        first, second = (take(*wanted) for wanted in self.buffer_shapes(keys, values))
        self._buffers = (first, second)
        self._point(0, held)
        return [(self.keys, keys), (self.values, values)]

    def buffer_shapes(self, keys: torch.Tensor, values: torch.Tensor) -> list[tuple[Sequence[int], torch.dtype]]:
        """Shape and dtype of the buffers in which these positions would be kept."""
        capacity = max(self._first_capacity(), keys.shape[-2])
        return [((*source.shape[:-2], capacity, source.shape[-1]), source.dtype) for source in (keys, values)]

    def _first_capacity(self) -> int:
        return self.room

    def _allocate(self, keys: torch.Tensor, values: torch.Tensor, capacity: int) -> None:
        """Fresh buffers that begin with these positions [rows, heads, held, head dimension]."""
        held = keys.shape[-2]
        buffers = []
        for source in (keys, values):
            shape = (*source.shape[:-2], capacity, source.shape[-1])
            buffer = torch.empty(shape, dtype=source.dtype, device=self.device)
            buffer[:, :, :held].copy_(source, non_blocking=True)
            buffers.append(buffer)
        self._buffers = (buffers[0], buffers[1])
        self._point(0, held)

    def _point(self, start: int, end: int) -> None:
        assert self._buffers is not None
        self._start = start
        self.keys = self._buffers[0][:, :, start:end]
        self.values = self._buffers[1][:, :, start:end]

    def _begin(self, key_states: torch.Tensor, value_states: torch.Tensor) -> bool:
        """Whether there are buffers to write to; made now if this is the first call."""
        if not self.is_initialized:
            if key_states.shape[0] != self.batch:
                raise UsageError(f"the cache was made for {self.batch} rows, the call has {key_states.shape[0]}")
            self.lazy_initialization(key_states, value_states)
            if _aligned(key_states) and _aligned(value_states):
                self._allocate(key_states[:, :, :0], value_states[:, :, :0], self._first_capacity())
        return self._buffers is not None

    def _append(self, key_states: torch.Tensor, value_states: torch.Tensor) -> int:
        """Write behind the held positions; the end of what was written, in buffer positions."""
        assert self._buffers is not None
        begin = self._start + self.held
        end = begin + key_states.shape[-2]
        self._buffers[0][:, :, begin:end].copy_(key_states)
        self._buffers[1][:, :, begin:end].copy_(value_states)
        return end

    def reset(self) -> None:
        super().reset()
        self._buffers, self._start = None, 0

    def reorder_cache(self, beam_idx: Any) -> None:
        self.batch = len(beam_idx)
        if self._buffers is None:
            super().reorder_cache(beam_idx)
            return
        index = beam_idx.to(self.keys.device)
        self._allocate(self.keys.index_select(0, index), self.values.index_select(0, index), self.capacity)

    def batch_repeat_interleave(self, repeats: int) -> None:
        self.reorder_cache(torch.arange(self.batch).repeat_interleave(repeats))

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        self.reorder_cache(torch.arange(self.batch)[indices])

    def offload(self) -> None:
        raise UnsupportedState(f"{type(self).__name__} stays on its device; use transformers' DynamicCache to offload")


class GrowingLayer(_Buffered):
    """Full attention: every position, written in place; the buffer grows by half when it is full."""

    def __init__(self, room: int, batch: int = 1) -> None:
        super().__init__(room=room, batch=batch)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append [rows, heads, n, head dimension]; the whole held keys and values, as views. Mutates the buffers."""
        if not self._begin(key_states, value_states):
            return super().update(key_states, value_states)
        needed = self.held + key_states.shape[-2]
        if needed > self.capacity:
            self._allocate(self.keys, self.values, max(needed, self.capacity + self.capacity // 2 + 64))
        self._point(0, self._append(key_states, value_states))
        return self.keys, self.values


class SlidingBufferLayer(_Buffered, DynamicSlidingWindowLayer):
    """Sliding window: the last `window - 1` positions, a view that walks along a buffer and is now and then moved back.

    Hands out what transformers' sliding layer does: everything held before the call, and all of the call.
    """

    def __init__(self, sliding_window: int, room: int, batch: int = 1) -> None:
        super().__init__(room=room, batch=batch, sliding_window=sliding_window)

    def activate_past_recording(self) -> None:
        raise UnsupportedState("SlidingBufferLayer does not record past states; use transformers' DynamicCache")

    @property
    def _full_capacity(self) -> int:
        return self.sliding_window - 1 + min(SLACK, max(64, self.sliding_window))

    def _first_capacity(self) -> int:
        return min(self.room, self._full_capacity)

    def update(
        self, key_states: torch.Tensor, value_states: torch.Tensor, *args: Any, **kwargs: Any
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Append [rows, heads, n, head dimension]; what the call may attend to. Mutates the buffers."""
        if not self._begin(key_states, value_states):
            return super().update(key_states, value_states)
        assert self._buffers is not None
        count, kept = key_states.shape[-2], self.sliding_window - 1
        self.cumulative_length += count
        if self.held + count > self._full_capacity:  # a prefill longer than the buffer: concatenate this once
            keys = torch.cat([self.keys, key_states], dim=-2)
            values = torch.cat([self.values, value_states], dim=-2)
            self._allocate(keys[:, :, -kept:], values[:, :, -kept:], self._full_capacity)
            return keys, values
        if self._start + self.held + count > self.capacity:
            self._make_way(count)
        start = self._start
        end = self._append(key_states, value_states)
        seen = self._buffers[0][:, :, start:end], self._buffers[1][:, :, start:end]
        self._point(max(start, end - kept), end)
        return seen

    def _make_way(self, count: int) -> None:
        """Room behind the held positions: move them to the front, or into a larger buffer."""
        assert self._buffers is not None
        if self.capacity < self._full_capacity:
            capacity = min(self._full_capacity, max(self.held + count, 2 * self.capacity))
            self._allocate(self.keys, self.values, capacity)
            return
        held = self.held
        for buffer, view in zip(self._buffers, (self.keys, self.values), strict=True):
            buffer[:, :, :held].copy_(view.clone())  # the two may overlap
        self._point(0, held)
