"""Lists of jobs that are paused, resumed and ended together: by the process that queued them, and by the next."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from core.campaigns import Campaigns
from core.engine import Engine
from core.jobs import Context, Worker
from core.settings import load_settings
from library.errors import NotFound, UsageError
from library.store import Library
from tests.core.test_jobs import WAIT, Gate, done, echo


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def worker(library: Library, gate: Gate) -> Iterator[Worker]:
    made = Worker(library, {"gate": gate, "echo": echo})
    yield made
    gate.go.set()
    made.close()


def states(campaigns: Campaigns, campaign: str) -> dict[str, int]:
    return dict(campaigns.get(campaign).states)


def test_paused_jobs_wait_until_they_are_resumed(worker: Worker, library: Library, gate: Gate) -> None:
    campaigns = Campaigns(worker, library)
    campaign = campaigns.start("gate", [{"n": n} for n in range(4)], name="list.csv", by="ada")
    assert gate.began.wait(WAIT)
    assert campaigns.pause(campaign, by="ada") == 3
    assert states(campaigns, campaign) == {"running": 1, "paused": 3}
    jobs = campaigns.jobs(campaign)
    assert [job.payload["n"] for job in jobs] == [0, 1, 2, 3]
    gate.go.set()
    assert done(worker, jobs[0].id).state == "done"  # what ran went on to its end
    assert done(worker, worker.enqueue("echo", {"say": 1}, "bob")).state == "done"  # the queue passes them by
    assert states(campaigns, campaign) == {"done": 1, "paused": 3}
    assert campaigns.pause(campaign, by="ada") == 0
    assert campaigns.resume(campaign, by="ada") == 3
    assert [done(worker, job.id).state for job in jobs] == ["done"] * 4
    assert campaigns.resume(campaign, by="ada") == 0
    actions = [entry.action for entry in library.log(limit=100) if entry.subject == campaign]
    assert actions == ["campaign.queued", "campaign.paused", "campaign.queued"]


def test_ending_cancels_what_runs_waits_and_is_paused(worker: Worker, library: Library, gate: Gate) -> None:
    campaigns = Campaigns(worker, library)
    campaign = campaigns.start("gate", [{}] * 3, name="a", by="ada")
    assert gate.began.wait(WAIT)
    campaigns.pause(campaign, by="ada")
    assert campaigns.end(campaign, by="ada") == 3
    assert {done(worker, job.id).state for job in campaigns.jobs(campaign)} == {"cancelled"}
    assert campaigns.resume(campaign, by="ada") == 0
    assert campaigns.end(campaign, by="ada") == 0


def test_a_single_job_passes_a_campaign(worker: Worker, library: Library, gate: Gate) -> None:
    campaigns = Campaigns(worker, library)
    campaign = campaigns.start("gate", [{}] * 3, name="a", by="ada")
    assert gate.began.wait(WAIT)
    first, second = (worker.enqueue("echo", {"say": n}, "bob") for n in range(2))
    waiting = [job.id for job in campaigns.jobs(campaign)][1:]
    assert [worker.view(job).progress.place for job in (first, second, *waiting)] == [1, 2, 3, 4]


def test_campaigns_are_listed_by_owner_newest_first(worker: Worker, library: Library) -> None:
    campaigns = Campaigns(worker, library)
    made = [campaigns.start("echo", [{"say": 1}], name=f"{who}.csv", by=who) for who in ("ada", "bob", "ada")]
    worker.enqueue("echo", {"say": 1}, "ada")
    assert [item.id for item in campaigns.listed("ada")] == [made[2], made[0]]
    assert [item.name for item in campaigns.listed(None, limit=2)] == ["ada.csv", "bob.csv"]
    with pytest.raises(NotFound):
        campaigns.get("c0000000000000000")
    assert [job.payload for job in worker.views("ada", 10, single=True)] == [{"say": 1}]


def test_a_closed_server_leaves_a_campaign_that_the_next_one_resumes(tmp_path: Path) -> None:
    gate = Gate()
    with Library.open(tmp_path) as library:
        worker = Worker(library, {"gate": gate})
        campaigns = Campaigns(worker, library)
        campaign = campaigns.start("gate", [{}] * 3, name="a", by="ada")
        assert gate.began.wait(WAIT)
        worker.close(WAIT)
        assert states(campaigns, campaign) == {"interrupted": 1, "paused": 2}
    gate.go.set()
    with Library.open(tmp_path) as library:
        library.interrupt_jobs()
        worker = Worker(library, {"gate": gate})
        campaigns = Campaigns(worker, library)
        assert campaigns.resume(campaign, by="ada") == 3
        views = [done(worker, job.id) for job in campaigns.jobs(campaign)]
        worker.close()
    assert [(view.state, view.error) for view in views] == [("done", "")] * 3


def test_a_killed_server_leaves_a_campaign_that_the_next_one_resumes(tmp_path: Path) -> None:
    from tests.program import python

    code = """
import os, sys, threading
from pathlib import Path
from core.campaigns import Campaigns
from core.jobs import Worker
from library.store import Library
began = threading.Event()
def handler(context):
    began.set()
    threading.Event().wait()
library = Library.open(Path(sys.argv[1]))
worker = Worker(library, {"echo": handler})
campaigns = Campaigns(worker, library)
print(campaigns.start("echo", [{"say": n} for n in range(4)], name="a", by="ada"))
held = campaigns.start("echo", [{"say": n} for n in range(2)], name="b", by="ada")
campaigns.pause(held, by="ada")
print(held)
began.wait(20)
sys.stdout.flush()
os._exit(9)
"""
    ran = python(code, str(tmp_path))
    assert ran.code == 9, ran.err
    killed, held = ran.out.split()
    with Library.open(tmp_path) as library:
        assert library.interrupt_jobs() == 4
        worker = Worker(library, {"echo": echo})
        campaigns = Campaigns(worker, library)
        assert states(campaigns, killed) == {"interrupted": 4}
        assert states(campaigns, held) == {"paused": 2}
        for campaign in (killed, held):
            campaigns.resume(campaign, by="ada")
            assert {done(worker, job.id).state for job in campaigns.jobs(campaign)} == {"done"}
        worker.close()


def test_two_processes_do_not_resume_one_job_twice(tmp_path: Path) -> None:
    ran: list[int] = []
    lock = threading.Lock()

    def note(context: Context) -> Mapping[str, Any]:
        with lock:
            ran.append(context.payload["n"])
        return {}

    with Library.open(tmp_path) as one, Library.open(tmp_path) as two:
        workers = [Worker(library, {"note": note}) for library in (one, two)]
        jobs = one.create_campaign("note", [{"n": n} for n in range(5)], "a", "ada")
        campaign = json.loads(jobs[0].payload)["campaign"]
        one.pause_jobs(campaign, [job.id for job in jobs], by="ada")
        both = [Campaigns(worker, library) for worker, library in zip(workers, (one, two), strict=True)]
        threads = [threading.Thread(target=item.resume, args=(campaign,), kwargs={"by": "ada"}) for item in both]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(WAIT)
        for job in jobs:
            for worker in workers:
                worker.wait(job.id, WAIT)
        for worker in workers:
            worker.close(WAIT)
    assert sorted(ran) == [0, 1, 2, 3, 4]


def test_a_list_is_queued_whole_or_not_at_all(library: Library) -> None:
    engine = Engine(load_settings(library=library.root, max_problem_chars=40), library)
    with pytest.raises(UsageError, match="41 characters"):
        engine.submit_many([("What is 1 + 1?", "2"), ("x" * 41, None)], by="ada", name="a.csv")
    with pytest.raises(UsageError, match="attempts is 0"):
        engine.submit_many([("What is 1 + 1?", "2")], by="ada", name="a.csv", attempts=0)
    with pytest.raises(UsageError, match="no problem"):
        engine.submit_many([], by="ada", name="a.csv")
    assert library.jobs() == []
