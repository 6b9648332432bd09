"""The endpoints for programs, driven by gradio_client as a program would, and their rights."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.ui.serving import PASSWORD, PROBLEMS, Server, served

# The client's threads close their sockets when they are collected.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
USERS = {"ben": "reviewer", "sol": "solver", "val": "viewer"}
ENDPOINTS = {"/submit", "/job", "/ask", "/verdict", "/artifacts", "/decide"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("api"), users=USERS, pace=0.001) as running:
        yield running


@pytest.fixture(scope="module")
def clients(server: Server) -> dict[str, Any]:
    gradio_client = pytest.importorskip("gradio_client")
    return {name: gradio_client.Client(server.url, auth=(name, PASSWORD), verbose=False) for name in USERS}


def finished(client: Any, job: str) -> dict[str, Any]:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        seen: dict[str, Any] = client.predict(job=job, api_name="/job")
        if seen["over"]:
            return seen
        time.sleep(0.1)
    raise AssertionError(f"job {job} did not end")


def test_only_the_documented_endpoints_are_named(clients: dict[str, Any]) -> None:
    named = clients["sol"].view_api(return_format="dict", print_info=False)["named_endpoints"]
    assert set(named) == ENDPOINTS
    assert all(info["description"] for info in named.values())


def test_submit_and_job(clients: dict[str, Any]) -> None:
    said = clients["sol"].predict(problem="What is 7 + 2?", reference="9", api_name="/submit")
    done = finished(clients["sol"], said["job"])
    assert done["state"] == "done"
    assert done["result"]["chosen"]


def test_a_reviewer_decides_once(clients: dict[str, Any], server: Server) -> None:
    row = server.library.attempts(review="pending")[0]
    said = clients["ben"].predict(attempt=row.id, version=row.version, action="approve", api_name="/decide")
    assert server.library.artifact(said["artifact"]).state == "published"
    with pytest.raises(Exception, match="StaleVersion"):
        clients["ben"].predict(attempt=row.id, version=row.version, action="approve", api_name="/decide")


def test_artifacts_are_paged(clients: dict[str, Any]) -> None:
    first = clients["val"].predict(limit=1, api_name="/artifacts")
    second = clients["val"].predict(limit=1, offset=1, api_name="/artifacts")
    assert first["total"] == second["total"] >= 2
    assert first["artifacts"][0]["digest"] != second["artifacts"][0]["digest"]


def test_the_verdict_runs_no_model(clients: dict[str, Any]) -> None:
    text = PROBLEMS[0][0]
    assert clients["val"].predict(stored=text, query=f" {text}", api_name="/verdict")["verdict"] == "GRAFT"
    said = clients["val"].predict(stored=text, query=text.replace("4", "5"), api_name="/verdict")
    assert said["verdict"] != "GRAFT"
    assert said["reasons"]


def test_asking(clients: dict[str, Any]) -> None:
    said = clients["sol"].predict(query=PROBLEMS[1][0], api_name="/ask")
    assert finished(clients["sol"], said["job"])["result"]["verdict"] == "GRAFT"


@pytest.mark.parametrize(
    ("user", "endpoint", "given"),
    [
        ("val", "/submit", {"problem": "x"}),
        ("val", "/ask", {"query": "x"}),
        ("val", "/decide", {"attempt": "a", "version": 1, "action": "approve"}),
        ("sol", "/decide", {"attempt": "a", "version": 1, "action": "approve"}),
    ],
)
def test_rights_hold_for_programs_too(clients: dict[str, Any], user: str, endpoint: str, given: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="Denied"):
        clients[user].predict(**given, api_name=endpoint)


def test_a_job_of_another_does_not_exist(clients: dict[str, Any]) -> None:
    job = clients["ben"].predict(problem="Mine?", api_name="/submit")["job"]
    with pytest.raises(Exception, match="NotFound"):
        clients["sol"].predict(job=job, api_name="/job")


def test_hidden_endpoints_check_rights_as_well(clients: dict[str, Any], server: Server) -> None:
    """`private` hides an endpoint from the list; it can be called all the same (row 24 of the fault list)."""
    client = clients["val"]
    before = (server.library.review_counts(), server.library.jobs(limit=100), server.library.index.count())
    refused = 0
    for endpoint in client.endpoints.values():
        for given in ([], ["x"] * 3, ["To review", "", ["a", 1], "reason", ""], ["blake3:" + "0" * 64, "x"]):
            try:
                client.submit(*given, fn_index=endpoint.fn_index).result(timeout=20)
            except Exception:
                refused += 1
    assert refused > 0
    after = (server.library.review_counts(), server.library.jobs(limit=100), server.library.index.count())
    assert [job.id for job in after[1]] == [job.id for job in before[1]]
    assert after[0] == before[0]
    assert after[2] == before[2]


def test_an_error_is_text_not_markup(clients: dict[str, Any]) -> None:
    with pytest.raises(Exception, match="UsageError") as caught:
        clients["sol"].predict(query="x", gate="<b>off</b>", api_name="/ask")
    assert "<b>" not in str(caught.value)
