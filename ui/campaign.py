"""Many problems at once, on the Solve tab: upload a list, queue it, watch it, pause, resume, end it.

The list is the server's: it is there again after a reload, and after a restart it can be resumed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from library.campaigns import Campaign as Totals
from library.errors import NotFound, ScionError, UsageError
from ui.access import Person, Right
from ui.batch import MAX_BYTES, read_rows
from ui.page import LISTENING, Page, fault, in_turn, panel, pickable, picked
from ui.render import campaigns as show
from ui.render.html import Html

_LOOK_SECONDS = 1.0
_LISTED = 8


@dataclass(frozen=True)
class Campaign:
    fold: gr.Accordion
    upload: gr.File
    queue: gr.Button
    status: gr.HTML
    pause: gr.Button
    resume: gr.Button
    drop: gr.Button
    rows: gr.HTML
    listed: gr.HTML
    chosen: gr.State  # the campaign that is shown

    @property
    def shown(self) -> list[Any]:
        """In the order of `_shown`."""
        return [self.status, self.pause, self.resume, self.drop, self.rows, self.listed]


def build() -> Campaign:
    with gr.Accordion("Many at once", open=False, elem_classes="sc-fold-block") as fold:
        upload = gr.File(
            label="JSON lines or CSV with the columns problem and, if known, answer",
            file_types=[".jsonl", ".json", ".csv"],
            height=128,
            elem_id="batch-file",
        )
        queue = gr.Button("Queue all", size="sm", elem_id="batch-go")
        status = panel(elem_id="batch-status")
        with gr.Row(elem_classes="sc-tight"):
            pause = gr.Button("Pause", size="sm", visible=False, elem_id="batch-pause")
            resume = gr.Button("Resume", size="sm", variant="primary", visible=False, elem_id="batch-resume")
            drop = gr.Button("Cancel what is left", variant="stop", size="sm", visible=False, elem_id="batch-stop")
        rows = pickable(elem_id="batch-rows")
        listed = pickable(elem_id="batch-lists")
    return Campaign(fold, upload, queue, status, pause, resume, drop, rows, listed, gr.State(""))


def wire(tab: Campaign, page: Page, figures: list[Any], message: gr.HTML, demo: gr.Blocks) -> None:
    """`figures`: attempts, budget and temperature, as for a single solve."""

    def queue(path: str | None, attempts: float, budget: float, heat: float, request: gr.Request) -> list[Any]:
        try:
            person = page.who(request, Right.SOLVE)
            if not path:
                raise UsageError("choose a file first")
            if Path(path).stat().st_size > MAX_BYTES:
                raise UsageError(f"the file is larger than {MAX_BYTES >> 20} MiB; split it")
            data, name = Path(path).read_bytes(), Path(path).name
            campaign = page.engine.submit_many(
                [(row.problem, row.reference) for row in read_rows(data, name)],
                by=person.name,
                name=name,
                attempts=int(attempts),
                max_tokens=int(budget),
                temperature=float(heat),
            )
        except ScionError as error:
            return [gr.skip(), fault(error), gr.skip()]
        return [campaign, Html(""), None]

    def change(act: Callable[..., int]) -> Any:
        def go(chosen: str, request: gr.Request) -> Html:
            try:
                person = page.who(request, Right.SOLVE)
                act(_one(page, chosen, person).id, by=person.name)
            except ScionError as error:
                return fault(error)
            return Html("")

        return go

    def pick(event: gr.EventData, request: gr.Request) -> tuple[Any, Html]:
        try:
            return _one(page, picked(event), page.who(request)).id, Html("")
        except ScionError as error:
            return gr.skip(), fault(error)

    def arrive(request: gr.Request) -> tuple[Any, Any]:
        """The list that goes on, or could; else the newest. The fold opens where there is something to see."""
        try:
            items = page.engine.campaigns.listed(page.who(request).name, _LISTED)
        except ScionError:
            return "", gr.skip()
        going = next((item for item in items if item.active or item.resumable), None)
        chosen = going or next(iter(items), None)
        return chosen.id if chosen else "", gr.update(open=True) if going else gr.skip()

    async def watch(chosen: str, request: gr.Request) -> AsyncIterator[list[Any]]:
        turn = page.watched.begin(request.session_hash, "batch")
        last: object = None
        while chosen and page.watched.current(turn):
            try:
                person = page.who(request)
                now = await asyncio.to_thread(_one, page, chosen, person)
                if now.states != last:
                    last = now.states
                    yield await asyncio.to_thread(_shown, page, now, person)
            except ScionError as error:
                yield [fault(error), *[gr.skip()] * 5]
                return
            if not now.active:
                return
            await asyncio.sleep(_LOOK_SECONDS)

    campaigns = page.engine.campaigns
    starts = [
        demo.load(arrive, None, [tab.chosen, tab.fold], **in_turn("solve")),
        tab.queue.click(queue, [tab.upload, *figures], [tab.chosen, message, tab.upload], **in_turn("solve")),
        tab.listed.pick(pick, None, [tab.chosen, message], **in_turn("solve", "multiple")),
    ]
    for button, act in ((tab.pause, campaigns.pause), (tab.resume, campaigns.resume), (tab.drop, campaigns.end)):
        starts.append(button.click(change(act), [tab.chosen], [message], **in_turn("solve")))
    for start in starts:
        start.success(watch, [tab.chosen], tab.shown, **LISTENING)


def _one(page: Page, campaign: str, person: Person) -> Totals:
    """One's own campaign, or anybody's for a reviewer; others do not exist."""
    found: Totals = page.engine.campaigns.get(campaign)
    if found.owner != person.name and not person.may(Right.REVIEW):
        raise NotFound(f"no campaign {campaign[:80]!r} in the library")
    return found


def _shown(page: Page, item: Totals, person: Person) -> list[Any]:
    views = page.engine.campaigns.jobs(item.id)
    chosen = [str(view.result["chosen"]) for view in views if view.result.get("chosen")]
    right = page.engine.library.findings("reference", chosen)
    waiting = item.count("queued") > 0
    return [
        show.progress(item),
        # With their names: in a fold that was closed, Gradio shows a button that was hidden without one.
        gr.update(visible=waiting, value="Pause"),
        gr.update(visible=item.resumable, value="Resume"),
        gr.update(visible=item.active or item.resumable, value="Cancel what is left"),
        show.rows(views, right),
        show.listed(page.engine.campaigns.listed(person.name, _LISTED), item.id),
    ]
