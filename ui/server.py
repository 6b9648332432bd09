"""The web application: the page, login and logout, downloads, exports, health. Lets in only whom access.py knows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from fastapi import FastAPI, Form, Request
from fastapi.responses import (
    HTMLResponse,
    JSONResponse,
    PlainTextResponse,
    RedirectResponse,
    Response,
    StreamingResponse,
)

import ui  # noqa: F401  (its environment must be set before gradio is imported)
from library import exchange
from library.digest import Digest
from library.errors import CorruptError, FormatError, NotFound, ScionError, UsageError
from ui.access import COOKIE, FROM_OUTSIDE, SESSION_SECONDS, Access, Denied, Right, Throttled
from ui.guard import Guard, allowed_hosts
from ui.period import period
from ui.render import figures
from ui.render.html import Html

if TYPE_CHECKING:
    from core.engine import Engine
    from core.settings import Settings

MAX_REQUEST_BYTES = 64 << 20
UPLOAD_MIB = 128  # a file that somebody picks on the page; larger bundles go by the command line
MAX_EXPORT_BYTES = 4 << 30
_PIECE = 1 << 20
_OPEN = frozenset({"/healthz", "/login", "/logout"})
_WITHOUT_BYTES = ("evicted", "quarantined", "revoked")


def build_app(engine: Engine, settings: Settings) -> FastAPI:
    """The application for uvicorn. Imports Gradio (seconds); starts no thread and opens no port."""
    import gradio as gr

    from ui import blocks, document, mcp_tools, theme
    from ui.page import Page, Watched

    access = Access(engine.library.users)
    page = Page(engine, access, settings, Watched())
    app = FastAPI(title="Scion", docs_url=None, redoc_url=None, openapi_url=None)
    if mcp_tools.installed():
        app.router.lifespan_context = mcp_tools.add(app, page)
    _add_login(app, access, settings, theme.STYLE.read_text(encoding="utf-8"), document.icon())
    _add_files(app, page)

    def person(request: Request) -> str | None:
        found = access.of(request)
        return found.name if found else None

    document.adopt(gr.routes.templates.env)
    demo = blocks.build(page)
    demo.queue(default_concurrency_limit=8, max_size=256)
    gr.mount_gradio_app(
        app,
        demo,
        path="/",
        auth_dependency=person,
        root_path=settings.root_path or None,
        allowed_paths=[],
        blocked_paths=[str(settings.library.expanduser().resolve()), str(Path.cwd())],
        favicon_path=str(theme.ASSETS / "favicon.svg"),
        show_error=False,
        max_file_size=f"{UPLOAD_MIB}mb",
        ssr_mode=False,
        enable_monitoring=False,
        footer_links=[],
        run_history=False,
        pwa=False,
        theme=theme.theme(),
        head=theme.head(),
    )
    _close(demo)
    app.add_middleware(_Door, access=access, root=settings.root_path.rstrip("/"))
    hosts = allowed_hosts(settings.host, settings.allowed_hosts)
    larger = {"/gradio_api/upload": (UPLOAD_MIB + 1) << 20}
    app.add_middleware(Guard, hosts=hosts, max_bytes=MAX_REQUEST_BYTES, larger=larger)
    return app


def _close(demo: Any) -> None:
    """Two doors that Gradio 6.31 leaves open when it is mounted instead of launched.

    It takes any path of this machine that a request calls an upload, because it asks whether a file was uploaded only
    once `has_launched` is set, which mounting never does. And it fetches whatever address a request calls an upload.
    """
    from gradio import processing_utils

    async def fetch_nothing(url: str, cache_dir: str) -> str:
        raise ValueError("an upload is a file, not an address")

    demo.has_launched = True
    processing_utils.async_ssrf_protected_download = fetch_nothing


class _Door:
    """Lets nobody further than the login without being a person we know; brings those who open the page there."""

    def __init__(self, app: Any, *, access: Access, root: str) -> None:
        self._app, self._access, self._root = app, access, root

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"].removeprefix(self._root) or "/"
        request = Request(scope)
        if path in _OPEN or self._access.of(request) is not None:
            await self._app(scope, receive, send)
            return
        response: Response = PlainTextResponse("log in first", status_code=401)
        if path == "/" and scope["method"] in ("GET", "HEAD"):
            query = request.url.query
            goal = urlencode({"next": f"{self._root}/?{query}" if query else f"{self._root}/"})
            response = RedirectResponse(f"{self._root}/login?{goal}", status_code=303)
        await response(scope, receive, send)


def _add_login(app: FastAPI, access: Access, settings: Settings, style: str, icon: Html) -> None:
    root = settings.root_path.rstrip("/")

    @app.get("/healthz")
    def healthz() -> JSONResponse:
        return JSONResponse({"status": "ok"})

    @app.get("/login")
    def form(next: str = "/") -> Response:
        if access.open():
            return HTMLResponse(figures.message_page(style, icon, "Not from here", FROM_OUTSIDE), status_code=403)
        return HTMLResponse(figures.login_page(style, icon, f"{root}/login", _goal(next, root)))

    @app.post("/login")
    def login(
        request: Request,
        username: str = Form(max_length=200),
        password: str = Form(max_length=1000),
        next: str = Form("/"),
    ) -> Response:
        goal = _goal(next, root)
        address = request.client.host if request.client else ""
        try:
            token = access.login(username, password, address)
        except Denied as error:
            wait = {"Retry-After": str(int(error.seconds) + 1)} if isinstance(error, Throttled) else {}
            page = figures.login_page(style, icon, f"{root}/login", goal, str(error))
            return HTMLResponse(page, status_code=429 if wait else 401, headers=wait)
        # A program that logs in as gradio_client does expects an answer, a browser a page.
        wants_page = "text/html" in request.headers.get("accept", "")
        response: Response = RedirectResponse(goal, status_code=303) if wants_page else JSONResponse({"success": True})
        response.set_cookie(
            COOKIE,
            token,
            max_age=SESSION_SECONDS,
            path=root or "/",
            httponly=True,
            samesite="lax",
            secure=request.url.scheme == "https",
        )
        return response

    @app.post("/logout")
    def logout(request: Request) -> Response:
        access.logout(request.cookies.get(COOKIE))
        response = RedirectResponse(f"{root}/login", status_code=303)
        response.delete_cookie(COOKIE, path=root or "/")
        return response


def _add_files(app: FastAPI, page: Any) -> None:
    from ui import carry

    access, library = page.access, page.engine.library
    private = {"Cache-Control": "no-store"}

    @app.exception_handler(ScionError)
    def refused(_request: Request, error: ScionError) -> Response:
        status = 403 if isinstance(error, Denied) else 404 if isinstance(error, NotFound) else 400
        if isinstance(error, CorruptError) and not isinstance(error, FormatError):
            status = 409
        return PlainTextResponse(str(error), status_code=status, headers=private)

    @app.get("/artifacts/{digest}")
    def artifact(digest: str, request: Request) -> Response:
        access.require(request, Right.VIEW)
        parsed = Digest.parse(digest)  # before any file is touched
        row = library.artifact(str(parsed))
        if row.state in _WITHOUT_BYTES:
            raise NotFound(f"artifact {parsed} is {row.state}; its bytes are not given out")
        held = library.read_blob(str(parsed))  # verified in memory; what is sent is what was verified

        def pieces() -> Iterator[bytes]:
            view = memoryview(held)
            for start in range(0, len(view), _PIECE):
                yield bytes(view[start : start + _PIECE])

        name = f"{parsed.hex[:16]}.safetensors"
        return StreamingResponse(
            pieces(),
            media_type="application/octet-stream",
            headers={
                **private,
                "Content-Length": str(len(held)),
                "Content-Disposition": f'attachment; filename="{name}"',
                "ETag": f'"{parsed.hex}"',
            },
        )

    @app.get("/bundle")
    def bundle(request: Request, digest: str = "", text: str = "", state: str = "") -> Response:
        """One artifact, those that a search finds, or all published ones, as a bundle that any library can import."""
        access.require(request, Right.VIEW)
        rows = exchange.exportable(library, carry.wanted(library, digest, text, state))
        if sum(row.size_bytes for row in rows) > MAX_EXPORT_BYTES:
            raise UsageError(f"more than {MAX_EXPORT_BYTES >> 30} GiB: use `python app.py library export`")
        held = tempfile.TemporaryFile()  # noqa: SIM115  (closed when it was sent; it has no name meanwhile)
        try:
            exchange.write_export(library, held, rows)
        except BaseException:
            held.close()
            raise
        size = held.tell()
        held.seek(0)

        def pieces() -> Iterator[bytes]:
            with held:
                while piece := held.read(_PIECE):
                    yield piece

        name = f"scion-{len(rows)}.bundle"
        return StreamingResponse(
            pieces(),
            media_type="application/octet-stream",
            headers={
                **private,
                "Content-Length": str(size),
                "Content-Disposition": f'attachment; filename="{name}"',
            },
        )

    @app.get("/figures/{name}.csv")
    def figure(name: str, request: Request, days: str = "All", first: str = "", last: str = "") -> Response:
        from ui import dashboard

        access.require(request, Right.VIEW)
        span = period(days, first, last)
        tables = dashboard.data(page, library.statistics(since=span.since, until=span.until), span)
        if name not in tables:
            raise NotFound(f"no figure {name[:40]!r}")
        headers = {**private, "Content-Disposition": f'attachment; filename="{name}.csv"'}
        return Response(tables[name].csv(), media_type="text/csv; charset=utf-8", headers=headers)

    @app.get("/labels.jsonl")
    def labels(request: Request) -> Response:
        access.require(request, Right.VIEW)
        lines = "".join(json.dumps(item.model_dump(), ensure_ascii=False) + "\n" for item in library.labels())
        headers = {**private, "Content-Disposition": 'attachment; filename="labels.jsonl"'}
        return Response(lines, media_type="application/x-ndjson", headers=headers)


def _goal(asked: str, root: str) -> str:
    """Where to go after the login: a path of ours, never another site."""
    home = f"{root}/"
    clean = asked.startswith(home) and not asked.startswith("//") and "\\" not in asked and asked.isprintable()
    return asked if clean and len(asked) <= 2000 else home
