"""Problems and jobs: what was asked of the model, and how far it came. Knows rows, not what a job does."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, TypeVar

from sqlmodel import col, func, select

from library.audit import now
from library.database import Database, new_id
from library.errors import Conflict, LibraryBusy, NotFound, UsageError
from library.fsio import translated
from library.tables import Job, Problem

Row = TypeVar("Row")
OPEN = ("queued", "running")
FINISHED = ("done", "failed", "cancelled", "interrupted")
_LIVE = "live"


class Problems(Database):
    def add_problem(
        self,
        text: str,
        *,
        canonical_key: str,
        canonical_version: int,
        reference: str | None = None,
        source: str = "",
        by: str,
    ) -> str:
        """The problem's id; the same text with the same reference answer reuses its row."""
        if not text.strip():
            raise UsageError("the problem is empty; write it out")
        with self._write(by) as change:
            same = select(Problem).where(Problem.canonical_key == canonical_key, Problem.text == text)
            for row in change.session.exec(same):
                if row.reference == reference:
                    return row.id
            row = Problem(
                id=new_id("p"),
                text=text,
                reference=reference,
                canonical_key=canonical_key,
                canonical_version=canonical_version,
                source=source,
                created=now(),
                created_by=by,
            )
            change.session.add(row)
            change.log("problem.add", row.id, canonical_key=canonical_key)
        return row.id

    def problem(self, identifier: str) -> Problem:
        with self._read() as session:
            return found(session.get(Problem, identifier), "problem", identifier)

    def create_job(self, kind: str, payload: dict[str, Any], owner: str) -> str:
        """A queued job of this process; it counts as interrupted once the process is gone."""
        job = Job(
            id=new_id("j"), kind=kind, payload=json_text(payload), owner=owner, created=now(), worker=self._alive()
        )
        with self._write(owner) as change:
            change.session.add(job)
            change.log("job.queued", job.id, kind=kind)
        return job.id

    def job(self, identifier: str) -> Job:
        with self._read() as session:
            return found(session.get(Job, identifier), "job", identifier)

    def jobs(
        self,
        owner: str | None = None,
        states: Sequence[str] | None = None,
        limit: int = 50,
        *,
        single: bool = False,
    ) -> list[Job]:
        """Newest first; `single`: without those of campaigns."""
        query = select(Job).order_by(col(Job.created).desc(), col(Job.id)).limit(limit)
        if owner is not None:
            query = query.where(Job.owner == owner)
        if single:
            query = query.where(func.json_extract(Job.payload, "$.campaign").is_(None))
        if states is not None:
            query = query.where(col(Job.state).in_(states))
        with self._read() as session:
            return list(session.exec(query))

    def update_job(
        self,
        identifier: str,
        *,
        state: str | None = None,
        progress: dict[str, Any] | None = None,
        result: dict[str, Any] | None = None,
        error: str | None = None,
    ) -> None:
        """Sets what is given. A finished job stays finished: `Conflict`, except that an interrupted or failed one
        may be queued again. Starting or queueing makes this process its worker."""
        worker = self._alive() if state in OPEN else None
        with self._write() as change:
            job = found(change.session.get(Job, identifier), "job", identifier)
            if state is not None and state != job.state:
                if job.state in FINISHED and not (state == "queued" and job.state in ("interrupted", "failed")):
                    raise Conflict(f"job {identifier} is {job.state}; it cannot become {state}")
                job.state = state
                if worker is not None:
                    job.worker, job.finished = worker, None
                if state == "running":
                    job.started = now()
                if state in FINISHED:
                    job.finished = now()
                change.log(f"job.{state}", identifier, kind=job.kind)
            if progress is not None:
                job.progress = json_text(progress)
            if result is not None:
                job.result = json_text(result)
            if error is not None:
                job.error = error
            change.session.add(job)

    def interrupt_jobs(self) -> int:
        """Marks the queued and running jobs of processes that are gone as interrupted; returns how many."""
        with self._read() as session:
            workers = set(session.exec(select(Job.worker).where(col(Job.state).in_(OPEN)).distinct()))
        gone = [worker for worker in workers if worker != self._worker and not self._lives(worker)]
        if not gone:
            return 0
        with self._write() as change:
            query = select(Job).where(col(Job.state).in_(OPEN), col(Job.worker).in_(gone))
            jobs = list(change.session.exec(query))
            for job in jobs:
                job.state, job.finished = "interrupted", now()
                job.error = "the process that ran this job ended before the job did"
                change.session.add(job)
                change.log("job.interrupted", job.id, kind=job.kind)
        with translated("clearing the marks of dead processes"):
            for worker in gone:
                if worker and self.fs.stat(f"{_LIVE}/{worker}") is not None:
                    self.fs.unlink(f"{_LIVE}/{worker}")
        return len(jobs)

    # A process proves that it lives by a lock that the system takes away when it ends, however it ends.

    _worker: str | None = None
    _held: ExitStack | None = None

    def _alive(self) -> str:
        with self._writing:
            if self._worker is None:
                worker = secrets.token_hex(8)
                self._held = ExitStack()
                self._held.enter_context(self.fs.lock(f"{_LIVE}/{worker}", exclusive=True, timeout=0))
                self._worker = worker
            return self._worker

    def _lives(self, worker: str) -> bool:
        path = f"{_LIVE}/{worker}"
        if not worker or self.fs.stat(path) is None:
            return False
        try:
            with self.fs.lock(path, exclusive=True, timeout=0):
                return False
        except LibraryBusy:
            return True

    def _end_life(self) -> None:
        if self._held is not None:
            if self.fs.stat(f"{_LIVE}/{self._worker}") is not None:
                self.fs.unlink(f"{_LIVE}/{self._worker}")
            self._held.close()
            self._held = self._worker = None


def json_text(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def found(row: Row | None, what: str, identifier: str) -> Row:
    if row is None:
        raise NotFound(f"no {what} {identifier[:80]!r} in the library")
    return row
