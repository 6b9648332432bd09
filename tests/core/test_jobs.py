"""The queue over a real library, with handlers that stand in for the model's work."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.jobs import Context, JobView, Progress, Stream, Worker
from library.errors import Cancelled, Conflict, ContextOverflow, NotFound
from library.store import Library

WAIT = 20.0


class Gate:
    """A handler that says when it began and goes on when it is let."""

    def __init__(self) -> None:
        self.began, self.go = threading.Event(), threading.Event()

    def __call__(self, context: Context) -> Mapping[str, Any]:
        self.began.set()
        while not self.go.wait(0.01):
            context.check()
        return {"status": "solved"}


def failing(error: BaseException) -> Callable[[Context], Mapping[str, Any]]:
    def handler(context: Context) -> Mapping[str, Any]:
        raise error

    return handler


def echo(context: Context) -> Mapping[str, Any]:
    context.report(phase="decoding", tokens=3, budget=9, streams=(Stream("attempt 1", text="abc", tokens=3),))
    return {"said": context.payload["say"], "owner": context.owner}


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def worker(library: Library, gate: Gate) -> Iterator[Worker]:
    handlers = {
        "echo": echo,
        "gate": gate,
        "crash": failing(RuntimeError("boom")),
        "memory": failing(MemoryError()),
        "refuse": failing(ContextOverflow("too long")),
        "stop": failing(Cancelled("stopped")),
    }
    made = Worker(library, handlers)
    yield made
    gate.go.set()
    made.close()


def done(worker: Worker, job: str) -> JobView:
    view = worker.wait(job, timeout=WAIT)
    assert view.over
    return view


def test_a_job_is_recorded_run_and_kept(worker: Worker, library: Library) -> None:
    job = worker.enqueue("echo", {"say": "hello"}, "ada")
    view = done(worker, job)
    assert (view.state, view.result, view.error) == ("done", {"said": "hello", "owner": "ada"}, "")
    assert (view.kind, view.owner, dict(view.payload)) == ("echo", "ada", {"say": "hello"})
    assert view.created <= str(view.started) <= str(view.finished)
    kept = library.job(job)
    assert (kept.state, kept.owner) == ("done", "ada")


@pytest.mark.parametrize(
    ("kind", "state", "error"),
    [
        ("crash", "failed", "RuntimeError: boom"),
        ("memory", "failed", "MemoryError: not enough memory"),
        ("refuse", "failed", "ContextOverflow: too long"),
        ("stop", "cancelled", ""),
    ],
)
def test_the_worker_outlives_a_job_that_ends_badly(
    worker: Worker, kind: str, state: str, error: str, capfd: pytest.CaptureFixture[str]
) -> None:
    bad = done(worker, worker.enqueue(kind, {}, "ada"))
    assert (bad.state, bad.error[: len(error)]) == (state, error)
    assert done(worker, worker.enqueue("echo", {"say": 1}, "ada")).state == "done"
    told = capfd.readouterr().err
    assert ("Traceback" in told) == (kind == "crash")  # an expected error is told, not dumped


def test_the_worker_outlives_a_database_that_fails(
    worker: Worker, library: Library, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    real, failed = library.update_job, threading.Event()

    def once(*arguments: Any, **changes: Any) -> Any:
        if not failed.is_set():
            failed.set()
            raise OSError("the disk is gone")
        return real(*arguments, **changes)

    monkeypatch.setattr(library, "update_job", once)
    worker.enqueue("echo", {"say": 1}, "ada")
    assert failed.wait(WAIT)
    assert done(worker, worker.enqueue("echo", {"say": 2}, "ada")).state == "done"
    assert "the disk is gone" in capfd.readouterr().err


def test_one_job_runs_at_a_time_and_the_others_know_their_place(worker: Worker, gate: Gate) -> None:
    first = worker.enqueue("gate", {}, "ada")
    assert gate.began.wait(WAIT)
    second, third = (worker.enqueue("echo", {"say": n}, "bob") for n in range(2))
    assert [worker.view(job).progress.place for job in (first, second, third)] == [0, 1, 2]
    assert worker.view(first).state == "running"
    assert worker.view(third).progress.phase == "queued"
    gate.go.set()
    assert [done(worker, job).state for job in (first, second, third)] == ["done"] * 3
    assert worker.view(second).progress.place == 0
    assert [view.id for view in worker.views("bob", 10)] == [third, second]
    assert [view.id for view in worker.views(None, 2)] == [third, second]


def test_a_running_job_is_cancelled(worker: Worker, gate: Gate) -> None:
    job = worker.enqueue("gate", {}, "ada")
    assert gate.began.wait(WAIT)
    assert worker.cancel(job)
    assert done(worker, job).state == "cancelled"
    assert not worker.cancel(job)


def test_a_queued_job_is_cancelled_without_running(worker: Worker, gate: Gate) -> None:
    worker.enqueue("gate", {}, "ada")
    assert gate.began.wait(WAIT)
    job = worker.enqueue("crash", {}, "ada")
    assert worker.cancel(job)
    gate.go.set()
    view = done(worker, job)
    assert (view.state, view.error, view.started) == ("cancelled", "", None)


def test_a_handler_may_finish_what_it_had_although_cancelled(library: Library) -> None:
    """A solve that was stopped still records what it had: its result says cancelled or, if it was quicker, solved."""
    results = {"cancelled": "cancelled", "solved": "done"}
    for status, state in results.items():
        began = threading.Event()

        def handler(context: Context, status: str = status, began: threading.Event = began) -> Mapping[str, Any]:
            began.set()
            assert context.cancelled.wait(WAIT)
            return {"status": status}

        worker = Worker(library, {"solve": handler})
        job = worker.enqueue("solve", {}, "ada")
        assert began.wait(WAIT)
        worker.cancel(job)
        assert done(worker, job).state == state
        worker.close()


def test_unknown_jobs_and_kinds(worker: Worker) -> None:
    with pytest.raises(Conflict, match="no handler"):
        worker.enqueue("sing", {}, "ada")
    with pytest.raises(NotFound):
        worker.view("j0000000000000000")
    assert not worker.cancel("j0000000000000000")


def test_progress_reaches_another_process_and_survives_it(
    worker: Worker, library: Library, gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = worker.enqueue("echo", {"say": 1}, "ada")
    done(worker, job)
    with Library.open(library.root, actor="page") as other:
        view = Worker(other, {}).view(job)
    expected = Progress(phase="done", tokens=3, budget=9, streams=(Stream("attempt 1", text="abc", tokens=3),))
    assert view.progress == expected
    assert worker.view(job).progress == expected


def test_another_process_cannot_cancel_and_says_so(worker: Worker, library: Library, gate: Gate) -> None:
    job = worker.enqueue("gate", {}, "ada")
    assert gate.began.wait(WAIT)
    with Library.open(library.root, actor="page") as other:
        assert not Worker(other, {}).cancel(job)
    assert worker.view(job).state == "running"


def test_jobs_of_a_process_that_is_gone_are_marked_interrupted(tmp_path: Path) -> None:
    """As after a kill: the library is closed under a running job and opened again."""
    from tests.program import python

    code = """
import os, sys, threading
from pathlib import Path
from core.jobs import Worker
from library.store import Library
began = threading.Event()
def handler(context):
    began.set()
    threading.Event().wait()
worker = Worker(Library.open(Path(sys.argv[1])), {"solve": handler})
print(worker.enqueue("solve", {}, "ada"), worker.enqueue("solve", {}, "ada"))
began.wait(20)
sys.stdout.flush()
os._exit(9)
"""
    ran = python(code, str(tmp_path / "library"))
    assert ran.code == 9, ran.err
    with Library.open(tmp_path / "library") as library:
        assert library.interrupt_jobs() == 2
        views = [Worker(library, {}).view(job) for job in ran.out.split()]
        assert library.interrupt_jobs() == 0
    assert [view.state for view in views] == ["interrupted"] * 2
    assert all("ended before the job did" in view.error and view.over for view in views)


def test_waiting_has_an_end_and_watches(worker: Worker, gate: Gate) -> None:
    job = worker.enqueue("gate", {}, "ada")
    seen: list[str] = []
    started = time.monotonic()
    view = worker.wait(job, timeout=0.5, watch=lambda view: seen.append(view.state))
    assert not view.over
    assert 0.4 < time.monotonic() - started < 10
    assert "running" in seen


def test_closing_stops_what_runs_and_what_waits(library: Library) -> None:
    gate = Gate()
    worker = Worker(library, {"gate": gate})
    jobs = [worker.enqueue("gate", {}, "ada") for _ in range(3)]
    assert gate.began.wait(WAIT)
    worker.close(WAIT)
    assert [library.job(job).state for job in jobs] == ["cancelled"] * 3


def test_a_worker_that_never_ran_can_be_closed_and_used(library: Library) -> None:
    worker = Worker(library, {"echo": echo})
    worker.close()
    assert done(worker, worker.enqueue("echo", {"say": 1}, "ada")).state == "done"
    worker.close()
