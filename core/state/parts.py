"""What each part of a cache layer carries: how to read it off a live layer, and how to put it into a fresh one.

A layer is one part (a full-attention layer is `Keys`) or several (a hybrid layer is `Keys` and `Recurrent`). Each
part names every instance attribute that it knows; core/state/kinds.py refuses a layer with any other, because an
attribute that is not stored makes a restored state differ without an error.

Knows transformers' layer classes (`transformers/cache_utils.py`, 5.24), not the cache around them, not files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from core.cache import GrowingLayer, SlidingBufferLayer
from library.errors import UnsupportedState

Tensors = Mapping[str, torch.Tensor]
Attributes = Mapping[str, Any]


@dataclass
class Found:
    """What was read off one layer: tensors by role with the dimension that counts batch rows (None: no rows)."""

    tensors: dict[str, tuple[torch.Tensor, int | None]] = field(default_factory=dict)
    attributes: dict[str, Any] = field(default_factory=dict)


class Part(Protocol):
    known: frozenset[str]

    def read(self, layer: Any, length: int) -> Found:
        """What this part holds for positions [0, length). Raises UnsupportedState where it holds anything else."""

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        """Give a fresh layer this content, in memory of its own on `device`: the tensors are copied once, not kept."""


def require(condition: bool, layer: object, problem: str) -> None:
    if not condition:
        raise UnsupportedState(f"{type(layer).__name__}: {problem}")


def owned(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """A contiguous copy on `device`. To CUDA through pinned memory, so that the copies of many layers overlap."""
    return torch.empty(tensor.shape, dtype=tensor.dtype, device=device).copy_(pinned(tensor, device), non_blocking=True)


def pinned(tensor: torch.Tensor, device: torch.device) -> torch.Tensor:
    """`tensor`, moved to pinned memory if it goes from the CPU to CUDA: only from there is a copy asynchronous."""
    if device.type == "cuda" and tensor.device.type == "cpu":
        return tensor.pin_memory()
    return tensor


class Nothing:
    """A layer that holds no cache: it has no attention, or uses another layer's keys (`DummyLayer`)."""

    known = frozenset({"keys", "values", "is_initialized"})

    def read(self, layer: Any, length: int) -> Found:
        require(layer.keys is None and layer.values is None, layer, "it should hold nothing")
        return Found()

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        pass


class Keys:
    """Keys and values of every position, [rows, heads, length, head dimension] (`DynamicLayer`, `GrowingLayer`)."""

    known = frozenset({"keys", "values", "is_initialized", "device"})
    # `room`, `batch`, `_buffers` and `_start` say where the positions lie, not what they are
    buffered = frozenset({"room", "batch", "_buffers", "_start"})

    def read(self, layer: Any, length: int) -> Found:
        require(layer.is_initialized, layer, "it was never written; run the model once before capturing")
        held = layer.keys.shape[-2]
        require(held == length, layer, f"it holds {held} positions, not {length}")
        return Found({"keys": (layer.keys, 0), "values": (layer.values, 0)})

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        if isinstance(layer, GrowingLayer | SlidingBufferLayer):
            if layer.is_initialized:
                return  # core/state/bulk.py has filled it, together with the other layers
            layer.load(pinned(tensors["keys"], device), pinned(tensors["values"], device), device)
            return
        layer.keys, layer.values = owned(tensors["keys"], device), owned(tensors["values"], device)
        layer.device = layer.keys.device
        layer.is_initialized = True


class Window(Keys):
    """Keys and values of the last `window - 1` positions, and how many there have been (`DynamicSlidingWindowLayer`).

    Chunked attention (Llama 4) uses the same class; only its mask differs.
    """

    known = Keys.known | {"sliding_window", "cumulative_length", "_sliding_window_tensor", "record_past"}

    def read(self, layer: Any, length: int) -> Found:
        require(layer.is_initialized, layer, "it was never written; run the model once before capturing")
        require(not layer.record_past, layer, "it records past states (assisted decoding); decode without it")
        window, seen, held = layer.sliding_window, layer.cumulative_length, layer.keys.shape[-2]
        require(isinstance(window, int) and window > 1, layer, f"its window is {window!r}")
        require(int(layer._sliding_window_tensor) == window, layer, "its two notes of the window differ")
        require(seen == length, layer, f"it has seen {seen} positions, not {length}")
        require(held == min(length, window - 1), layer, f"it holds {held} positions of a window of {window}")
        return Found(
            {"keys": (layer.keys, 0), "values": (layer.values, 0)},
            {"sliding_window": window, "cumulative_length": seen},
        )

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        super().write(layer, tensors, attributes, device)
        layer.cumulative_length = attributes["cumulative_length"]
        layer._sliding_window_tensor = layer._sliding_window_tensor.to(device)


class Indexer:
    """The keys of sparse attention's indexer, [rows, length, dimension], beside the layer's own keys.

    `indexer_position_ids` [position dimensions, rows, length] is set by some models only. A model that shares one
    indexer among layers leaves the other layers' uninitialised.
    """

    known = frozenset(
        {"indexer_keys", "indexer_position_ids", "is_indexer_initialized", "indexer_dtype", "indexer_device"}
    )

    def read(self, layer: Any, length: int) -> Found:
        found = Found(attributes={"is_indexer_initialized": bool(layer.is_indexer_initialized)})
        if layer.is_indexer_initialized:
            held = layer.indexer_keys.shape[1]
            require(held == length, layer, f"its indexer holds {held} positions, not {length}")
            found.tensors["indexer_keys"] = (layer.indexer_keys, 0)
        if layer.indexer_position_ids is not None:
            found.tensors["indexer_position_ids"] = (layer.indexer_position_ids, 1)
        return found

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        if attributes["is_indexer_initialized"]:
            keys = owned(tensors["indexer_keys"], device)
            layer.lazy_initialization_indexer(keys)
            layer.indexer_keys = keys
        if "indexer_position_ids" in tensors:
            layer.indexer_position_ids = owned(tensors["indexer_position_ids"], device)


class Recurrent:
    """Convolution and recurrent states of linear attention, one of each or several (`LinearAttentionLayer`).

    These have no positions: that they belong to positions [0, length) cannot be read off them.
    """

    known = frozenset(
        {
            "number_of_states",
            "conv_states",
            "recurrent_states",
            "is_conv_states_initialized",
            "is_recurrent_states_initialized",
            "has_previous_state",
            "conv_kernel_size",
            "device",
            "dtype",
            "record_past",
        }
    )

    def read(self, layer: Any, length: int) -> Found:
        require(not layer.record_past, layer, "it records past states (assisted decoding); decode without it")
        count = layer.number_of_states
        found = Found(attributes={"number_of_states": count, "conv": [], "recurrent": [], "conv_kernel_size": []})
        for name in ("conv_states", "recurrent_states", "has_previous_state", "conv_kernel_size"):
            require(set(getattr(layer, name)) == set(range(count)), layer, f"{name} has not {count} entries")
        previous = [bool(layer.has_previous_state[i]) for i in range(count)]
        require(any(previous), layer, "it was never written; run the model once before capturing")
        for i in range(count):
            conv, recurrent = layer.is_conv_states_initialized[i], layer.is_recurrent_states_initialized[i]
            if conv:
                kernel = layer.conv_states[i].shape[-1]
                require(kernel == layer.conv_kernel_size[i], layer, f"its convolution state {i} has length {kernel}")
                found.tensors[f"conv_{i}"] = (layer.conv_states[i], 0)
            if recurrent:
                # a fresh layer would lay it out anew, and strides can change the rounding
                require(layer.recurrent_states[i].is_contiguous(), layer, f"its recurrent state {i} is not contiguous")
                found.tensors[f"recurrent_{i}"] = (layer.recurrent_states[i], 0)
            found.attributes["conv"].append(bool(conv))
            found.attributes["recurrent"].append(bool(recurrent))
            found.attributes["conv_kernel_size"].append(layer.conv_kernel_size[i])
        found.attributes["has_previous_state"] = previous
        return found

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        for i in range(attributes["number_of_states"]):
            if attributes["conv"][i]:
                conv = owned(tensors[f"conv_{i}"], device)
                layer.lazy_initialization(conv_states=conv, state_idx=i)
                layer.conv_states[i].copy_(conv)  # keeps the address that the layer marked as static
            if attributes["recurrent"][i]:
                recurrent = owned(tensors[f"recurrent_{i}"], device)
                layer.lazy_initialization(recurrent_states=recurrent, state_idx=i)
                layer.recurrent_states[i].copy_(recurrent)
            layer.has_previous_state[i] = attributes["has_previous_state"][i]
