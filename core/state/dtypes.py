"""Names of dtypes, as safetensors and the manifest write them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import torch

from library.errors import UnsupportedState

DTYPES: Mapping[str, torch.dtype] = MappingProxyType(
    {
        "BOOL": torch.bool,
        "U8": torch.uint8,
        "I8": torch.int8,
        "F8_E4M3": torch.float8_e4m3fn,
        "F8_E5M2": torch.float8_e5m2,
        "I16": torch.int16,
        "F16": torch.float16,
        "BF16": torch.bfloat16,
        "I32": torch.int32,
        "F32": torch.float32,
        "I64": torch.int64,
        "F64": torch.float64,
    }
)
NAMES: Mapping[torch.dtype, str] = MappingProxyType({dtype: name for name, dtype in DTYPES.items()})


def dtype_name(dtype: torch.dtype) -> str:
    """The safetensors name of a dtype. Raises UnsupportedState for one that an artifact cannot hold."""
    if dtype not in NAMES:
        raise UnsupportedState(f"a tensor of dtype {dtype} cannot be stored")
    return NAMES[dtype]
