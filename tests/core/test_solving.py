"""Attempts recorded in a library: which one is put before the reviewers, and what is kept of the others."""

from __future__ import annotations

import json
import threading
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from core import solving
from core.answer import Extracted
from core.deposit import Held, open_staged
from core.energy import Energy
from core.graft import Continuation
from core.jobs import Context
from core.model import FrozenModel
from core.solve import Attempt, Plan
from core.state import State
from library.store import Library
from tests.conftest import ANSWER, PROBLEM


def attempt(number: int, answer: str | None, finish: str = "stop") -> Attempt:
    extracted = None if answer is None else Extracted(answer, "boxed", (0, 1))
    return Attempt(number, (1,), (), finish, 2, "", "", "", extracted, 0.0)  # type: ignore[arg-type]


def held(of: Attempt, replays: bool = True) -> Held:
    return Held(of, State((), {}, 0), Continuation((1,), (2,), (), str(of.answer) if replays else "?", True, 0.0, 0.0))


@pytest.mark.parametrize(
    ("answers", "replaying", "right", "chosen"),
    [
        (["7", "8", "8"], "78", "", "8"),
        (["7", "8", "8"], "78", "7", "7"),
        (["7", "8", "8"], "7", "", "7"),
        (["7", "8", "8"], "8", "7", "7"),
        (["7"], "", "", "7"),
    ],
    ids=["most agree", "right before most", "replays before most", "right before replays", "the only one"],
)
def test_who_is_put_up_for_review(answers: list[str], replaying: str, right: str, chosen: str) -> None:
    finished = [attempt(number, answer) for number, answer in enumerate(answers)]
    kept = {a.answer: held(a, str(a.answer) in replaying) for a in finished}
    found = solving._choose(finished, kept, {answer: answer == right for answer in answers})  # type: ignore[arg-type]
    assert found is not None
    assert found.attempt.answer == chosen


def test_superseded_attempts_have_no_vote() -> None:
    finished = [attempt(0, "7"), *(attempt(n, "8", "superseded") for n in range(1, 5)), attempt(5, "8")]
    kept = {"7": held(finished[0]), "8": held(finished[5])}
    found = solving._choose([*finished, attempt(6, "7")], kept, {})
    assert found is not None
    assert found.attempt.answer == "7"


@pytest.mark.parametrize(
    ("finishes", "reference", "right", "status"),
    [
        (["stop"], None, False, "solved"),
        (["stop"], "7", True, "solved"),
        (["stop"], "7", False, "unsolved"),
        (["stop", "cancelled"], "7", True, "cancelled"),
        (["length"], None, False, "truncated"),
    ],
)
def test_the_status_of_a_solve(finishes: list[str], reference: str | None, right: bool, status: str) -> None:
    finished = [attempt(n, "7", finish) for n, finish in enumerate(finishes)]
    chosen = held(finished[0]) if finishes[0] == "stop" else None
    task = solving.Task(PROBLEM, (1,), Plan(max_tokens=5), reference)
    assert solving._status(task, finished, chosen, {"7": right}) == status


def test_nothing_held_nothing_chosen() -> None:
    assert solving._choose([attempt(0, None)], {}, {}) is None


def context(cancelled: threading.Event | None = None) -> Context:
    return Context("", {}, "ada", cancelled or threading.Event())


def run(model: FrozenModel, library: Library, where: Context, plan: Plan, **options: Any) -> solving.Solved:
    task = solving.fresh_task(model, PROBLEM, plan, **options)
    return solving.run(model, library, task, where, job_id=None)


def test_an_answer_that_is_not_the_references_goes_to_review_as_unsolved(model: FrozenModel, library: Library) -> None:
    """Evidence shows and never decides: a person may know better than the reference."""
    where = context()
    solved = run(model, library, where, Plan(max_tokens=64), reference="8")
    assert (solved.status, len(solved.attempts)) == ("unsolved", 1)
    assert solved.chosen is not None
    row = library.attempt(solved.chosen)
    assert (row.review, row.created_by, row.answer) == ("pending", "ada", solved.answer)
    assert row.staged is not None
    outcomes = {item.check_name: item.outcome for item in library.evidence(row.id)}
    assert outcomes["reference"] == ("pass" if solved.answer == "8" else "fail")
    assert solved.decode_tokens == row.decode_tokens > 0
    assert solved.prefill_tokens == len(model.prompt_ids(PROBLEM))
    kept = json.loads(row.sampling)
    assert sum(r["length"] * r["count"] for r in kept["schedule"]) == solved.prefill_tokens + row.decode_tokens - 1
    assert where.progress.streams[0].state == "stop"
    assert where.progress.streams[0].answer == solved.answer
    json.dumps(solved.to_json())


def test_a_success_among_many_leaves_no_stream_running(model: FrozenModel, library: Library) -> None:
    where = context()
    plan = Plan(max_tokens=96, temperature=0.7, top_p=0.95, attempts=8, batch=8)
    solved = run(model, library, where, plan, reference=ANSWER)
    rows = [library.attempt(identifier) for identifier in solved.attempts]
    assert (solved.status, solved.answer, len(rows)) == ("solved", ANSWER, 8)
    assert solved.decode_tokens == sum(row.decode_tokens for row in rows)
    assert [row.id for row in rows if row.review == "pending"] == [solved.chosen]
    assert [row.id for row in rows if row.staged] == [solved.chosen]
    assert "running" not in {stream.state for stream in where.progress.streams}


def test_a_metered_solve_is_shared_among_its_attempts_and_counted_once(
    model: FrozenModel, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Metered:
        energy = Energy(120.0, "rapl", 1.0)

    monkeypatch.setattr(solving, "measure", lambda kind: nullcontext(Metered()))
    plan = Plan(max_tokens=96, temperature=0.7, top_p=0.95, attempts=3, batch=3)
    solved = run(model, library, context(), plan)
    rows = [library.attempt(identifier) for identifier in solved.attempts]
    assert (solved.joules, len(rows)) == (120.0, 3)
    assert sum(float(row.joules or 0) for row in rows) == pytest.approx(120.0)
    for row in rows:
        assert row.joules == pytest.approx(120.0 * row.decode_tokens / solved.decode_tokens)
    (chosen,) = [row for row in rows if row.id == solved.chosen]
    cost = open_staged(library, str(chosen.staged)).manifest.cost
    assert cost.millijoules == round(float(chosen.joules or 0) * 1000) < 120_000


def test_what_does_not_end_is_truncated_and_keeps_no_state(model: FrozenModel, library: Library) -> None:
    solved = run(model, library, context(), Plan(max_tokens=3))
    assert (solved.status, solved.chosen) == ("truncated", None)
    row = library.attempt(solved.attempts[0])
    assert (row.status, row.staged, row.decode_tokens) == ("truncated", None, 3)
    assert row.review not in ("pending", "approved")
    assert list((library.root / "staging").iterdir()) == []


def test_a_cancelled_solve_keeps_its_record_and_no_state(model: FrozenModel, library: Library) -> None:
    cancelled = threading.Event()
    where = context(cancelled)
    where.on_progress = lambda progress: cancelled.set() if progress.phase == "decoding" else None
    solved = run(model, library, where, Plan(max_tokens=90))
    assert (solved.status, solved.chosen) == ("cancelled", None)
    assert library.attempt(solved.attempts[0]).status == "cancelled"
    assert list((library.root / "staging").iterdir()) == []


def test_a_solve_that_fails_while_staging_leaves_no_attempt_behind(
    model: FrozenModel, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    from library.errors import StorageFull

    def full(*arguments: Any) -> str:
        raise StorageFull("no space left")

    monkeypatch.setattr(library, "stage", full)
    with pytest.raises(StorageFull):
        run(model, library, context(), Plan(max_tokens=64))
    assert library.attempts() == []


def test_a_transfers_origin_covers_the_grafted_positions() -> None:
    from library.manifest import Run

    past = (Run(length=3, count=1),)
    task = solving.Task("q", (4, 5), Plan(max_tokens=5), past_ids=(1, 2, 3), past_runs=past, parent="p")
    assert task.source.prompt_ids == (1, 2, 3, 4, 5)
    assert (task.source.schedule, task.source.parent) == (past, "p")
    assert replace(task, past_ids=(), past_runs=()).source.prompt_ids == (4, 5)
