"""A campaign's life: queued as a whole, paused, resumed (also by another process than queued it), ended.

Joins the worker's queue with the library's rows: a job first leaves the queue, then its row says so, so that none
runs that is called paused. Knows no page.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from core.jobs import JobView, Worker
from library.campaigns import Campaign
from library.store import Library


class Campaigns:
    """All methods may be called from any thread. Who may do what is the caller's to check."""

    def __init__(self, worker: Worker, library: Library) -> None:
        self._worker, self._library = worker, library

    def start(self, kind: str, payloads: Sequence[Mapping[str, Any]], *, name: str, by: str) -> str:
        """Queue the jobs, all or none; the campaign's id."""
        self._worker.check_kind(kind)
        jobs = self._library.create_campaign(kind, payloads, name, by)
        self._worker.take(jobs)
        return str(json.loads(jobs[0].payload)["campaign"])

    def pause(self, campaign: str, *, by: str) -> int:
        """Nothing more of it starts; what runs goes on to its end. How many jobs were paused."""
        waiting = self._worker.take_back(self._ids(campaign))
        return self._library.pause_jobs(campaign, waiting, by=by)

    def resume(self, campaign: str, *, by: str) -> int:
        """Queue what is paused, or was interrupted when its process ended. How many jobs."""
        jobs = self._library.resume_jobs(campaign, by=by)
        self._worker.take(jobs)
        return len(jobs)

    def end(self, campaign: str, *, by: str) -> int:
        """Cancel all of it that is not over, for good; what runs stops within two decode steps. How many jobs."""
        ids = self._ids(campaign)
        ended = self._library.end_jobs(campaign, self._worker.take_back(ids), by=by)
        return ended + sum(self._worker.cancel(job) for job in ids)

    def get(self, campaign: str) -> Campaign:
        """Its totals. Raises `NotFound`."""
        return self._library.campaign(campaign)

    def listed(self, owner: str | None, limit: int = 10) -> list[Campaign]:
        """Newest first."""
        return self._library.campaigns(owner, limit)

    def jobs(self, campaign: str) -> list[JobView]:
        """All its jobs in the order of the list."""
        return [self._worker.view(job.id) for job in self._library.campaign_jobs(campaign)]

    def _ids(self, campaign: str) -> list[str]:
        return [job.id for job in self._library.campaign_jobs(campaign)]
