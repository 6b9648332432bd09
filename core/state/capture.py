"""A live transformers cache to named tensors: all of it, or an error that names what cannot be stored.

Knows the cache's layers; not models, tokens or files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import torch
from transformers import cache_utils as cu

from core.state.kinds import REFUSED, kind_of
from library.errors import UnsupportedState
from library.manifest import LayerSpec

_CACHES = frozenset({cu.Cache, cu.DynamicCache, cu.StaticCache, cu.QuantizedCache})
_CACHE_ATTRIBUTES = frozenset({"layers", "layer_class_to_replicate", "offloading"})


@dataclass(frozen=True)
class State:
    """All that a model carries from one token to the next, for one sequence.

    `tensors`: contiguous CPU tensors that belong to the state, by names such as `layers.00.keys`; the dimension of
    batch rows is kept, with one row. `length`: positions held, [0, length).
    """

    layers: tuple[LayerSpec, ...]
    tensors: Mapping[str, torch.Tensor]
    length: int

    @property
    def nbytes(self) -> int:
        return sum(tensor.nbytes for tensor in self.tensors.values())


def capture(cache: Any, *, length: int, row: int = 0, batch: int = 1) -> State:
    """Copy one row of a live cache, which goes on unchanged. Waits for the device first.

    `length`: positions that the caller fed to the model; every layer must agree. `batch`: rows that the cache has.
    Raises UnsupportedState for a layer class or attribute that is not known, and where counts disagree.
    """
    return read_row(cache, length=length, row=row, batch=batch, device=torch.device("cpu"))


@torch.inference_mode()
def read_row(cache: Any, *, length: int, row: int, batch: int, device: torch.device | None) -> State:
    """As `capture`, with the copies on `device`, or each on its own device (None)."""
    _check_cache(cache)
    if not 0 <= row < batch:
        raise UnsupportedState(f"row {row} of a batch of {batch}")
    specs: list[LayerSpec] = []
    tensors: dict[str, torch.Tensor] = {}
    width = max(2, len(str(len(cache.layers) - 1)))
    synchronised: set[torch.device] = set()
    for index, layer in enumerate(cache.layers):
        try:
            kind = kind_of(layer)
            found = kind.read(layer, length)
        except UnsupportedState as error:
            raise UnsupportedState(f"layer {index}: {error}") from None
        names: dict[str, str] = {}
        for role, (tensor, rows) in found.tensors.items():
            _synchronise(tensor.device, synchronised)
            if rows is not None:
                if tensor.shape[rows] != batch:
                    raise UnsupportedState(f"layer {index}: {role} has {tensor.shape[rows]} rows, not {batch}")
                tensor = tensor.narrow(rows, row, 1)
            names[role] = f"layers.{index:0{width}d}.{role}"
            copy = torch.empty(tensor.shape, dtype=tensor.dtype, device=device or tensor.device)
            tensors[names[role]] = copy.copy_(tensor)
        specs.append(LayerSpec(index=index, kind=kind.name, tensors=names, attributes=found.attributes))
    return State(tuple(specs), MappingProxyType(tensors), length)


def _check_cache(cache: Any) -> None:
    cls = type(cache)
    if cls not in _CACHES:
        raise UnsupportedState(f"cannot store {cls.__name__}: {REFUSED.get(cls, 'an unknown kind of cache')}")
    if cache.offloading:
        raise UnsupportedState(f"cannot store {cls.__name__}: it offloads layers; keep the cache on its device")
    unknown = sorted(set(vars(cache)) - _CACHE_ATTRIBUTES)
    if unknown:
        raise UnsupportedState(f"{cls.__name__} carries an attribute that cannot be stored yet: {', '.join(unknown)}")
    if not cache.layers:
        raise UnsupportedState(f"cannot store {cls.__name__}: it is empty")


def _synchronise(device: torch.device, done: set[torch.device]) -> None:
    """Wait for whatever still writes on this device, on any stream (vllm-project/vllm#45704)."""
    if device in done:
        return
    done.add(device)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    elif device.type == "mps":
        torch.mps.synchronize()
