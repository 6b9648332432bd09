"""Choosing the next token. Knows logits and random numbers, not models.

Sampling runs on the CPU in float32 with one generator an attempt, so that an attempt's choices do not depend on
which other attempts share its batch.
"""

from __future__ import annotations

import torch

_HEAD = 1024  # the nucleus nearly always lies in this many tokens; a full sort of 50,000 costs milliseconds


def generator(seed: int, attempt: int) -> torch.Generator:
    """The random stream of one attempt of one solve."""
    return torch.Generator().manual_seed((seed * 1_000_003 + attempt) % (1 << 63))


def choose(logits: torch.Tensor, temperature: float, top_p: float, generators: list[torch.Generator]) -> list[int]:
    """One token id a row of `logits` [rows, vocabulary]; the likeliest if `temperature` is 0, else nucleus sampling.

    Nucleus sampling: Holtzman et al. 2020 (arXiv 1904.09751); the token that crosses `top_p` is kept.
    """
    if temperature == 0:
        return [int(i) for i in logits.argmax(dim=-1).tolist()]
    probabilities = torch.softmax(logits.float().cpu() / temperature, dim=-1)
    head, ids = probabilities.topk(min(_HEAD, probabilities.shape[-1]), dim=-1)
    if bool((head.sum(dim=-1) < top_p).any()):
        head, ids = probabilities.sort(dim=-1, descending=True)
    before = head.cumsum(dim=-1) - head
    head = head.masked_fill(before >= top_p, 0.0)
    sums = head.cumsum(dim=-1)
    draws = torch.cat([torch.rand(1, generator=g) for g in generators]).unsqueeze(1) * sums[:, -1:]
    places = torch.searchsorted(sums, draws, right=True).clamp(max=head.shape[-1] - 1)
    return [int(i) for i in ids.gather(1, places).squeeze(1).tolist()]
