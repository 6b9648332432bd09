"""Two tools for programs that speak MCP: `ask` and `verdict`. They read the library; neither solves nor decides.

An optional extra (requirements-mcp.txt): without the package `mcp` the address does not exist. The same door, rights,
queue and refusals as the page's; no sessions of its own, so that no one can take over another's.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from library.errors import ScionError
from ui.access import Person, Right

if TYPE_CHECKING:
    from fastapi import FastAPI

    from ui.page import Page

PATH = "/mcp"
_LOOK_SECONDS = 0.2
_RESULT = (
    "verdict", "reasons", "answer", "text", "exactness", "artifact", "decode_tokens", "prefill_tokens", "seconds",
    "tokens_saved", "warnings",
)  # fmt: skip


def installed() -> bool:
    return importlib.util.find_spec("mcp") is not None


def add(app: FastAPI, page: Page) -> Callable[[FastAPI], Any]:
    """Adds the address to the application; what must run around it, as a lifespan. Needs the package `mcp`."""
    from mcp.server.transport_security import TransportSecuritySettings

    server = _server(page)
    # Host and Origin were checked by the guard, for the names that this server really answers to.
    behind_the_guard = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    inner = server.streamable_http_app(
        streamable_http_path=PATH, json_response=True, stateless_http=True, transport_security=behind_the_guard
    )
    app.router.routes.extend(inner.routes)

    @asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with server.session_manager.run():
            yield

    return lifespan


def _server(page: Page) -> Any:
    from mcp.server.mcpserver import Context, MCPServer
    from mcp.server.mcpserver.exceptions import ToolError
    from mcp.types import ToolAnnotations

    from ui.api import policy_named

    server = MCPServer(
        "scion",
        instructions="A library of solved problems. `ask` answers from it where a gate allows; `verdict` is the gate.",
    )
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, open_world_hint=False)

    def who(context: Any, right: Right) -> Person:
        return page.who(context.request_context.request, right)

    async def ask(query: str, context: Context, gate: str = "") -> dict[str, Any]:
        """Answer a problem from the library if it holds the same problem; else `verdict` is REFUSE and `answer` null.

        Nothing is solved afresh. `gate`: strict, edits or calibrated; empty for the server's own.
        """
        job = ""
        try:
            person = who(context, Right.SOLVE)
            job = page.engine.submit_ask(query, by=person.name, policy=policy_named(gate), fresh_max_tokens=0)
            while not (view := await asyncio.to_thread(page.job, job, person)).over:
                await asyncio.sleep(_LOOK_SECONDS)
        except ScionError as error:
            raise ToolError(f"{type(error).__name__}: {error}") from None
        except asyncio.CancelledError:
            if job:
                page.engine.cancel(job, by=person.name)
            raise
        if view.state != "done":
            raise ToolError(f"the ask was {view.state}: {view.error or 'ask again'}")
        return {name: view.result.get(name) for name in _RESULT}

    async def verdict(stored: str, query: str, context: Context, gate: str = "") -> dict[str, Any]:
        """Is `query` the same problem as `stored`? GRAFT, TRANSFER or REFUSE with reasons and edits. Runs no model."""
        try:
            who(context, Right.VIEW)
            said = await asyncio.to_thread(page.engine.judge, stored, query, policy_named(gate))
        except ScionError as error:
            raise ToolError(f"{type(error).__name__}: {error}") from None
        return {
            "verdict": str(said.verdict), "policy": str(said.policy), "score": said.score,
            "reasons": [asdict(reason) for reason in said.reasons], "edits": [asdict(edit) for edit in said.edits],
        }  # fmt: skip

    # The annotations are text here; the package must find the class by its name to hand in the context.
    for tool in (ask, verdict):
        tool.__annotations__["context"] = Context
        server.tool(annotations=reads)(tool)
    return server
