"""Campaigns: many jobs that were handed in together, and are paused, resumed and ended together.

A job belongs to a campaign by its payload: `campaign` (the id), `campaign_name`, `row` (its place). Knows rows and
states, not what the jobs do nor which thread runs them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import col, select

from library.audit import now
from library.database import new_id
from library.errors import NotFound
from library.problems import OPEN, Problems, json_text
from library.tables import Job

RESUMABLE = ("paused", "interrupted")
_ID = "json_extract(payload, '$.campaign')"


@dataclass(frozen=True)
class Campaign:
    """One campaign's totals. `states` is (state, number of jobs), in no order that matters."""

    id: str
    name: str
    owner: str
    created: str
    states: tuple[tuple[str, int], ...]

    def count(self, *states: str) -> int:
        return sum(number for state, number in self.states if state in states)

    @property
    def total(self) -> int:
        return sum(number for _, number in self.states)

    @property
    def active(self) -> bool:
        """Whether something of it waits for the device or runs."""
        return self.count(*OPEN) > 0

    @property
    def resumable(self) -> bool:
        return self.count(*RESUMABLE) > 0


class Campaigns(Problems):
    def create_campaign(self, kind: str, payloads: Sequence[Mapping[str, Any]], name: str, owner: str) -> list[Job]:
        """Queues the jobs in one commit: all of them or none. In order; each one's payload names the campaign."""
        campaign, created, worker = new_id("c"), now(), self._alive()
        jobs = [
            Job(
                id=new_id("j"),
                kind=kind,
                payload=json_text({**payload, "campaign": campaign, "campaign_name": name, "row": row}),
                owner=owner,
                created=created,
                worker=worker,
            )
            for row, payload in enumerate(payloads)
        ]
        with self._write(owner) as change:
            change.session.add_all(jobs)
            change.log("campaign.queued", campaign, kind=kind, jobs=len(jobs))
        return jobs

    def campaigns(self, owner: str | None = None, limit: int = 10) -> list[Campaign]:
        """The newest campaigns with their totals."""
        # The comparison, unlike IS NOT NULL with a GROUP BY, brings SQLite to the partial index.
        return self._campaigns(f"{_ID} > ''" + ("" if owner is None else " AND owner = ?"), owner, limit)

    def campaign(self, identifier: str) -> Campaign:
        found = self._campaigns(f"{_ID} = ?", identifier, 1)
        if not found:
            raise NotFound(f"no campaign {identifier[:80]!r} in the library")
        return found[0]

    def _campaigns(self, where: str, value: str | None, limit: int) -> list[Campaign]:
        rows = self.index.query(
            f"""SELECT {_ID} AS campaign, min(json_extract(payload, '$.campaign_name')), min(owner),
                min(created) AS began, group_concat(state) FROM job WHERE {where}
                GROUP BY campaign ORDER BY began DESC, campaign LIMIT ?""",
            (limit,) if value is None else (value, limit),
        )
        return [
            Campaign(
                identifier,
                name or "",
                owner,
                created,
                tuple((state, states.split(",").count(state)) for state in dict.fromkeys(states.split(","))),
            )
            for identifier, name, owner, created, states in rows
        ]

    def campaign_jobs(self, identifier: str) -> list[Job]:
        """All jobs of a campaign, in the order of its list."""
        ids = [row[0] for row in self.index.query(f"SELECT id FROM job WHERE {_ID} = ?", (identifier,))]
        with self._read() as session:
            jobs = list(session.exec(select(Job).where(col(Job.id).in_(ids))))
        return sorted(jobs, key=lambda job: int(json.loads(job.payload).get("row", 0)))

    def pause_jobs(self, campaign: str, jobs: Sequence[str], *, by: str) -> int:
        """Pauses those of the jobs that still wait; how many. The caller has taken them out of its queue before."""
        return len(self._move(campaign, ("queued",), "paused", by, jobs))

    def end_jobs(self, campaign: str, jobs: Sequence[str], *, by: str) -> int:
        """Cancels those of the jobs that wait, and all that are paused or were interrupted; how many."""
        rest = [job.id for job in self.campaign_jobs(campaign) if job.state in RESUMABLE]
        return len(self._move(campaign, ("queued", *RESUMABLE), "cancelled", by, [*jobs, *rest]))

    def resume_jobs(self, campaign: str, *, by: str) -> list[Job]:
        """Queues the paused and interrupted jobs again, for this process; those that this call queued, in order."""
        jobs = self.campaign_jobs(campaign)
        moved = set(self._move(campaign, RESUMABLE, "queued", by, [job.id for job in jobs]))
        return [self.job(job.id) for job in jobs if job.id in moved]

    def _move(self, campaign: str, before: Sequence[str], after: str, by: str, jobs: Sequence[str]) -> list[str]:
        """Brings jobs from one of the states `before` to `after`, in one commit; those that it moved."""
        worker, moved = self._alive(), []
        with self._write(by) as change:
            for job in change.session.exec(select(Job).where(col(Job.id).in_(jobs), col(Job.state).in_(before))):
                job.state, job.error = after, ""
                job.finished = now() if after == "cancelled" else None
                if after == "queued":
                    job.worker, job.started = worker, None
                change.session.add(job)
                moved.append(job.id)
            if moved:
                change.log(f"campaign.{after}", campaign, jobs=len(moved))
        return moved
