"""Which cache layers a model's config asks for, without running the model: part of the model's identity.

Knows transformers' configs; no tensors.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from transformers import cache_utils as cu

from core.state.kinds import BY_CLASS, REFUSED
from library.errors import UnsupportedState

if TYPE_CHECKING:
    from transformers import PreTrainedConfig


@dataclass(frozen=True)
class LayerKind:
    """What a config asks for at one layer: a family of core/state/kinds.py and its shape, None where it has none."""

    kind: str
    heads: int | None = None
    head_dim: int | None = None
    window: int | None = None

    def as_json(self) -> dict[str, str | int | None]:
        return asdict(self)


def layer_kinds(config: PreTrainedConfig) -> tuple[LayerKind, ...]:
    """One entry a layer. `heads` and `head_dim` are the config's key-value heads, not measured on a cache.

    Raises UnsupportedState for an encoder-decoder model, for a layer type that we do not know, and for dynamic RoPE:
    the rotary module then keeps the longest length that it has seen, a state outside the cache that also depends on
    earlier prompts (`modeling_rope_utils.py`, `dynamic_frequency_update`).
    """
    if getattr(config, "is_encoder_decoder", False):
        raise UnsupportedState(f"{config.model_type}: {REFUSED[cu.EncoderDecoderCache]}")
    text = config.get_text_config(decoder=True)
    if "dynamic" in _rope_types(getattr(text, "rope_parameters", None)):
        raise UnsupportedState(f"{config.model_type}: dynamic RoPE keeps a state outside the cache")
    types, arguments = cu.get_layer_types_and_kwargs(text)
    kinds = []
    for layer_type, kwargs, layer_config in zip(types, arguments, text.per_layer_config, strict=True):
        kind = BY_CLASS.get(cu.DYNAMIC_LAYER_TYPE_MAPPING.get(layer_type, type(None)))
        if kind is None:
            raise UnsupportedState(f"{config.model_type}: its cache layers of type {layer_type!r} cannot be stored")
        heads, head_dim = (None, None) if kind.name in ("none", "linear") else _heads(layer_config)
        kinds.append(LayerKind(kind.name, heads, head_dim, kwargs.get("sliding_window")))
    return tuple(kinds)


def _rope_types(parameters: Any) -> set[str]:
    """The RoPE types of all layers: the parameters are one mapping, or one for each layer type."""
    if not isinstance(parameters, dict):
        return set()
    return {str(one.get("rope_type")) for one in (parameters, *parameters.values()) if isinstance(one, dict)}


def _heads(config: PreTrainedConfig) -> tuple[int | None, int | None]:
    queries = getattr(config, "num_attention_heads", None)
    heads = getattr(config, "num_key_value_heads", None) or queries
    head_dim = getattr(config, "head_dim", None)
    if head_dim is None and queries:
        head_dim = config.hidden_size // queries
    return heads, head_dim
