"""What every request passes before anything else sees it: host, origin, size; and what every answer carries.

An ASGI middleware, because the usual kind would hold back the page's event streams. Knows no routes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from typing import Any
from urllib.parse import urlsplit

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# Without unsafe-eval the page stays blank: Gradio compiles its templates in the browser.
CONTENT_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; worker-src 'self' blob:; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; "
    "frame-src 'none'; form-action 'self'; object-src 'none'; base-uri 'self'; frame-ancestors 'none'"
)
HEADERS: tuple[tuple[bytes, bytes], ...] = (
    (b"content-security-policy", CONTENT_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=(), payment=(), usb=()"),
)
_DROPPED = frozenset({b"access-control-allow-origin", b"access-control-allow-credentials", b"server"})
_OWN = frozenset(name for name, _ in HEADERS)
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


def allowed_hosts(host: str, configured: str) -> frozenset[str]:
    """The host names that the page answers to: loopback, the one it is bound to, and the configured ones."""
    names = {name.strip().lower() for name in configured.split(",") if name.strip()}
    wildcard = host in ("", "0.0.0.0", "::")
    return frozenset(_LOOPBACK | names | (set() if wildcard else {host.lower()}))


class Guard:
    """Refuses foreign hosts (403), changes from foreign origins (403) and bodies over `max_bytes` (413).

    `larger` are endings of paths with a limit of their own.
    """

    def __init__(
        self, app: Application, *, hosts: frozenset[str], max_bytes: int, larger: Mapping[str, int] | None = None
    ) -> None:
        self._app, self._hosts, self._max, self._larger = app, hosts, max_bytes, dict(larger or {})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":  # the page uses none
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        answer = _Answer(send)
        refusal = self._refusal(scope)
        if refusal is not None:
            await answer.plain(*refusal)
            return
        body = _Body(receive, self._limit(scope))
        try:
            await self._app(scope, body, answer)
        except _TooLarge:
            if not answer.started:
                await answer.plain(413, "the request is too large")

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers: dict[bytes, bytes] = dict(scope["headers"])
        if scope["path"].rstrip("/").endswith("/healthz") and scope["method"] in _SAFE_METHODS:
            return None  # a container's health check may come by any address
        host = _name(headers.get(b"host", b"").decode("latin-1"))
        if host not in self._hosts:
            return 403, "this address is not one that the server answers to; see SCION_ALLOWED_HOSTS"
        if scope["method"] not in _SAFE_METHODS:
            origin = headers.get(b"origin")
            if origin is not None and not self._own(origin.decode("latin-1"), headers[b"host"].decode("latin-1")):
                return 403, "this request comes from another site"
            if headers.get(b"sec-fetch-site", b"") == b"cross-site":
                return 403, "this request comes from another site"
        length = headers.get(b"content-length") or b"0"
        if not length.isdigit():
            return 400, "the request's length is not a number"
        if int(length) > self._limit(scope):
            return 413, "the request is too large"
        return None

    def _limit(self, scope: Scope) -> int:
        path = str(scope["path"])
        return next((limit for ending, limit in self._larger.items() if path.endswith(ending)), self._max)

    def _own(self, origin: str, host: str) -> bool:
        """Another port of this machine is another site; a proxy may change the port of a configured name."""
        try:
            parts = urlsplit(origin)
            name = (parts.hostname or "").lower()
        except ValueError:
            return False
        return parts.netloc.lower() == host.strip().lower() or name in self._hosts - _LOOPBACK


class _TooLarge(Exception):
    pass


class _Body:
    """Counts the body as it comes, for requests that do not say or lie about their length."""

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._left = receive, limit

    async def __call__(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            self._left -= len(message.get("body", b""))
            if self._left < 0:
                raise _TooLarge
        return message


class _Answer:
    """Adds the headers to the answer and takes away those that open it to other sites."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self.started = False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            kept = [(k, v) for k, v in message.get("headers", []) if k.lower() not in _DROPPED | _OWN]
            message = {**message, "headers": [*kept, *HEADERS]}
        await self._send(message)

    async def plain(self, status: int, text: str) -> None:
        body = text.encode()
        headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
        await self({"type": "http.response.start", "status": status, "headers": headers})
        await self({"type": "http.response.body", "body": body})


def _name(host: str) -> str:
    """The name in a Host header, without its port."""
    host = host.strip().lower()
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
