"""Tensors of a state as the bytes of an artifact, and back, without copying either way.

Knows memory, not what a tensor means.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from core.state.capture import State
from core.state.dtypes import DTYPES, dtype_name
from library.artifact import TensorData
from library.errors import FormatError


def state_tensors(state: State) -> tuple[TensorData, ...]:
    """The tensors of a state as views, which keep its memory alive. Raises UnsupportedState for an odd dtype."""
    return tuple(
        TensorData(name, dtype_name(tensor.dtype), tuple(tensor.shape), _bytes_of(tensor))
        for name, tensor in state.tensors.items()
    )


def _bytes_of(tensor: torch.Tensor) -> memoryview:
    # numpy has neither bfloat16 nor 8-bit floats: everything goes as uint8
    flat: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return memoryview(flat).toreadonly()


def tensors_from_artifact(tensors: Mapping[str, TensorData]) -> Mapping[str, torch.Tensor]:
    """Torch views on the verified buffer, no copy. They keep the buffer alive.

    torch has no read-only tensors: writing to one would change the buffer, therefore `restore` copies.
    Raises FormatError for a dtype that this version of torch cannot hold.
    """
    return MappingProxyType({name: _view(tensor) for name, tensor in tensors.items()})


def _view(tensor: TensorData) -> torch.Tensor:
    dtype = DTYPES.get(tensor.dtype)
    if dtype is None:
        raise FormatError(f"tensor {tensor.name!r} has dtype {tensor.dtype!r}, which cannot be restored")
    if tensor.data.nbytes == 0:
        return torch.empty(tensor.shape, dtype=dtype)
    # through DLPack, because torch.frombuffer warns about read-only memory
    raw = from_dlpack(np.frombuffer(tensor.data, dtype=np.uint8))
    return raw.view(dtype).reshape(tensor.shape)
