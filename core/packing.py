"""Linear layers whose weights lie in the order in which oneDNN's products read them.

torch's own product of a few rows (a decode step, an answer cue, a batch of attempts) is MKL's, which sorts the whole
weight anew at every call. Here each weight is sorted once, when the model is loaded, and the plain one is let go:
the same numbers in other places, 1.5 times the tokens per second (docs/performance.md).

oneDNN compiles a kernel for each number of rows that it meets and keeps it, half a megabyte for each shape of weight:
480 MB once 500 lengths of text have gone by (SmolLM2's layers). Therefore only a few numbers of rows ever reach it.

Any architecture whose products are `torch.nn.Linear` gains; a layer of another class is left as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import torch
from torch import nn
from torch.nn import functional

VERSION = "blocks-1"  # of the arithmetic below: the environment's digest commits to it
WHOLE = (512, 128)  # rows of a block that is filled; 512 is a chunk of a prefill
PADDED = (2, 4, 8, 16, 32, 64, 128)  # rows of the last block, which may end in rows of zeros
_AS_THEY_ARE = frozenset({1, *WHOLE, *PADDED})


class PackedLinear(nn.Linear):
    """A frozen linear layer on the CPU. `pack` makes it of a plain one; `weight` unpacks a copy at every reading."""

    packed: torch.Tensor

    @property
    def weight(self) -> torch.Tensor:  # type: ignore[override]
        return self.packed.to_dense()

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        """[..., in] -> [..., out]."""
        count = prod(input.shape[:-1])
        if count in _AS_THEY_ARE:
            return self._product(input)
        rows = input.reshape(count, self.in_features)
        out = input.new_empty(count, self.out_features)
        start = 0
        for held, size in blocks(count):
            block = functional.pad(rows[start : start + held], (0, 0, 0, size - held))
            out[start : start + held] = self._product(block)[:held]
            start += held
        return out.view(*input.shape[:-1], self.out_features)

    def _product(self, input: torch.Tensor) -> torch.Tensor:
        product: torch.Tensor = torch.ops.mkldnn._linear_pointwise(input, self.packed, self.bias, "none", [], "")
        return product

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        super()._save_to_state_dict(destination, prefix, keep_vars)
        destination[prefix + "weight"] = self.weight  # digests are of the numbers that are used


def blocks(rows: int) -> Iterator[tuple[int, int]]:
    """How so many rows are multiplied: (rows of the input, rows of the product), one pair a block, in order.

    A single row that is left over is padded too: oneDNN sums the product of one row in another order than that of
    several, and a row should not come out otherwise for standing at the end.
    """
    for size in WHOLE:
        while rows >= size:
            yield size, size
            rows -= size
    if rows:
        yield rows, next(size for size in PADDED if size >= rows)


def pack(network: nn.Module) -> bool:
    """Packs every plain linear layer in place; whether there was one that could be packed.

    Subclasses of `Linear` compute something else and are left alone, and so are layers on other devices, of other
    dtypes, or where this build of torch has no such product. A weight that is also the embedding's stays there too.
    """
    found = False
    for module in network.modules():
        if type(module) is nn.Linear and _can_pack(module.weight):
            packed = torch.ops.mkldnn._reorder_linear_weight(module.weight.detach(), None)
            del module._parameters["weight"]
            module.__class__ = PackedLinear
            module.packed = packed
            found = True
    if found:
        _leave_the_file(network)
    return found


def _leave_the_file(network: nn.Module) -> None:
    """What is not packed moves to memory of its own. As long as one tensor lies in the mapped checkpoint, all of the
    file's pages that were read stay in the resident set: 513 MB of SmolLM2's, for an embedding of 108."""
    for parameter in network.parameters():
        parameter.data = parameter.data.clone()


def _can_pack(weight: torch.Tensor) -> bool:
    if weight.device.type != "cpu" or weight.numel() == 0 or not torch.backends.mkldnn.is_available():
        return False
    if not hasattr(torch.ops.mkldnn, "_reorder_linear_weight"):
        return False
    if weight.dtype == torch.bfloat16:
        return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())
    return weight.dtype == torch.float32
