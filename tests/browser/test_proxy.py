"""Behind a reverse proxy with a prefix: the login, its cookie, and the guard that still stands."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest

from tests.browser.proxy import proxied
from tests.ui.serving import PASSWORD, Server, served

pytestmark = pytest.mark.browser
PREFIX = "/scion"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with served(tmp_path_factory.mktemp("proxy"), users={"ada": "admin"}, pace=0.05, root_path=PREFIX) as running:
        yield running


@pytest.fixture(scope="module")
def outside(server: Server) -> Iterator[str]:
    """The address by which the world sees the page."""
    with proxied(server.url, PREFIX) as address:
        yield address


@pytest.fixture
def client(outside: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=outside, trust_env=False, timeout=60) as opened:
        yield opened


def own_origin(outside: str) -> str:
    parts = urlsplit(outside)
    return f"{parts.scheme}://{parts.netloc}"


def test_the_guard_stands_behind_the_proxy(client: httpx.Client, outside: str) -> None:
    form = {"username": "ada", "password": PASSWORD}
    assert client.get("/", headers={"Host": "evil.example"}).status_code == 403
    assert client.post("/login", data=form, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.post("/login", data=form, headers={"Origin": own_origin(outside)}).status_code == 200
    assert client.cookies.get("scion_session")
    hidden = {"data": [], "fn_index": 0, "session_hash": "x"}
    foreign = {"Origin": "http://evil.example"}
    assert client.post("/gradio_api/queue/join", json=hidden, headers=foreign).status_code == 403
    client.cookies.clear()
    assert client.post("/gradio_api/queue/join", json=hidden).status_code == 401
    assert client.get("/config").status_code == 401


def test_the_cookie_is_for_the_prefix_and_for_https_where_that_is_spoken(client: httpx.Client) -> None:
    form = {"username": "ada", "password": PASSWORD}
    plain = client.post("/login", data=form).headers["set-cookie"]
    assert f"Path={PREFIX}" in plain
    assert "Secure" not in plain
    assert "Secure" in client.post("/login", data=form, headers={"X-Forwarded-Proto": "https"}).headers["set-cookie"]


@pytest.mark.parametrize("path", ["/artifacts/blake3:" + "0" * 64, "/gradio_api/file=/etc/hostname", "/mcp"])
def test_nothing_is_given_to_nobody(client: httpx.Client, path: str) -> None:
    assert client.get(path).status_code in (401, 403)


def test_without_users_the_world_behind_the_proxy_is_not_this_machine(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The proxy stands on this machine, but who asks by it does not: its word on that is believed."""
    with (
        served(tmp_path_factory.mktemp("alone"), filled=False, root_path=PREFIX) as running,
        proxied(running.url, PREFIX) as address,
    ):
        assert httpx.get(f"{address}/config", trust_env=False, timeout=60).status_code == 200
        far = {"X-Forwarded-For": "203.0.113.9"}
        assert httpx.get(f"{address}/config", headers=far, trust_env=False, timeout=60).status_code == 401
