"""A small reverse proxy, as nginx would stand before the page: takes a prefix off, passes the rest on as it streams.

`python -m tests.browser.proxy PORT UPSTREAM PREFIX` runs it. It keeps the Host that the browser sent, and says who
asked and by which scheme in X-Forwarded-For and X-Forwarded-Proto.
"""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx

from tests.ui.serving import ROOT, free_port, stop

_OF_ONE_HOP = {"connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "proxy-connection"}


@contextlib.contextmanager
def proxied(upstream: str, prefix: str) -> Iterator[str]:
    """The proxy in a process of its own; its address, the prefix included."""
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "tests.browser.proxy", str(port), upstream, prefix], cwd=ROOT)
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + 60
        while time.monotonic() < end and process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                httpx.get(f"{address}/", trust_env=False)
                break
            time.sleep(0.1)
        yield address + prefix
    finally:
        stop(process, patience=10)


def application(upstream: str, prefix: str) -> Any:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse, Response, StreamingResponse
    from starlette.routing import Route

    client = httpx.AsyncClient(base_url=upstream, trust_env=False, timeout=None)

    async def forward(request: Request) -> Response:
        raw = request.scope["raw_path"].decode("ascii")
        if not raw.startswith(f"{prefix}/"):
            return PlainTextResponse("nothing is here", status_code=404)
        query = request.scope["query_string"].decode("ascii")
        headers = [(name, value) for name, value in request.headers.items() if name not in _OF_ONE_HOP]
        given = {name for name, _ in headers}
        if "x-forwarded-for" not in given and request.client:
            headers.append(("x-forwarded-for", request.client.host))
        headers.append(("x-forwarded-proto", request.headers.get("x-forwarded-proto", "http")))
        target = raw.removeprefix(prefix) + (f"?{query}" if query else "")
        body = request.stream() if {"content-length", "transfer-encoding"} & set(request.headers) else None
        answer = await client.send(
            client.build_request(request.method, target, headers=headers, content=body), stream=True
        )

        async def pieces() -> AsyncIterator[bytes]:
            try:
                async for piece in answer.aiter_raw():
                    yield piece
            finally:
                await answer.aclose()

        response = StreamingResponse(pieces(), status_code=answer.status_code)
        response.raw_headers = [(n, v) for n, v in answer.headers.raw if n.lower().decode() not in _OF_ONE_HOP]
        return response

    methods = ["GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"]
    return Starlette(routes=[Route("/{rest:path}", forward, methods=methods)])


if __name__ == "__main__":
    import uvicorn

    uvicorn.run(
        application(sys.argv[2], sys.argv[3]), port=int(sys.argv[1]), log_level="warning", timeout_graceful_shutdown=1
    )
