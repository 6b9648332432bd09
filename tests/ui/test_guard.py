from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ui.guard import CONTENT_POLICY, Guard, allowed_hosts

HOSTS = allowed_hosts("127.0.0.1", "scion.example, other.example")


def request(
    method: str = "GET",
    path: str = "/",
    body: tuple[bytes, ...] = (),
    limit: int = 100,
    kind: str = "http",
    **headers: str,
) -> tuple[int, dict[str, str], bytes]:
    """Status, headers and body of one request through the guard to an application that answers 200."""
    sent: list[dict[str, Any]] = []
    given = {"host": "localhost:7860"} | {name.replace("_", "-"): value for name, value in headers.items()}
    scope = {
        "type": kind,
        "method": method,
        "path": path,
        "headers": [(k.encode(), v.encode()) for k, v in given.items() if v != "none"],
    }
    pieces = [{"type": "http.request", "body": b, "more_body": n + 1 < len(body)} for n, b in enumerate(body)]

    async def app(_scope: Any, receive: Any, send: Any) -> None:
        for _ in body:
            await receive()
        open_headers = [(b"access-control-allow-origin", b"*"), (b"server", b"x"), (b"x-frame-options", b"ALLOWALL")]
        await send({"type": "http.response.start", "status": 200, "headers": open_headers})
        await send({"type": "http.response.body", "body": b"inside"})

    async def receive() -> Any:
        return pieces.pop(0) if pieces else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(dict(message))

    asyncio.run(Guard(app, hosts=HOSTS, max_bytes=limit)(scope, receive, send))
    if kind == "websocket":
        return sent[0].get("code", 0), {}, b""
    head = {k.decode(): v.decode() for k, v in sent[0]["headers"]}
    return sent[0]["status"], head, b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:7860", 200), ("127.0.0.1", 200), ("[::1]:7860", 200), ("SCION.example", 200),
        ("evil.example", 403), ("localhost.evil.example", 403), ("127.0.0.1.nip.io", 403), ("none", 403), ("", 403),
        ("127.0.0.1@evil.example", 403),
    ],
)  # fmt: skip
def test_foreign_hosts_are_refused_also_for_reading(host: str, status: int) -> None:
    """DNS rebinding: a name of the attacker's that resolves to this machine."""
    assert request(host=host)[0] == status
    assert request("POST", host=host)[0] == status


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("http://localhost:7860", 200), ("https://scion.example", 200), ("http://evil.example", 403), ("null", 403),
        ("http://localhost:3000", 403), ("http://127.0.0.1:7860", 403), ("http://scion.example.evil", 403), ("", 403),
        ("http://[", 403),
    ],
)  # fmt: skip
def test_changes_from_foreign_origins_are_refused(origin: str, status: int) -> None:
    assert request("POST", origin=origin)[0] == status
    assert request("DELETE", origin=origin)[0] == status


def test_reading_needs_no_origin_and_programs_send_none() -> None:
    assert request("GET", origin="http://evil.example")[0] == 200
    assert request("POST")[0] == 200


def test_a_browser_that_says_cross_site_is_believed() -> None:
    assert request("POST", sec_fetch_site="cross-site")[0] == 403
    assert request("POST", sec_fetch_site="same-origin", origin="http://localhost:7860")[0] == 200


def test_the_health_check_may_come_by_any_name() -> None:
    assert request(path="/healthz", host="10.0.0.7:7860")[0] == 200
    assert request("POST", path="/healthz", host="10.0.0.7:7860")[0] == 403


@pytest.mark.parametrize(
    ("length", "status"), [("100", 200), ("101", 413), ("-1", 400), ("many", 400), ("9" * 30, 413)]
)
def test_a_body_that_is_too_large_is_refused_by_its_word(length: str, status: int) -> None:
    assert request("POST", content_length=length)[0] == status


def test_and_by_its_bytes() -> None:
    assert request("POST", body=(b"x" * 60, b"x" * 41))[0] == 413
    assert request("POST", body=(b"x" * 60, b"x" * 40))[0] == 200


def test_every_answer_carries_the_policy_and_opens_nothing() -> None:
    for status, head, _ in (request(), request(host="evil.example"), request("POST", content_length="101")):
        assert status in (200, 403, 413)
        assert head["content-security-policy"] == CONTENT_POLICY
        assert head["x-frame-options"] == "DENY"
        assert head["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in head
        assert "server" not in head


def test_the_policy_names_no_outside_source() -> None:
    assert "http" not in CONTENT_POLICY
    assert "*" not in CONTENT_POLICY
    assert "frame-ancestors 'none'" in CONTENT_POLICY


def test_websockets_are_closed() -> None:
    assert request(kind="websocket")[0] == 1008


def test_a_wildcard_address_allows_no_further_name() -> None:
    assert "0.0.0.0" not in allowed_hosts("0.0.0.0", "")
    assert "10.1.1.1" in allowed_hosts("10.1.1.1", "")
