"""The tools for programs that speak MCP, driven by the protocol's own client: these two, the same rights, no change."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.ui.serving import PASSWORD, PROBLEMS, Server, served

mcp = pytest.importorskip("mcp", reason="the tests of MCP need the extra in requirements-mcp.txt")
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
USERS = {"sol": "solver", "val": "viewer"}
STORED = PROBLEMS[0][0]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("mcp"), users=USERS, pace=0.001) as running:
        yield running


def session(server: Server, user: str) -> str:
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        client.post("/login", data={"username": user, "password": PASSWORD})
        return "; ".join(f"{name}={value}" for name, value in client.cookies.items())


def speak(server: Server, user: str, tool: str = "", **given: Any) -> Any:
    """The list of tools, or what one of them says to the user."""
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    async def go() -> Any:
        headers = {"Cookie": session(server, user)}
        async with (
            httpx2.AsyncClient(headers=headers, trust_env=False, timeout=60) as http,
            mcp.Client(streamable_http_client(f"{server.url}/mcp", http_client=http)) as client,
        ):
            return await (client.call_tool(tool, given) if tool else client.list_tools())

    return asyncio.run(go())


def records(server: Server) -> tuple[int, int]:
    return len(server.library.attempts(limit=1000)), server.library.index.count()


def test_there_are_two_tools_and_they_read(server: Server) -> None:
    tools = speak(server, "val").tools
    assert {tool.name for tool in tools} == {"ask", "verdict"}
    for tool in tools:
        assert tool.description
        assert tool.annotations.read_only_hint
        assert "context" not in tool.input_schema["properties"]


def test_the_verdict(server: Server) -> None:
    assert speak(server, "val", "verdict", stored=STORED, query=f" {STORED}").structured_content["verdict"] == "GRAFT"
    said = speak(server, "val", "verdict", stored=STORED, query=STORED.replace("4", "5")).structured_content
    assert said["verdict"] != "GRAFT"
    assert said["reasons"]


def test_asking_answers_and_makes_no_attempt(server: Server) -> None:
    before = records(server)
    said = speak(server, "sol", "ask", query=STORED)
    assert not said.is_error
    assert said.structured_content["answer"] == "9"
    assert server.library.jobs(owner="sol")[0].kind == "ask"
    assert '"fresh_max_tokens":0' in server.library.jobs(owner="sol")[0].payload.replace(" ", "")
    assert records(server) == before


@pytest.mark.parametrize(
    ("user", "tool", "given", "says"),
    [
        ("val", "ask", {"query": STORED}, "this needs the right to solve"),
        ("sol", "ask", {"query": " "}, "UsageError"),
        ("sol", "ask", {"query": STORED, "gate": "off"}, "unknown gate"),
        ("val", "verdict", {"stored": "a", "query": "b", "gate": "off"}, "unknown gate"),
    ],
)
def test_refusals_are_the_pages(server: Server, user: str, tool: str, given: dict[str, Any], says: str) -> None:
    before = len(server.library.jobs(limit=100))
    said = speak(server, user, tool, **given)
    assert said.is_error
    assert says in said.content[0].text
    assert len(server.library.jobs(limit=100)) == before


@pytest.mark.parametrize(
    ("headers", "status"), [({}, 401), ({"Host": "evil.example"}, 403), ({"Origin": "http://evil.example"}, 403)]
)
def test_the_door_stands_before_it(server: Server, headers: dict[str, str], status: int) -> None:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    with httpx.Client(trust_env=False, timeout=60) as client:
        assert client.post(f"{server.url}/mcp", json=call, headers=headers).status_code == status
