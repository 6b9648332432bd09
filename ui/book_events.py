"""What the page's books do: build, accept or refuse, ask, pack, drop, revoke.

Every handler asks first who is there; long work is a job of the one queue and goes on when the page is closed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import gradio as gr

from library.errors import Conflict, NotFound, ScionError, UsageError
from ui.access import Denied, Person, Right
from ui.books import Books
from ui.page import LISTENING, PRIVATE, Page, done, fault, in_turn, picked, unchanged
from ui.render import books as show
from ui.render.html import Html

KINDS = ("ingest", "book", "pack", "drop")
_OPEN = ("queued", "running")
_SEGMENTS = 50  # shown of a book
_FILE_BYTES = 16 << 20


def wire(tab: Books, page: Page, opened: list[Any]) -> None:
    desk = page.engine.books

    def fill(chosen: str, request: gr.Request) -> list[Any]:
        return filled(page, request, chosen)

    def attach(job: str, request: gr.Request) -> Any:
        """After a reload: the newest of one's own book jobs that still runs."""
        try:
            person = page.who(request)
            mine = page.engine.jobs(owner=person.name, limit=50)
        except ScionError:
            return gr.skip()
        return next((view.id for view in mine if view.kind in KINDS and view.state in _OPEN), job)

    def pick(event: gr.EventData, request: gr.Request) -> list[Any]:
        return [*filled(page, request, picked(event)), Html(""), Html(""), "", "", ""]

    def start(name: str, files: list[str] | None, tokens: float, request: gr.Request) -> list[Any]:
        try:
            person = page.who(request, Right.SOLVE)
            _own(page, name, person)
            job = desk.build_from(_read(files), name or "", by=person.name, segment_tokens=int(tokens or 0) or None)
            book = page.engine.job(job).payload["book"]
        except ScionError as error:
            return [gr.skip(), fault(error), gr.skip(), gr.skip(), gr.skip()]
        return [job, Html(""), "", None, book]

    def queued(request: gr.Request, right: Right, start: Callable[[str], str]) -> tuple[Any, Html]:
        """The id of the job that `start` queued for the person, or why there is none."""
        try:
            return start(page.who(request, right).name), Html("")
        except ScionError as error:
            return gr.skip(), fault(error)

    def resume(chosen: str, request: gr.Request) -> tuple[Any, Html]:
        def start(by: str) -> str:
            _own(page, _some(chosen), page.who(request))
            return desk.resume(chosen, by=by)

        return queued(request, Right.SOLVE, start)

    def ask(chosen: str, question: str, request: gr.Request) -> tuple[Any, Html]:
        return queued(request, Right.SOLVE, lambda by: desk.ask(_some(chosen), question or "", by=by))

    def pack(chosen: str, request: gr.Request) -> tuple[Any, Html]:
        return queued(request, Right.ADMIN, lambda by: desk.pack(_some(chosen), by=by))

    def drop(chosen: str, request: gr.Request) -> tuple[Any, Html]:
        return queued(request, Right.ADMIN, lambda by: desk.drop(_some(chosen), by=by))

    async def follow(job: str, chosen: str, request: gr.Request) -> AsyncIterator[list[Any]]:
        if not job:
            return
        async for view in page.follow(job, request, "books"):
            answered = view.kind == "book" and view.over and view.payload.get("book") == chosen
            answer = show.answer(view.result) if answered else gr.skip()
            yield [show.work(view), gr.update(visible=not view.over), answer]
        yield unchanged(len(tab.stage))

    def accept(chosen: str, seen: str, request: gr.Request) -> Html:
        try:
            person = page.who(request, Right.REVIEW)
            book = desk.accept(_some(chosen), by=person.name, digest=seen)
        except ScionError as error:
            return fault(error)
        return done(f"{book.name} is accepted; it answers now.")

    def refuse(chosen: str, seen: str, note: str, request: gr.Request) -> tuple[Html, str]:
        """Refusing is for a book that no one has accepted; an accepted one is revoked."""
        try:
            person = page.who(request, Right.REVIEW)
            book = desk.view(_some(chosen))
            if book.state != "pending" or book.digest != seen:
                raise Conflict(f"book {book.name!r} is {book.state} or changed since you looked: read it again")
            gone = desk.revoke(chosen, reason=_reason(note), by=person.name)
        except ScionError as error:
            return fault(error), note
        return done(f"Refused, with {len(gone)} states; the name stays taken."), ""

    def revoke(chosen: str, reason: str, request: gr.Request) -> tuple[Html, str]:
        try:
            person = page.who(request, Right.ADMIN)
            gone = desk.revoke(_some(chosen), reason=_reason(reason), by=person.name)
        except ScionError as error:
            return fault(error), reason
        return done(f"Revoked, with {len(gone)} states; it does not answer again."), ""

    def stop(job: str, request: gr.Request) -> Html:
        return page.stop(job, request) if job else Html("")

    refill: dict[str, Any] = {
        "fn": fill,
        "inputs": [tab.chosen],
        "outputs": tab.whole,
        **in_turn("books", "always_last"),
    }
    for event in opened:
        event(**refill).then(attach, [tab.job], [tab.job], **in_turn("books")).then(
            follow, [tab.job, tab.chosen], tab.stage, **LISTENING
        ).then(**refill)
    cleared = [tab.message, tab.answer, tab.note, tab.reason, tab.question]
    tab.table.pick(pick, None, [*tab.whole, *cleared], **in_turn("books", "multiple"))
    given = [tab.name, tab.files, tab.tokens]
    for started in (
        tab.build.click(start, given, [tab.job, tab.message, tab.name, tab.files, tab.chosen], **in_turn("books")),
        tab.resume.click(resume, [tab.chosen], [tab.job, tab.message], **in_turn("books")),
        tab.ask.click(ask, [tab.chosen, tab.question], [tab.job, tab.message], **in_turn("books")),
        tab.question.submit(ask, [tab.chosen, tab.question], [tab.job, tab.message], **in_turn("books")),
        tab.pack.click(pack, [tab.chosen], [tab.job, tab.message], **in_turn("books")),
        tab.drop.click(drop, [tab.chosen], [tab.job, tab.message], **in_turn("books")),
    ):
        started.success(follow, [tab.job, tab.chosen], tab.stage, **LISTENING).then(**refill)
    tab.cancel.click(stop, [tab.job], [tab.message], queue=False, **PRIVATE)
    tab.accept.click(accept, [tab.chosen, tab.seen], [tab.message], **in_turn("books")).then(**refill)
    tab.refuse.click(refuse, [tab.chosen, tab.seen, tab.note], [tab.message, tab.note], **in_turn("books")).then(
        **refill
    )
    tab.revoke.click(revoke, [tab.chosen, tab.reason], [tab.message, tab.reason], **in_turn("books")).then(**refill)


def filled(page: Page, request: gr.Request, chosen: str) -> list[Any]:
    """The list and one book, in the order of `Books.whole`."""
    hidden = gr.update(visible=False)
    try:
        page.who(request)
        views = page.engine.books.views()
    except ScionError as error:
        return [fault(error), show.detail(None), hidden, hidden, hidden, hidden, "", ""]
    view = next((view for view in views if view.name == chosen), None)
    if view is None:
        return [show.listing(views), show.detail(None), hidden, hidden, hidden, hidden, "", ""]
    return [
        show.listing(views, view.name),
        show.detail(view, page.engine.books.segments(view.name, _SEGMENTS)),
        gr.update(visible=view.state == "pending"),
        gr.update(visible=view.state == "building"),
        gr.update(visible=view.state == "accepted"),
        gr.update(visible=view.state != "revoked"),
        view.name,
        view.digest,
    ]


def _read(files: list[str] | None) -> list[tuple[str, bytes]]:
    """The uploaded files' names and bytes. The paths are Gradio's own temporary ones."""
    found = []
    for path in map(Path, files or ()):
        if path.stat().st_size > _FILE_BYTES:
            raise UsageError(f"{path.name} is larger than {_FILE_BYTES >> 20} MB: split it")
        found.append((path.name, path.read_bytes()))
    return found


def _own(page: Page, name: str, person: Person) -> None:
    """A book that is there is changed by its maker or a reviewer."""
    try:
        view = page.engine.books.view(" ".join((name or "").split()))
    except NotFound:
        return
    if view.created_by != person.name and not person.may(Right.REVIEW):
        raise Denied(f"book {view.name!r} belongs to {view.created_by}: choose another name")


def _some(chosen: str) -> str:
    if not chosen:
        raise UsageError("choose a book first")
    return chosen


def _reason(text: str) -> str:
    """Stripped; an empty one is refused by whoever is given it."""
    return (text or "").strip()
