"""The tiny models of core/evaluate/tiny_models.py and a plain greedy loop, for tests."""

from __future__ import annotations

from typing import Any

import torch

from core.evaluate.tiny_models import ARCHITECTURES, VOCABULARY, WINDOW, tiny_config, tiny_ids, tiny_model

__all__ = ["ARCHITECTURES", "VOCABULARY", "WINDOW", "feed", "greedy", "tiny_config", "tiny_ids", "tiny_model"]


@torch.inference_mode()
def feed(model: Any, cache: Any, ids: torch.Tensor) -> torch.Tensor:
    """One forward call on ids [rows, n]; the last position's logits [rows, vocabulary]. Mutates the cache."""
    return model(input_ids=ids, cache=cache, use_cache=True).logits[:, -1].clone()


def greedy(model: Any, cache: Any, ids: torch.Tensor, steps: int) -> torch.Tensor:
    """Feed ids [rows, n], then `steps` greedy tokens: all logits [steps + 1, rows, vocabulary]. Mutates the cache."""
    out = [feed(model, cache, ids)]
    for _ in range(steps):
        out.append(feed(model, cache, out[-1].argmax(-1, keepdim=True)))
    return torch.stack(out)
