"""The Library tab: find an artifact, see what it is and what it did, check it, continue from it, take it out of use."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from library.artifact import decode_header
from library.errors import CorruptError, NotFound, ScionError, UsageError
from library.search import PREFIX, Record
from ui import carry, custody
from ui.access import Right
from ui.page import LISTENING, Page, fault, in_turn, panel, pickable, picked
from ui.render import artifact as show
from ui.render import jobs as job_show
from ui.render import prose, records
from ui.render.html import Html, join

STATES = ("Any state", "published", "held", "imported", "evicted", "quarantined", "revoked")
ORDERS = {"Newest": "created", "Most used": "uses", "Largest": "size_bytes", "Longest solve": "solve_tokens"}
PAGE = 50
_MANIFEST_LIMIT = 512 << 20  # bytes; a larger file is not read only to show its manifest


@dataclass(frozen=True)
class Shelf:
    search: gr.Textbox
    state: gr.Dropdown
    order: gr.Dropdown
    table: gr.HTML
    back: gr.Button
    forward: gr.Button
    offset: gr.State
    chosen: gr.State
    message: gr.HTML
    detail: gr.HTML
    solution: gr.Markdown
    outcomes: gr.HTML
    actions: gr.Row
    graft: gr.Button
    verify: gr.Button
    audit: gr.Button
    certify: gr.Button
    verify_all: gr.Button
    custody: custody.Custody
    carry: carry.Carry
    job: gr.State
    work: gr.HTML
    chat: gr.Chatbot
    said: gr.State
    ask: gr.Textbox
    send: gr.Button

    @property
    def listing(self) -> list[Any]:
        return [self.table, self.back, self.forward, self.offset]

    @property
    def record(self) -> list[Any]:
        return [
            self.detail, self.solution, self.outcomes, self.actions, self.chosen, self.message, *self.custody.shown,
        ]  # fmt: skip


def build(page: Page) -> Shelf:
    with gr.Row(elem_classes="sc-row"):
        with gr.Column(scale=7, min_width=320, elem_classes="sc-sheet"):
            with gr.Row(elem_classes="sc-tight"):
                search = gr.Textbox(
                    label="Search", placeholder="words, answer or the beginning of a hash", scale=3, min_width=280,
                    elem_id="library-search",
                )  # fmt: skip
                state = gr.Dropdown(
                    list(STATES), value=STATES[0], label="State", min_width=110, elem_id="library-state"
                )
                order = gr.Dropdown(list(ORDERS), value="Newest", label="Order", min_width=110, elem_id="library-order")
            table = pickable(elem_id="library-table")
            with gr.Row(elem_classes="sc-tight"):
                back = gr.Button("← Newer", size="sm", min_width=80, visible=False, elem_id="library-back")
                forward = gr.Button("Older →", size="sm", min_width=80, visible=False, elem_id="library-forward")
                verify_all = gr.Button(
                    "Check all bytes", size="sm", min_width=80, elem_classes="sc-grow-none",
                    elem_id="library-verify-all",
                )  # fmt: skip
            carrying = carry.build()
        with gr.Column(scale=5, min_width=320):
            message = panel(elem_id="library-message")
            work = panel(elem_id="library-work")
            with gr.Column(elem_classes="sc-sheet"):
                detail = panel(show.detail(None, None), elem_id="library-detail")
                tight, fold = "sc-grow-none", ["sc-fold-block", "sc-of-chosen"]
                with gr.Row(elem_classes="sc-tight", visible=False) as actions:
                    graft = gr.Button(
                        "Try in the graft lab", size="sm", elem_classes="sc-grow-none", elem_id="library-graft"
                    )
                    verify = gr.Button("Check bytes", size="sm", elem_classes=tight, elem_id="library-verify")
                    audit = gr.Button("Replay audit", size="sm", elem_classes=tight, elem_id="library-audit")
                    certify = gr.Button(
                        "Certify here", size="sm", elem_classes="sc-grow-none", elem_id="library-certify"
                    )
                deciding = custody.build_decision()
                with gr.Accordion("Solution", open=False, elem_classes=fold):
                    solution = gr.Markdown(latex_delimiters=prose.DELIMITERS, elem_classes="sc-solution")
                with gr.Accordion("Outcomes", open=False, elem_classes=fold):
                    outcomes = panel(elem_id="library-outcomes")
                with gr.Accordion("Continue from this state", open=False, elem_classes=fold):
                    chat = gr.Chatbot(
                        show_label=False,
                        height=260,
                        latex_delimiters=prose.DELIMITERS,
                        buttons=[],
                        elem_id="library-chat",
                    )
                    ask = gr.Textbox(label="Message", placeholder="Explain the last step.", elem_id="library-say")
                    send = gr.Button("Send", size="sm", elem_classes="sc-grow-none", elem_id="library-send")
                keeping = custody.build(deciding)
    return Shelf(
        search, state, order, table, back, forward, gr.State(0), gr.State(""), message, detail, solution, outcomes,
        actions, graft, verify, audit, certify, verify_all, keeping, carrying, gr.State(""), work, chat, gr.State([]),
        ask, send,
    )  # fmt: skip


def wire(tab: Shelf, page: Page, opened: list[Any]) -> None:
    def fill(text: str, state: str, order: str, offset: int, chosen: str, request: gr.Request) -> list[Any]:
        return [*_listing(page, request, text, state, order, offset, chosen), *_record(page, request, chosen)]

    def step(by: int) -> Any:
        def go(text: str, state: str, order: str, offset: int, chosen: str, request: gr.Request) -> list[Any]:
            return _listing(page, request, text, state, order, max(0, offset + by), chosen)

        return go

    def search(text: str, state: str, order: str, chosen: str, request: gr.Request) -> list[Any]:
        return _listing(page, request, text, state, order, 0, chosen)

    def pick(text: str, state: str, order: str, offset: int, event: gr.EventData, request: gr.Request) -> list[Any]:
        key = picked(event)
        return [
            *_listing(page, request, text, state, order, offset, key),
            *_record(page, request, key),
            [],
            [],
            "",
            Html(""),
        ]

    def verify(chosen: str, request: gr.Request) -> tuple[Any, Html]:
        return _submit(page, request, lambda by: page.engine.submit_verify(chosen, by=by), Right.SOLVE)

    def verify_all(request: gr.Request) -> tuple[Any, Html]:
        return _submit(page, request, lambda by: page.engine.submit_verify(None, by=by), Right.SOLVE)

    def audit(chosen: str, request: gr.Request) -> tuple[Any, Html]:
        return _submit(page, request, lambda by: page.engine.submit_audit(chosen, by=by), Right.SOLVE)

    def certify(chosen: str, request: gr.Request) -> tuple[Any, Html]:
        return _submit(page, request, lambda by: page.engine.submit_certify(chosen, by=by), Right.SOLVE)

    async def watch(job_id: str, request: gr.Request) -> AsyncIterator[Any]:
        if not job_id:
            return
        async for view in page.follow(job_id, request, "check"):
            yield show.work(view)
        yield gr.skip()

    def say(chosen: str, text: str, said: list[str], request: gr.Request) -> tuple[Any, Any, Any, Any, Any]:
        try:
            person = page.who(request, Right.SOLVE)
            job = page.engine.submit_chat(chosen, text or "", by=person.name, history=said)
        except ScionError as error:
            return gr.skip(), gr.skip(), gr.skip(), gr.skip(), fault(error)
        said = [*said, text]
        return job, "", said, _turns(said), Html("")

    async def answer(job_id: str, said: list[str], request: gr.Request) -> AsyncIterator[tuple[Any, Any, Any]]:
        if not job_id or not len(said) % 2:
            return
        async for view in page.follow(job_id, request, "chat"):
            stream = job_show.focus(view.progress.streams)
            text = str(view.result.get("text") or (stream.text if stream else ""))
            if view.over and view.state != "done":
                yield _turns(said[:-1]), said[:-1], show.chat_cost(view)  # the message was not answered
                return
            kept = [*said, text] if view.over else gr.skip()
            yield _turns([*said, text or "…"]), kept, show.chat_cost(view)

    scope = [tab.search, tab.state, tab.order]
    everything = [*tab.listing, *tab.record]
    for event in opened:
        event(fill, [*scope, tab.offset, tab.chosen], everything, **in_turn("library", "always_last"))
    gr.on(
        [tab.search.submit, tab.search.blur, tab.state.change, tab.order.change],
        search, [*scope, tab.chosen], tab.listing, **in_turn("library", "always_last"),
    )  # fmt: skip
    each = in_turn("library", "multiple")
    tab.back.click(step(-PAGE), [*scope, tab.offset, tab.chosen], tab.listing, **each)
    tab.forward.click(step(PAGE), [*scope, tab.offset, tab.chosen], tab.listing, **each)
    tab.table.pick(pick, [*scope, tab.offset], [*everything, tab.chat, tab.said, tab.ask, tab.work], **each)
    for button, handler, given in (
        (tab.verify, verify, [tab.chosen]), (tab.audit, audit, [tab.chosen]), (tab.certify, certify, [tab.chosen]),
        (tab.verify_all, verify_all, []),
    ):  # fmt: skip
        button.click(handler, given, [tab.job, tab.message], **in_turn("library")).success(
            watch, [tab.job], [tab.work], **LISTENING
        ).then(fill, [*scope, tab.offset, tab.chosen], everything, **in_turn("library", "always_last"))
    for event in (
        *custody.wire(tab.custody, page, tab.chosen, tab.message),
        *carry.wire(tab.carry, page, tab.search, tab.state, tab.chosen, opened),
    ):
        event.then(
            _keep_message(fill), [*scope, tab.offset, tab.chosen], everything, **in_turn("library", "always_last")
        )
    gr.on(
        [tab.send.click, tab.ask.submit],
        say,
        [tab.chosen, tab.ask, tab.said],
        [tab.job, tab.ask, tab.said, tab.chat, tab.message],
        **in_turn("library"),
    ).success(answer, [tab.job, tab.said], [tab.chat, tab.said, tab.work], **LISTENING)


def _keep_message(fill: Any) -> Any:
    """Like `fill`, but what was said last stays: it follows the four of the listing and five of the record."""
    place = 9

    def go(text: str, state: str, order: str, offset: int, chosen: str, request: gr.Request) -> list[Any]:
        filled = fill(text, state, order, offset, chosen, request)
        filled[place] = gr.skip()
        return filled

    return go


def _turns(said: list[str]) -> list[dict[str, Any]]:
    """The chat's bubbles: messages and answers alternate."""
    return [{"role": ("user", "assistant")[n % 2], "content": prose.markdown(text)} for n, text in enumerate(said)]


def _submit(page: Page, request: gr.Request, start: Any, right: Right) -> tuple[Any, Html]:
    try:
        person = page.who(request, right)
        return start(person.name), Html("")
    except ScionError as error:
        return "", fault(error)


def _listing(page: Page, request: gr.Request, text: str, state: str, order: str, offset: int, chosen: str) -> list[Any]:
    """One page of the table, in the order of `Shelf.listing`."""
    words = (text or "").strip()
    states = [state] if state in STATES[1:] else None
    try:
        page.who(request)
        rows, total, offset = _find(page, words, states, ORDERS.get(order, "created"), offset)
    except ScionError as error:
        return [fault(error), gr.update(visible=False), gr.update(visible=False), 0]
    filtered = bool(words) or states is not None
    return [
        records.artifacts(rows, chosen, total, offset, filtered),
        gr.update(visible=offset > 0),
        gr.update(visible=offset + PAGE < total),
        offset,
    ]


def _find(page: Page, words: str, states: list[str] | None, order: str, offset: int) -> tuple[list[Record], int, int]:
    """Rows of one page, how many there are in all, and the offset, brought back to 0 if it lies behind the end."""
    index = page.engine.library.index
    if PREFIX.fullmatch(words):  # the beginning of a hash, unless it is a word of a problem
        try:
            return [index.resolve(words)], 1, 0
        except (NotFound, UsageError):
            pass
    # A book's segments are shown with the book.
    total = index.count(states=states, text=words or None, kind="solution")
    offset = offset if 0 <= offset < total else 0
    rows = index.artifacts(states=states, text=words or None, order=order, limit=PAGE, offset=offset, kind="solution")
    return rows, total, offset


def _record(page: Page, request: gr.Request, chosen: str) -> list[Any]:
    """One artifact, in the order of `Shelf.record`."""
    closed = custody.shown("")
    nothing = [show.detail(None, None), "", records.outcomes(()), gr.update(visible=False), "", Html(""), *closed]
    try:
        page.who(request)
        if not chosen:
            return nothing
        library = page.engine.library
        row = library.artifact(chosen)
        found = library.outcomes(artifact=row.digest, limit=50)
        measured = library.measurements(artifact=row.digest, limit=10)
    except ScionError as error:
        return [*nothing[: -len(closed) - 1], fault(error), *closed]
    manifest, trouble = None, Html("")
    if row.state in ("published", "held", "imported") and row.size_bytes <= _MANIFEST_LIMIT:
        try:  # the bytes are verified before anything in them is believed
            manifest = decode_header(library.read_blob(row.digest))
        except (CorruptError, NotFound) as error:
            trouble = fault(error)
            row = library.artifact(chosen)
    root = page.settings.root_path.rstrip("/")
    return [
        join([show.detail(row, manifest, root), show.measurements(measured)]),
        prose.markdown(manifest.solution) if manifest else "",
        records.outcomes(found),
        gr.update(visible=row.state not in ("revoked", "quarantined")),
        row.digest,
        trouble,
        *custody.shown(row.state),
    ]
