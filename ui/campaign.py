"""Many problems at once, on the Solve tab: upload a list, queue it, watch how far it is, cancel what is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from library.errors import ScionError, UsageError
from ui.access import Right
from ui.batch import read_rows
from ui.page import Page, fault, panel
from ui.render import jobs as show
from ui.render.html import Html

_OPEN = ("queued", "running")
_LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Campaign:
    upload: gr.File
    status: gr.HTML
    queue: gr.Button
    drop: gr.Button
    jobs: gr.State  # the ids of this page's list, in order


def build() -> Campaign:
    with gr.Accordion("Many at once", open=False, elem_classes="sc-fold-block"):
        upload = gr.File(
            label="JSON lines or CSV with the columns problem and, if known, answer",
            file_types=[".jsonl", ".json", ".csv"],
            type="binary",
            height=110,
            elem_id="batch-file",
        )
        status = panel(elem_id="batch-status")
        with gr.Row(elem_classes="sc-tight"):
            queue = gr.Button("Queue all", size="sm", elem_id="batch-go")
            drop = gr.Button("Cancel what is left", variant="stop", size="sm", visible=False, elem_id="batch-stop")
    return Campaign(upload, status, queue, drop, gr.State([]))


def wire(tab: Campaign, page: Page, figures: list[Any], message: gr.HTML) -> None:
    """`figures`: attempts, budget and temperature, as for a single solve."""

    def queue(data: bytes | None, attempts: float, budget: float, heat: float, request: gr.Request) -> tuple[Any, Html]:
        try:
            person = page.who(request, Right.SOLVE)
            if not data:
                raise UsageError("choose a file first")
            name = "list.jsonl" if data.lstrip()[:1] in (b"{", b"[") else "list.csv"
            given: dict[str, Any] = {"attempts": int(attempts), "max_tokens": int(budget), "temperature": float(heat)}
            jobs = [
                page.engine.submit(row.problem, by=person.name, reference=row.reference, source="batch", **given)
                for row in read_rows(data, name)
            ]
        except ScionError as error:
            return gr.skip(), fault(error)
        return jobs, Html("")

    async def watch(jobs: list[str], request: gr.Request) -> AsyncIterator[tuple[Html, Any]]:
        turn = page.watched.begin(request.session_hash, "batch")
        left = bool(jobs)
        while left and page.watched.current(turn):
            try:
                person = page.who(request)
                states = await asyncio.to_thread(lambda: [page.job(job, person).state for job in jobs])  # noqa: B023
            except ScionError as error:
                yield fault(error), gr.skip()
                return
            left = any(state in _OPEN for state in states)
            yield show.campaign(states), gr.update(visible=left)
            if left:
                await asyncio.sleep(_LOOK_SECONDS)

    def drop(jobs: list[str], request: gr.Request) -> Html:
        try:
            person = page.who(request, Right.SOLVE)
            for job in jobs:
                page.engine.cancel(page.job(job, person).id, by=person.name)
        except ScionError as error:
            return fault(error)
        return Html("")

    private: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
    tab.queue.click(queue, [tab.upload, *figures], [tab.jobs, message], **private).success(
        watch, [tab.jobs], [tab.status, tab.drop], concurrency_limit=None, **private
    )
    tab.drop.click(drop, [tab.jobs], [message], **private)
