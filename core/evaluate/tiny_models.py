"""Tiny random models of real architectures: the same weights in every process, because the seed is fixed.

For measuring cache kinds (core/evaluate/cache_kinds.py) and for tests. What they say means nothing; their attention,
their caches and their rounding are those of the real architectures in the installed transformers.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import torch
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedConfig, PreTrainedModel

VOCABULARY = 256
WINDOW = 16  # of every sliding or chunked layer below
_COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": 512,
    "initializer_range": 0.1,
    "tie_word_embeddings": False,  # tied random weights repeat the last token for ever
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_SLIDING = {"sliding_window": WINDOW, "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}

# model type -> what differs from _COMMON
ARCHITECTURES: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "llama": {},
        "qwen3": {},
        "mistral": {"sliding_window": WINDOW},
        "gemma3_text": _SLIDING,
        "gemma3n_text": _SLIDING
        | {
            "num_hidden_layers": 4,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "num_kv_shared_layers": 2,
            "vocab_size_per_layer_input": VOCABULARY,
            "hidden_size_per_layer_input": 8,
            "laurel_rank": 8,
            "activation_sparsity_pattern": [0.0] * 4,
            "intermediate_size": [96] * 4,
        },
        "gemma4_text": _SLIDING
        | {
            "num_hidden_layers": 4,
            "layer_types": ["sliding_attention", "full_attention"] * 2,
            "num_kv_shared_layers": 2,
            "vocab_size_per_layer_input": VOCABULARY,
            "hidden_size_per_layer_input": 8,
            "global_head_dim": 32,
        },
        "gpt_oss": _SLIDING
        | {
            "num_local_experts": 4,
            "num_experts_per_tok": 2,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        },
        "llama4_text": {
            "intermediate_size_mlp": 96,
            "num_local_experts": 2,
            "num_hidden_layers": 4,
            "attention_chunk_size": WINDOW,
            "layer_types": ["chunked_attention", "chunked_attention", "chunked_attention", "full_attention"],
        },
        "deepseek_v32": {
            "num_key_value_heads": 4,
            "moe_intermediate_size": 32,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 1,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "kv_lora_rank": 16,
            "q_lora_rank": 32,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 16,
            "v_head_dim": 16,
            "index_n_heads": 4,
            "index_head_dim": 16,
            "index_topk": 8,
        },
        "qwen3_next": {
            "num_hidden_layers": 4,
            "layer_types": ["linear_attention", "full_attention"] * 2,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
            "moe_intermediate_size": 32,
            "shared_expert_intermediate_size": 32,
            "num_experts": 4,
            "num_experts_per_tok": 2,
        },
        "falcon_h1": {
            "mamba_d_ssm": 64,
            "mamba_n_heads": 4,
            "mamba_d_head": 16,
            "mamba_n_groups": 1,
            "mamba_d_state": 16,
            "mamba_chunk_size": 8,
        },
        "zaya": {
            "sliding_window": WINDOW,
            "layer_types": ["hybrid_sliding", "hybrid", "hybrid_sliding"],
            "num_experts": 4,
            "num_experts_per_tok": 1,
            "moe_intermediate_size": 32,
            "router_hidden_size": 16,
        },
        "mamba2": {
            "num_heads": 8,
            "head_dim": 16,
            "state_size": 16,
            "n_groups": 1,
            "chunk_size": 8,
        },
        "lfm2": {
            "layer_types": ["conv", "full_attention", "conv"],
            "block_ff_dim": 96,
            "block_multiple_of": 16,
        },
    }
)


def tiny_config(architecture: str, **changes: Any) -> PreTrainedConfig:
    """The config of a tiny model of this architecture (a key of `ARCHITECTURES`), with changes."""
    return AutoConfig.for_model(architecture, **(_COMMON | dict(ARCHITECTURES[architecture]) | changes))


def tiny_model(architecture: str, dtype: torch.dtype = torch.float32, **changes: Any) -> PreTrainedModel:
    """A tiny model in evaluation mode on the CPU. Leaves torch's global random state as it was."""
    config = tiny_config(architecture, **changes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(config)
    return model.to(dtype).eval().requires_grad_(False)


def tiny_ids(length: int, rows: int = 1) -> torch.Tensor:
    """Token ids [rows, length] that repeat in no short cycle, avoiding the special ones; every row differs."""
    generator = torch.Generator().manual_seed(11)
    return torch.randint(3, VOCABULARY, (rows, length), generator=generator)
