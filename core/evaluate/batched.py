"""Greedy continuations of different prompts as one left-padded batch, so that an experiment costs a tenth.

A row's rounding may differ from a run of its own, so a near tie may fall the other way: good for rates over many
problems, never for a deposit or a certificate. Knows no library and no gate.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from core.answer import extract, split_thinking
from core.cache import GrowingLayer, SlidingBufferLayer, expand, keep_rows, new_cache
from core.graft import ANSWER_TOKENS, closing_brace
from core.model import FrozenModel
from core.solve import prefill


@dataclass(frozen=True)
class Written:
    """One row's continuation. `tokens` counts the stop token; `answer` is None where none was found."""

    text: str
    answer: str | None
    tokens: int
    stopped: bool


def write(
    model: FrozenModel, prompts: Sequence[Sequence[int]], max_tokens: int, *, batch: int, cache: Any = None
) -> list[Written]:
    """Continue each prompt (token ids) greedily up to `max_tokens`; the answers are looked for as in a solve.

    `cache`: a one-row cache that all prompts come after; it is left as it was. Batches of `batch` rows.
    """
    rows = [_Row(tuple(ids), max_tokens) for ids in prompts]
    _run(model, rows, batch, cache)
    return [_free(model, row) for row in rows]


def complete(model: FrozenModel, prompts: Sequence[Sequence[int]], *, batch: int, cache: Any = None) -> list[Written]:
    """As `write`, for prompts that end in an answer cue: decodes until the brace that the cue opened is closed."""
    rows = [_Row(tuple(ids), ANSWER_TOKENS, braced=True) for ids in prompts]
    _run(model, rows, batch, cache)
    return [_cued(model, row) for row in rows]


class _Row:
    def __init__(self, prompt: tuple[int, ...], limit: int, *, braced: bool = False) -> None:
        self.prompt, self.limit, self.braced = prompt, limit, braced
        self.ids: list[int] = []
        self.decoded = 0
        self.stopped = False

    def take(self, model: FrozenModel, token: int) -> bool:
        """Note a token; is the row over?"""
        self.decoded += 1
        if token in model.stop_ids:
            self.stopped = True
            return True
        self.ids.append(token)
        tail = model.decode(self.ids[-12:])
        if self.braced and "}" in tail and closing_brace(model.decode(self.ids)) is not None:
            self.stopped = True
        elif not self.braced and any(stop in tail for stop in model.profile.stops):
            self.stopped = bool(model.decode(self.ids[:-1]).strip())
        return self.stopped or self.decoded >= self.limit


def _free(model: FrozenModel, row: _Row) -> Written:
    text = model.decode(row.ids)
    if model.profile.thinking:
        _, text = split_thinking(text, *model.profile.thinking)
    found = extract(text)
    return Written(text, found.answer if found else None, row.decoded, row.stopped)


def _cued(model: FrozenModel, row: _Row) -> Written:
    text = model.decode(row.ids)
    end = closing_brace(text)
    answer = (text if end is None else text[:end]).strip()
    return Written(text, answer or None, row.decoded, row.stopped)


def _run(model: FrozenModel, rows: Sequence[_Row], batch: int, cache: Any) -> None:
    # Recurrent layers would take padding for text: those go one by one.
    kinds = {type(layer) for layer in new_cache(model.config, room=1).layers}
    width = batch if kinds <= {GrowingLayer, SlidingBufferLayer} else 1
    # Rows of similar length together: less padding.
    order = sorted(rows, key=lambda row: len(row.prompt))
    for first in range(0, len(order), width):
        with torch.inference_mode(), model.lock:
            _chunk(model, order[first : first + width], copy.deepcopy(cache) if cache is not None else None)


def _chunk(model: FrozenModel, rows: Sequence[_Row], cache: Any) -> None:
    live = list(rows)
    shared = _common(rows)
    longest = max(len(row.prompt) for row in rows) + max(row.limit for row in rows)
    if cache is None:
        cache = new_cache(model.config, room=longest, batch=1 if shared else len(rows))
    past = int(cache.get_seq_length())
    if shared:
        prefill(model, cache, rows[0].prompt[:shared])
        past += shared
    if past and len(rows) > 1:
        expand(cache, len(rows))
    width = max(len(row.prompt) for row in rows) - shared
    ids = torch.zeros(len(rows), width, dtype=torch.long, device=model.device)
    mask = torch.ones(len(rows), past + width, dtype=torch.long, device=model.device)
    for place, row in enumerate(rows):
        rest = row.prompt[shared:]
        ids[place, width - len(rest) :] = torch.tensor(rest)
        mask[place, past : past + width - len(rest)] = 0
    while True:
        positions = (mask.cumsum(-1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        logits = model.network(
            input_ids=ids, attention_mask=mask, position_ids=positions, cache=cache, use_cache=True, logits_to_keep=1
        ).logits[:, -1]
        chosen = logits.argmax(dim=-1).tolist()
        keep = [place for place, row in enumerate(live) if not row.take(model, chosen[place])]
        if not keep:
            return
        if len(keep) < len(live):
            keep_rows(cache, keep)
            live, mask = [live[place] for place in keep], mask[keep]
        ids = torch.tensor([[chosen[place]] for place in keep], dtype=torch.long, device=model.device)
        mask = torch.cat([mask, mask.new_ones(len(live), 1)], dim=-1)


def _common(rows: Sequence[_Row]) -> int:
    """Tokens that all prompts begin with; at least one of each is left over."""
    most = min(len(row.prompt) for row in rows) - 1
    first = rows[0].prompt
    shared = 0
    while shared < most and all(row.prompt[shared] == first[shared] for row in rows):
        shared += 1
    return shared
