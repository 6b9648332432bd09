"""The parts of static layers (buffers of a fixed length, for torch.compile and CUDA graphs) and of quantised ones.

As core/state/parts.py, for `StaticLayer`, `StaticSlidingWindowLayer`, `StaticIndexedLayer`, `Fp8QuantizedLayer`.
Only written positions are stored; the rest of a static buffer is zeros that the mask hides.
"""

from __future__ import annotations

from typing import Any

import torch

from core.state.dtypes import DTYPES, dtype_name
from core.state.parts import Attributes, Found, Tensors, owned, require


def _fill(layer: Any, tensors: Tensors, device: torch.device) -> None:
    """Allocate a static layer's buffers for these rows and copy the written positions to their front."""
    keys, values = tensors["keys"], tensors["values"]
    layer.lazy_initialization(*(t.new_empty((*t.shape[:2], 0, t.shape[-1]), device=device) for t in (keys, values)))
    layer.keys[:, :, : keys.shape[-2]].copy_(keys)
    layer.values[:, :, : values.shape[-2]].copy_(values)


class StaticKeys:
    known = frozenset(
        {
            "keys",
            "values",
            "is_initialized",
            "device",
            "max_cache_len",
            "cumulative_length",
            "batch_size",
            "num_heads",
            "k_head_dim",
            "v_head_dim",
        }
    )

    def read(self, layer: Any, length: int) -> Found:
        require(layer.is_initialized, layer, "it was never written; run the model once before capturing")
        seen, size = int(layer.cumulative_length), layer.max_cache_len
        require(seen == length, layer, f"it has seen {seen} positions, not {length}")
        require(seen <= size == layer.keys.shape[-2], layer, f"its buffer of {size} cannot hold {seen} positions")
        written = {"keys": (layer.keys[:, :, :seen], 0), "values": (layer.values[:, :, :seen], 0)}
        return Found(dict(written), {"max_cache_len": size})

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        _fill(layer, tensors, device)
        layer.cumulative_length.fill_(tensors["keys"].shape[-2])


class StaticWindow:
    """A static buffer of the window; once it is full the tensor `cumulative_length` no longer counts, the int does."""

    known = StaticKeys.known | {"cumulative_length_int", "_is_croppable"}

    def read(self, layer: Any, length: int) -> Found:
        require(layer.is_initialized, layer, "it was never written; run the model once before capturing")
        seen, size = layer.cumulative_length_int, layer.max_cache_len
        require(seen == length, layer, f"it has seen {seen} positions, not {length}")
        held = min(seen, size)
        written = {"keys": (layer.keys[:, :, :held], 0), "values": (layer.values[:, :, :held], 0)}
        return Found(
            dict(written),
            {
                "max_cache_len": size,
                "cumulative_length": int(layer.cumulative_length),
                "cumulative_length_int": seen,
                "is_croppable": bool(layer._is_croppable),
            },
        )

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        _fill(layer, tensors, device)
        layer.cumulative_length.fill_(attributes["cumulative_length"])
        layer.cumulative_length_int = attributes["cumulative_length_int"]
        layer._is_croppable = attributes["is_croppable"]


class StaticIndexer:
    """The static counterpart of `Indexer`: a buffer [rows, max_cache_len, dimension] and its own counter."""

    known = frozenset(
        {
            "indexer_keys",
            "indexer_position_ids",
            "indexer_cumulative_length",
            "is_indexer_initialized",
            "indexer_dtype",
            "indexer_device",
        }
    )

    def read(self, layer: Any, length: int) -> Found:
        found = Found(attributes={"is_indexer_initialized": bool(layer.is_indexer_initialized)})
        if layer.is_indexer_initialized:
            seen = int(layer.indexer_cumulative_length)
            require(seen == length, layer, f"its indexer has seen {seen} positions, not {length}")
            found.tensors["indexer_keys"] = (layer.indexer_keys[:, :seen], 0)
        if layer.indexer_position_ids is not None:
            found.tensors["indexer_position_ids"] = (layer.indexer_position_ids, 1)
        return found

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        if attributes["is_indexer_initialized"]:
            keys = tensors["indexer_keys"]
            layer.lazy_initialization_indexer(keys.new_empty((keys.shape[0], 0, keys.shape[-1]), device=device))
            layer.indexer_keys[:, : keys.shape[1]].copy_(keys)
            layer.indexer_cumulative_length.fill_(keys.shape[1])
        if "indexer_position_ids" in tensors:
            layer.indexer_position_ids = owned(tensors["indexer_position_ids"], device)


class Fp8:
    """Keys and values in 8-bit floating point under one scale a tensor, fixed at the first call.

    The scale spans the batch rows. What a step reads is quantised value times scale, element by element, so that one
    row and the scale continue as that row would have.
    """

    known = frozenset(
        {
            "keys",
            "values",
            "is_initialized",
            "device",
            "cumulative_length",
            "_quantized_keys",
            "_quantized_values",
        }
    )

    def read(self, layer: Any, length: int) -> Found:
        require(layer.is_initialized, layer, "it was never written; run the model once before capturing")
        (keys, key_scale), (values, value_scale) = layer._quantized_keys, layer._quantized_values
        held = keys.shape[-2]
        require(
            held == length == layer.cumulative_length == values.shape[-2],
            layer,
            f"it holds {held} positions and counts {layer.cumulative_length}, not {length}",
        )
        require(layer.keys.numel() == 0, layer, "it holds states that are not quantised")
        return Found(
            {
                "quantized_keys": (keys, 0),
                "quantized_values": (values, 0),
                "key_scale": (key_scale, None),
                "value_scale": (value_scale, None),
            },
            {"dtype": dtype_name(layer.keys.dtype)},  # the one that the layer gives back
        )

    def write(self, layer: Any, tensors: Tensors, attributes: Attributes, device: torch.device) -> None:
        layer.keys, layer.values = (torch.tensor([], dtype=DTYPES[attributes["dtype"]], device=device) for _ in "kv")
        layer.device = layer.keys.device
        layer._quantized_keys = (owned(tensors["quantized_keys"], device), owned(tensors["key_scale"], device))
        layer._quantized_values = (owned(tensors["quantized_values"], device), owned(tensors["value_scale"], device))
        layer.cumulative_length = tensors["quantized_keys"].shape[-2]
        layer.is_initialized = True
