"""Attention of several queries over a longer cache without a copy of the cache, for grouped heads on the CPU.

Behind a mask transformers repeats every key and value head for each of its query heads (`repeat_kv` in
`integrations/sdpa_attention.py`, 5.24): at 2,048 positions the copies cost more than the attention. Here the query
heads of a group stand below each other as further queries of their key head, with the mask repeated instead.

Single steps and calls without a mask go to transformers' own function, which copies nothing there.
"""

from __future__ import annotations

from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "sdpa_grouped"
# Longer calls are bound by the products; their masks would be the larger copies.
MOST_QUERIES = 64
# Families whose code treats every attention function alike (some ask for "sdpa" by name); all are tried in
# tests/core/test_packing.py.
_FAMILIES = frozenset({"llama", "mistral", "qwen2", "qwen3", "gemma3_text"})


def use_grouped(network: Any) -> None:
    """Lets a network on the CPU with transformers' scaled-dot-product attention use this one, if it is known to."""
    config = network.config
    if config.model_type in _FAMILIES and config._attn_implementation == "sdpa" and network.device.type == "cpu":
        AttentionInterface.register(NAME, attend)
        AttentionMaskInterface.register(NAME, sdpa_mask)
        network.set_attn_implementation(NAME)


def attend(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """As `sdpa_attention_forward`: query [rows, heads, n, dim], the result [rows, n, heads, dim]."""
    rows, heads, count, _ = query.shape
    groups = heads // key.shape[1]
    if attention_mask is None or groups == 1 or not 1 < count <= MOST_QUERIES or attention_mask.shape[1] != 1:
        result: tuple[torch.Tensor, None] = sdpa_attention_forward(
            module, query, key, value, attention_mask, scaling=scaling, **kwargs
        )
        return result
    out = torch.nn.functional.scaled_dot_product_attention(
        query.reshape(rows, key.shape[1], groups * count, -1),
        key,
        value,
        attn_mask=attention_mask.repeat(1, 1, groups, 1),
        scale=scaling,
    )
    return out.reshape(rows, heads, count, -1).transpose(1, 2).contiguous(), None
