"""The frozen model solves a problem: prefill once, decode the attempts as one batch, record what was run.

Yields nothing to a person by itself: `Listener` is called at each step. Knows no library and no jobs.
"""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch

from core import sampling
from core.answer import Extracted, extract, split_thinking
from core.cache import expand, keep_rows, new_cache
from core.model import FrozenModel
from core.state import State, capture, select_row
from library.errors import Cancelled, ContextOverflow
from library.manifest import Run

PREFILL_CHUNK = 512  # positions a prefill call; bounds the memory of attention scores
RESERVE = 96  # positions kept for the answer cue and the replayed answer after the longest attempt

Finish = Literal["stop", "length", "cancelled", "superseded"]


@dataclass(frozen=True)
class Plan:
    """How to solve: `attempts` in batches of `batch`, each with its own random stream of `seed`."""

    max_tokens: int
    temperature: float = 0.0
    top_p: float = 1.0
    seed: int = 0
    attempts: int = 1
    batch: int = 8


@dataclass
class Row:
    """An attempt under way. `ids` are the tokens fed so far: their states are in the cache."""

    number: int
    generator: torch.Generator
    ids: list[int] = field(default_factory=list)
    steps: list[tuple[int, int]] = field(default_factory=list)
    finish: Finish | None = None


@dataclass(frozen=True)
class Attempt:
    """A finished attempt. `schedule` covers prompt and `ids`; `decoded` counts sampled tokens, the stop included."""

    number: int
    ids: tuple[int, ...]
    schedule: tuple[Run, ...]
    finish: Finish
    decoded: int
    text: str
    thinking: str
    solution: str
    extracted: Extracted | None
    seconds: float

    @property
    def answer(self) -> str | None:
        return self.extracted.answer if self.extracted else None


# Called with the rows under way and the tokens decoded so far, at every step.
Listener = Callable[[Sequence[Row], int], None]
# Called at the end of an attempt with its live one-row cache maker; True ends the solve.
Finished = Callable[[Attempt, Callable[[], Any]], bool]


def check_room(model: FrozenModel, prompt_tokens: int, max_tokens: int) -> None:
    """Raises `ContextOverflow` unless prompt, budget and answer cue fit the window."""
    if prompt_tokens + max_tokens + RESERVE > model.window:
        room = model.window - prompt_tokens - RESERVE
        raise ContextOverflow(
            f"the prompt has {prompt_tokens} tokens and the budget is {max_tokens}, but {model.name}'s window is "
            f"{model.window} with {RESERVE} kept for the answer: "
            + (f"use at most {room} tokens" if room > 0 else "shorten the problem")
        )


def prefill_runs(length: int) -> list[Run]:
    """The schedule of a chunked prefill of `length` tokens."""
    runs = []
    if length >= PREFILL_CHUNK:
        runs.append(Run(length=PREFILL_CHUNK, count=length // PREFILL_CHUNK))
    if length % PREFILL_CHUNK:
        runs.append(Run(length=length % PREFILL_CHUNK, count=1))
    return runs


def prefill(
    model: FrozenModel, cache: Any, ids: Sequence[int], cancelled: threading.Event | None = None
) -> torch.Tensor:
    """Feed `ids` to a one-row cache in chunks; logits [1, vocabulary] of the last. May raise `Cancelled`."""
    tensor = torch.tensor([list(ids)], dtype=torch.long, device=model.device)
    logits = torch.empty(0)
    with torch.inference_mode():
        for start in range(0, tensor.shape[1], PREFILL_CHUNK):
            if cancelled is not None and cancelled.is_set():
                raise Cancelled("stopped during prefill")
            logits = model.forward(tensor[:, start : start + PREFILL_CHUNK], cache)
    return logits


def solve(
    model: FrozenModel,
    prompt: Sequence[int],
    plan: Plan,
    *,
    cache: Any = None,
    past: int = 0,
    on_step: Listener | None = None,
    on_finish: Finished | None = None,
    cancelled: threading.Event | None = None,
) -> list[Attempt]:
    """Run up to `plan.attempts` attempts on `prompt` and return those that were begun, in order of finishing.

    `cache` with `past` positions is continued if given (it is consumed); it needs a plan of one batch. A cancel ends
    within one decode step; the attempts under way are returned with finish `cancelled`, those that a finished one
    made unnecessary with `superseded`. Raises `ContextOverflow`,
    and `Cancelled` when nothing was decoded.
    """
    check_room(model, past + len(prompt), plan.max_tokens)
    attempts = plan.attempts if plan.temperature > 0 else 1
    if not model.rows_independent:
        plan = replace(plan, batch=1)  # else the replay audit could not rebuild a row without its neighbours
    started = time.perf_counter()
    own = cache is None
    if own:
        cache = new_cache(model.config, room=len(prompt) + plan.max_tokens + RESERVE)
    logits = prefill(model, cache, prompt, cancelled)
    done: list[Attempt] = []
    runs = prefill_runs(len(prompt))
    for first in range(0, attempts, plan.batch):
        count = min(plan.batch, attempts - first)
        last_wave = first + count >= attempts
        wave_cache = cache if last_wave else copy.deepcopy(cache)
        rows = [Row(n, sampling.generator(plan.seed, n)) for n in range(first, first + count)]
        wave = _Wave(model, plan, wave_cache, len(prompt) + past, runs, rows, started)
        for attempt, live in wave.run(logits, on_step, cancelled):
            done.append(attempt)
            if on_finish is not None and on_finish(attempt, live):
                wave.supersede()
        if wave.ended_early:
            break
    return done


class _Wave:
    """One batch of attempts that share a prefill. Rows leave the batch as they finish."""

    def __init__(
        self,
        model: FrozenModel,
        plan: Plan,
        cache: Any,
        prompt_length: int,
        runs: Sequence[Run],
        rows: list[Row],
        started: float,
    ) -> None:
        self.model, self.plan, self.cache = model, plan, cache
        self.prompt_length, self.runs, self.started = prompt_length, runs, started
        self.rows = rows
        self.decoded = 0
        self.ended_early = False

    def supersede(self) -> None:
        """A finished attempt made the others unnecessary."""
        self.ended_early = True

    def run(
        self, logits: torch.Tensor, on_step: Listener | None, cancelled: threading.Event | None
    ) -> Iterator[tuple[Attempt, Callable[[], Any]]]:
        model, plan = self.model, self.plan
        if len(self.rows) > 1:
            expand(self.cache, len(self.rows))
            logits = logits.expand(len(self.rows), -1)
        while self.rows:
            chosen = sampling.choose(logits, plan.temperature, plan.top_p, [row.generator for row in self.rows])
            self.decoded += len(chosen)
            stop = cancelled is not None and cancelled.is_set()
            for place, (row, token) in enumerate(zip(self.rows, chosen, strict=True)):
                row.finish = self._finish(row, token, stop)
                if row.finish:
                    yield self._attempt(row), self._live(place)
            keep = [i for i, row in enumerate(self.rows) if row.finish is None]
            if stop or self.ended_early or not keep:
                self.ended_early = self.ended_early or stop
                for place in keep:  # their tokens were paid for all the same
                    self.rows[place].finish = "superseded"
                    yield self._attempt(self.rows[place]), self._live(place)
                return
            if len(keep) < len(self.rows):
                keep_rows(self.cache, keep)
                self.rows, chosen = [self.rows[i] for i in keep], [chosen[i] for i in keep]
            ids = torch.tensor(chosen, dtype=torch.long, device=model.device).unsqueeze(1)
            with torch.inference_mode():
                logits = model.forward(ids, self.cache)
            for place, (row, token) in enumerate(zip(self.rows, chosen, strict=True)):
                row.ids.append(token)
                row.steps.append((len(self.rows), place))
            if on_step is not None:
                on_step(self.rows, self.decoded)

    def _finish(self, row: Row, token: int, cancelled: bool) -> Finish | None:
        if token in self.model.stop_ids:
            return "stop"
        if self.model.profile.stops:
            tail = self.model.decode([*row.ids[-12:], token])
            if any(stop in tail for stop in self.model.profile.stops) and self.model.decode(row.ids).strip():
                return "stop"
        if len(row.ids) + 1 >= self.plan.max_tokens:
            return "length"
        return "cancelled" if cancelled else None

    def _live(self, place: int) -> Callable[[], Any]:
        """A maker of independent copies of one row's live cache; a batch of one is copied whole, not by capture."""
        rows, length = len(self.rows), self.prompt_length + len(self.rows[place].ids)

        def make() -> Any:
            if rows == 1:
                return copy.deepcopy(self.cache)
            return select_row(self.cache, place, length=length, batch=rows, room=RESERVE)

        return make

    def _attempt(self, row: Row) -> Attempt:
        text = self.model.decode(row.ids)
        opened, closed = self.model.profile.thinking or ("", "")
        thinking, solution = split_thinking(text, opened, closed) if opened else ("", text)
        return Attempt(
            number=row.number,
            ids=tuple(row.ids),
            schedule=tuple(self.runs) + tuple(_runs(row.steps)),
            finish=row.finish or "cancelled",
            decoded=len(row.ids) + 1,
            text=text,
            thinking=thinking,
            solution=solution,
            extracted=extract(solution),
            seconds=time.perf_counter() - self.started,
        )


def _runs(steps: Sequence[tuple[int, int]]) -> list[Run]:
    """Run-length form of single steps, each in a batch of so many rows at such a place."""
    runs: list[Run] = []
    for batch, row in steps:
        last = runs[-1] if runs else None
        if last is not None and (last.batch, last.row) == (batch, row):
            runs[-1] = last.model_copy(update={"count": last.count + 1})
        else:
            runs.append(Run(length=1, count=1, batch=batch, row=row))
    return runs


def captured(live: Any, attempt: Attempt, prompt_length: int) -> State:
    """The state of a finished attempt, from its live one-row cache (which is left as it was)."""
    return capture(live, length=prompt_length + len(attempt.ids))
