"""The device's queue: one worker thread runs one job at a time; everything that runs the model goes through it.

Jobs live in the library's database, so that closing a page loses nothing; the newest progress also lives in
memory, where the page follows it. Knows nothing of what a job does: handlers are given by the engine.
"""

from __future__ import annotations

import contextlib
import json
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from library.errors import Cancelled, Conflict, NotFound, ScionError
from library.store import Library
from library.tables import Job

OVER = frozenset({"done", "failed", "cancelled", "interrupted"})
_PERSIST_SECONDS = 1.0  # how often a running job's progress is written to the database
_KEPT = 200  # finished jobs whose last progress stays in memory


@dataclass(frozen=True)
class Stream:
    """One text that a job produces: an attempt, or one of the graft lab's three runs."""

    title: str
    thinking: str = ""
    text: str = ""
    tokens: int = 0
    state: str = "waiting"
    verdict: str = ""
    answer: str | None = None
    exactness: str = ""
    seconds: float = 0.0
    prefill_tokens: int = 0


@dataclass(frozen=True)
class Progress:
    """What a job is doing now. `place` is 0 while it runs, else the number of jobs before it."""

    phase: str = "queued"
    place: int = 0
    tokens: int = 0
    budget: int = 0
    tokens_per_second: float = 0.0
    seconds: float = 0.0
    attempt: int = 0
    attempts: int = 0
    streams: tuple[Stream, ...] = ()
    note: str = ""


@dataclass(frozen=True)
class JobView:
    """A job as the page and the command line see it."""

    id: str
    kind: str
    state: str
    payload: Mapping[str, Any]
    progress: Progress
    result: Mapping[str, Any]
    error: str
    owner: str
    created: str
    started: str | None
    finished: str | None

    @property
    def over(self) -> bool:
        return self.state in OVER


@dataclass
class Context:
    """What a handler is given: the request, the cancel event, and where to report to."""

    job_id: str
    payload: Mapping[str, Any]
    owner: str
    cancelled: threading.Event
    progress: Progress = field(default_factory=Progress)
    on_progress: Callable[[Progress], None] | None = None

    @property
    def campaign(self) -> str:
        """The id of the campaign that the job is part of, or nothing."""
        return str(self.payload.get("campaign") or "")

    def report(self, **changes: Any) -> None:
        """Publish new progress; cheap, meant to be called several times a second."""
        self.progress = replace(self.progress, **changes)
        if self.on_progress is not None:
            self.on_progress(self.progress)

    def check(self) -> None:
        """Raises `Cancelled` if somebody asked the job to stop."""
        if self.cancelled.is_set():
            raise Cancelled("stopped on request")


Handler = Callable[[Context], Mapping[str, Any]]


class Worker:
    """Runs queued jobs in order. A job's exception ends the job, never the worker. Safe to call from any thread."""

    def __init__(self, library: Library, handlers: Mapping[str, Handler]) -> None:
        self._library, self._handlers = library, dict(handlers)
        self._live: dict[str, Context] = {}
        self._waiting: list[str] = []
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._closing = False
        self._thread: threading.Thread | None = None

    def enqueue(self, kind: str, payload: Mapping[str, Any], owner: str) -> str:
        """Record a job and queue it; its id."""
        self.check_kind(kind)
        job_id = self._library.create_job(kind, dict(payload), owner)
        self._queue([Context(job_id, dict(payload), owner, threading.Event())])
        return job_id

    def check_kind(self, kind: str) -> None:
        if kind not in self._handlers:
            raise Conflict(f"no handler for jobs of kind {kind!r}")

    def take(self, jobs: Sequence[Job]) -> None:
        """Queue jobs that are recorded as queued already, by this process."""
        self._queue([Context(job.id, json.loads(job.payload), job.owner, threading.Event()) for job in jobs])

    def take_back(self, job_ids: Collection[str]) -> list[str]:
        """Those of the jobs that still wait here leave the queue; the caller says what becomes of them."""
        with self._lock:
            taken = [job_id for job_id in self._waiting if job_id in job_ids]
            self._waiting = [job_id for job_id in self._waiting if job_id not in job_ids]
            for job_id in taken:
                del self._live[job_id]
        return taken

    def cancel(self, job_id: str) -> bool:
        """Ask a job to stop, at once if it waits; False if it is over or belongs to another process."""
        if self.take_back([job_id]):
            self._library.update_job(job_id, state="cancelled")
            return True
        with self._lock:
            context = self._live.get(job_id)
        if context is None or self._library.job(job_id).state in OVER:
            return False
        context.cancelled.set()
        return True

    def view(self, job_id: str) -> JobView:
        """A job's record with its newest progress. Raises `NotFound`."""
        return self._view(self._library.job(job_id))

    def views(self, owner: str | None, limit: int, *, single: bool = False) -> list[JobView]:
        return [self._view(job) for job in self._library.jobs(owner=owner, limit=limit, single=single)]

    def wait(
        self, job_id: str, timeout: float | None = None, watch: Callable[[JobView], None] | None = None
    ) -> JobView:
        """Block until the job is over, calling `watch` a few times a second."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            view = self.view(job_id)
            if watch is not None:
                watch(view)
            if view.over or (end is not None and time.monotonic() >= end):
                return view
            with self._changed:
                self._changed.wait(0.15)

    def close(self, timeout: float = 30.0) -> None:
        """Cancel what runs and what waits, stop the thread. A campaign's jobs are kept for its resumption."""
        with self._changed:
            self._closing = True
            for context in self._live.values():
                context.cancelled.set()
            thread = self._thread
            self._changed.notify_all()
        if thread is not None and thread is not threading.current_thread():
            thread.join(timeout)
        self._closing = thread is not None and thread.is_alive()

    def _queue(self, contexts: Sequence[Context]) -> None:
        """A campaign lets single jobs pass: somebody sits before those."""
        with self._changed:
            for context in contexts:
                self._live[context.job_id] = context
                place = len(self._waiting)
                if not context.campaign:
                    place = next((n for n, other in enumerate(self._waiting) if self._live[other].campaign), place)
                self._waiting.insert(place, context.job_id)
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="scion-worker", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._closing:
                    self._changed.wait()
                if not self._waiting:
                    return
                job_id = self._waiting.pop(0)
                context = self._live[job_id]
            try:
                self._one(job_id, context)
            except Exception:  # the database itself failed: the worker must outlive that too
                traceback.print_exc()
            with self._changed:
                self._forget()
                self._changed.notify_all()

    def _one(self, job_id: str, context: Context) -> None:
        if context.cancelled.is_set():
            self._library.update_job(job_id, state="paused" if context.campaign and self._closing else "cancelled")
            return
        kind = self._library.job(job_id).kind
        self._library.update_job(job_id, state="running")
        context.on_progress = _Persist(self._library, job_id)
        state, error, result = "done", "", {}
        try:
            result = dict(self._handlers[kind](context))
            if context.cancelled.is_set() and result.get("status") in (None, "cancelled"):
                state = "cancelled"
        except Cancelled:
            state = "cancelled"
        except ScionError as fault:
            state, error = "failed", f"{type(fault).__name__}: {fault}"
        except MemoryError:
            state, error = "failed", "MemoryError: not enough memory; use fewer attempts, a smaller batch or budget"
        except Exception as fault:
            traceback.print_exc()
            state, error = "failed", f"{type(fault).__name__}: {fault}"
        if state == "cancelled" and context.campaign and self._closing:  # nobody cancelled it: it can be run again
            state, error = "interrupted", "the server stopped while the job ran"
        progress = replace(context.progress, phase="done", place=0)
        context.progress = progress
        self._library.update_job(job_id, state=state, progress=asdict(progress), result=result, error=error)

    def _view(self, job: Job) -> JobView:
        with self._lock:
            context = self._live.get(job.id)
            place = self._waiting.index(job.id) + 1 if job.id in self._waiting else 0
        progress = context.progress if context is not None else _progress(json.loads(job.progress or "{}"))
        if place:
            progress = replace(progress, phase="queued", place=place)
        return JobView(
            job.id,
            job.kind,
            job.state,
            json.loads(job.payload),
            progress,
            json.loads(job.result or "{}"),
            job.error,
            job.owner,
            job.created,
            job.started,
            job.finished,
        )

    def _forget(self) -> None:
        over = [job_id for job_id in self._live if job_id not in self._waiting]
        for job_id in over[: max(0, len(over) - _KEPT)]:
            with contextlib.suppress(NotFound):
                if self._library.job(job_id).state in OVER:
                    del self._live[job_id]


class _Persist:
    """Writes progress to the database at most once a second, so that other processes can follow."""

    def __init__(self, library: Library, job_id: str) -> None:
        self._library, self._job_id, self._last = library, job_id, 0.0

    def __call__(self, progress: Progress) -> None:
        now = time.monotonic()
        if now - self._last >= _PERSIST_SECONDS:
            self._last = now
            self._library.update_job(self._job_id, progress=asdict(progress))


def _progress(stored: Mapping[str, Any]) -> Progress:
    known = {name: stored[name] for name in Progress.__dataclass_fields__ if name in stored}
    streams = tuple(Stream(**stream) for stream in known.pop("streams", ()))
    return Progress(**known, streams=streams)
