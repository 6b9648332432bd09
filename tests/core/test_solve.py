"""Attempts of the real model, kept short: what is recorded is what was run."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from core.cache import new_cache
from core.graft import follow_cue
from core.model import FrozenModel
from core.profiles import cue_ids
from core.solve import PREFILL_CHUNK, RESERVE, Attempt, Plan, Row, check_room, prefill_runs, solve
from library.errors import Cancelled, ContextOverflow
from library.manifest import Run

PROMPT = "Once upon a time there was a little girl who lived in a"


@pytest.fixture(scope="module")
def prompt(model: FrozenModel) -> list[int]:
    """Without the profile's worked examples, which are most of a prompt's time."""
    return list(model.tokenizer.encode(PROMPT, add_special_tokens=False))


def covered(attempt: Attempt) -> int:
    return sum(run.length * run.count for run in attempt.schedule)


@pytest.mark.parametrize(
    ("length", "runs"),
    [
        (1, [(1, 1)]),
        (PREFILL_CHUNK - 1, [(PREFILL_CHUNK - 1, 1)]),
        (PREFILL_CHUNK, [(PREFILL_CHUNK, 1)]),
        (PREFILL_CHUNK + 1, [(PREFILL_CHUNK, 1), (1, 1)]),
        (3 * PREFILL_CHUNK + 7, [(PREFILL_CHUNK, 3), (7, 1)]),
    ],
)
def test_a_prefill_in_chunks_has_its_schedule(length: int, runs: list[tuple[int, int]]) -> None:
    assert [(run.length, run.count) for run in prefill_runs(length)] == runs


def test_the_window_is_kept_with_room_for_the_answer(model: FrozenModel) -> None:
    room = model.window - RESERVE - 100
    check_room(model, 100, room)
    with pytest.raises(ContextOverflow, match=f"use at most {room} tokens"):
        check_room(model, 100, room + 1)
    with pytest.raises(ContextOverflow, match="shorten the problem"):
        check_room(model, model.window, 1)


def test_a_budget_beyond_the_window_runs_nothing(model: FrozenModel, prompt: list[int]) -> None:
    with pytest.raises(ContextOverflow, match=str(model.window)):
        solve(model, prompt, Plan(max_tokens=model.window))


def test_a_seed_repeats_and_another_differs(model: FrozenModel, prompt: list[int]) -> None:
    def ids(seed: int) -> list[tuple[int, ...]]:
        plan = Plan(max_tokens=10, temperature=1.0, seed=seed, attempts=3, batch=3)
        return [attempt.ids for attempt in sorted(solve(model, prompt, plan), key=lambda a: a.number)]

    first = ids(1)
    assert ids(1) == first
    assert ids(2) != first
    assert len(set(first)) > 1


def test_the_record_covers_what_was_fed(model: FrozenModel, prompt: list[int]) -> None:
    plan = Plan(max_tokens=12, temperature=1.2, seed=3, attempts=5, batch=2)
    attempts = solve(model, prompt, plan)
    assert sorted(attempt.number for attempt in attempts) == [0, 1, 2, 3, 4]
    for attempt in attempts:
        assert covered(attempt) == len(prompt) + len(attempt.ids)
        assert attempt.decoded == len(attempt.ids) + 1 <= plan.max_tokens
        assert attempt.finish in ("stop", "length")
        assert max(run.batch for run in attempt.schedule) <= 2
        assert all(run.row < run.batch for run in attempt.schedule)
        assert attempt.text == model.decode(attempt.ids)
    assert any(run.batch == 2 for run in attempts[0].schedule)


def test_a_budget_ends_an_attempt(model: FrozenModel, prompt: list[int]) -> None:
    (attempt,) = solve(model, prompt, Plan(max_tokens=5))
    assert (attempt.finish, attempt.decoded, len(attempt.ids)) == ("length", 5, 4)


def test_greedy_is_one_attempt(model: FrozenModel, prompt: list[int]) -> None:
    attempts = solve(model, prompt, Plan(max_tokens=3, temperature=0, attempts=9))
    assert [attempt.number for attempt in attempts] == [0]
    assert attempts[0].schedule == (*prefill_runs(len(prompt)), Run(length=1, count=2))


def test_a_cancel_ends_within_two_steps_and_keeps_what_was_done(model: FrozenModel, prompt: list[int]) -> None:
    cancelled, steps = threading.Event(), []

    def on_step(rows: Any, decoded: int) -> None:
        steps.append(len(rows[0].ids))
        if len(steps) == 3:
            cancelled.set()

    attempts = solve(model, prompt, Plan(max_tokens=50), on_step=on_step, cancelled=cancelled)
    assert len(steps) <= 3 + 2
    assert [(attempt.finish, len(attempt.ids)) for attempt in attempts] == [("cancelled", len(steps))]


def test_a_cancel_before_the_first_token_decodes_nothing(model: FrozenModel, prompt: list[int]) -> None:
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(Cancelled):
        solve(model, prompt, Plan(max_tokens=50), cancelled=cancelled)


def test_a_cancel_between_waves_starts_no_other(model: FrozenModel, prompt: list[int]) -> None:
    cancelled = threading.Event()
    plan = Plan(max_tokens=4, temperature=1.0, attempts=6, batch=2)
    attempts = solve(model, prompt, plan, on_finish=lambda a, live: cancelled.set() or False, cancelled=cancelled)
    assert {attempt.number for attempt in attempts} <= {0, 1, 2, 3}


def test_a_success_ends_the_others(model: FrozenModel, prompt: list[int]) -> None:
    """The first to end makes other rows and waves unnecessary; all tokens that were decoded are accounted for."""
    plan = Plan(max_tokens=40, temperature=1.5, seed=4, attempts=6, batch=3)
    steps: list[int] = []
    attempts = solve(
        model,
        prompt,
        plan,
        on_step=lambda rows, decoded: steps.append(len(rows)),
        on_finish=lambda attempt, live: True,
    )
    assert sorted(attempt.number for attempt in attempts) == [0, 1, 2]
    assert {attempt.finish for attempt in attempts} <= {"stop", "length", "superseded"}
    assert attempts[0].finish != "superseded"
    assert sum(len(attempt.ids) for attempt in attempts) == sum(steps)


@pytest.mark.parametrize("count", [1, 3])
def test_looking_at_a_live_cache_changes_nothing(model: FrozenModel, prompt: list[int], count: int) -> None:
    """The answer cue is tried on copies: the same run without it gives the same tokens, and two tries the same bits."""
    plan = Plan(max_tokens=8, temperature=1.0, seed=5, attempts=count, batch=count)
    plain = {attempt.number: attempt.ids for attempt in solve(model, prompt, plan)}
    cue = cue_ids(model.tokenizer, model.profile.cues[0])
    tried: list[tuple[str, ...]] = []

    def on_finish(attempt: Attempt, live: Any) -> bool:
        both = [follow_cue(model, live(), cue, limit=2).step_digests for _ in range(2)]
        assert both[0] == both[1]
        tried.append(both[0])
        return False

    watched = {attempt.number: attempt.ids for attempt in solve(model, prompt, plan, on_finish=on_finish)}
    assert watched == plain
    assert len(tried) == count


def test_a_solve_goes_on_from_a_cache(model: FrozenModel, prompt: list[int]) -> None:
    """Half of the prompt as the past: positions go on, and the record covers the new part only."""
    from core.solve import prefill

    half = len(prompt) // 2
    cache = new_cache(model.config, room=64)
    prefill(model, cache, prompt[:half])
    (attempt,) = solve(model, prompt[half:], Plan(max_tokens=6), cache=cache, past=half)
    (whole,) = solve(model, prompt, Plan(max_tokens=6))
    assert attempt.ids == whole.ids  # bits may differ, the likeliest tokens of so short a text do not
    assert covered(attempt) == len(prompt) - half + len(attempt.ids)


def test_rows_are_shown_with_their_tokens(model: FrozenModel, prompt: list[int]) -> None:
    seen: list[tuple[int, list[int]]] = []

    def on_step(rows: Any, decoded: int) -> None:
        assert all(isinstance(row, Row) for row in rows)
        seen.append((decoded, [len(row.ids) for row in rows]))

    solve(model, prompt, Plan(max_tokens=5, temperature=1.0, attempts=2, batch=2), on_step=on_step)
    assert seen[0] == (2, [1, 1])
    assert [lengths[0] for _, lengths in seen] == list(range(1, len(seen) + 1))
