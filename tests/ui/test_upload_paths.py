"""An upload is what somebody uploaded: no path of the server's own, and no address (rows 24 and 27 of the fault list).

Driven as a program would, past the page: the queue takes any JSON for a file field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.ui.serving import ROOT, Server, served

SECRET = '{"problem": "a secret of the server"}\n'
FIELDS = ("batch-file", "books-files", "import-file")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("paths"), filled=False) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as opened:
        yield opened


def handlers(client: httpx.Client, field: str) -> list[dict[str, Any]]:
    """The endpoints that take the file field of this id, and at which place."""
    config = client.get("/config").json()
    (wanted,) = [part["id"] for part in config["components"] if part["props"].get("elem_id") == field]
    return [
        {**event, "at": event["inputs"].index(wanted)} for event in config["dependencies"] if wanted in event["inputs"]
    ]


def call(client: httpx.Client, event: dict[str, Any], file: dict[str, Any]) -> str:
    """What the server says to a call with `file` in the file field and little in the others."""
    session = f"s{event['id']}"
    for value in (file, [file]):
        data: list[Any] = [1 if number else "A name" for number in range(len(event["inputs"]))]
        data[event["at"]] = value
        client.post("/gradio_api/queue/join", json={"data": data, "fn_index": event["id"], "session_hash": session})
        with client.stream("GET", f"/gradio_api/queue/data?session_hash={session}") as stream:
            said = next(line for line in stream.iter_lines() if "process_completed" in line)
    return said


def left(server: Server) -> list[object]:
    return [*server.library.jobs(), *server.library.books()]


@pytest.mark.parametrize("field", FIELDS)
def test_no_file_of_the_servers_own_and_no_address(
    client: httpx.Client, server: Server, field: str, tmp_path: Path
) -> None:
    secret = tmp_path / "secret.jsonl"
    secret.write_text(SECRET)
    events = handlers(client, field)
    assert events
    paths = [str(secret), str(server.library.root / "library.db"), str(ROOT / "README.md"), server.url + "/healthz"]
    for event in events:
        for path in paths:
            said = call(client, event, {"path": path, "orig_name": "a.md", "meta": {"_type": "gradio.FileData"}})
            assert json.loads(said.removeprefix("data:"))["success"] is False, (field, path, said)
            assert "secret" not in said
    assert left(server) == []


def test_what_was_uploaded_is_taken(client: httpx.Client, server: Server) -> None:
    (path,) = client.post("/gradio_api/upload", files={"files": ("a.md", b"One.\n\nTwo.")}).json()
    (event,) = handlers(client, "books-files")
    said = call(client, event, {"path": path, "orig_name": "a.md", "meta": {"_type": "gradio.FileData"}})
    assert json.loads(said.removeprefix("data:"))["success"] is True, said
    assert [json.loads(job.payload)["book"] for job in server.library.jobs()] == ["A name"]
