"""The Solve tab: write a problem, see what the library offers, watch the model work. Closing the page loses nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from library.errors import NotFound, ScionError
from library.reviews import OPEN_FOR_REVIEW
from ui import campaign
from ui.access import Right
from ui.book_events import KINDS as BOOK_JOBS
from ui.page import LISTENING, PRIVATE, Page, fault, in_turn, panel, pickable, picked, unchanged
from ui.render import books, parts, prose, records
from ui.render import jobs as show
from ui.render.html import Html, join

# One step, small numbers: the embedded model solves each in three to seven of eight attempts.
EXAMPLES = (
    ("Carol collects 2 peanuts. Carol's father gives Carol 5 more. How many peanuts does Carol have?", "7"),
    ("Anna has 10 pens. She gives 4 pens to Ben. How many pens does Anna have left?", "6"),
    ("A book costs 6 dollars. How much do 2 books cost?", "12"),
)
EXAMPLE_ATTEMPTS = 8


@dataclass(frozen=True)
class Solve:
    problem: gr.Textbox
    reference: gr.Textbox
    attempts: gr.Slider
    budget: gr.Slider
    temperature: gr.Slider
    seed: gr.Number
    examples: tuple[gr.Button, ...]
    offer: gr.HTML
    message: gr.HTML
    solve: gr.Button
    ask: gr.Button
    status: gr.HTML
    live: gr.HTML
    result: gr.HTML
    solution: gr.Markdown
    evidence: gr.HTML
    cancel: gr.Button
    review: gr.Button
    mine: gr.HTML
    attempt: gr.State
    batch: campaign.Campaign

    @property
    def stage(self) -> list[Any]:
        """What follows a job, in the order of `_shown`."""
        return [
            self.status, self.live, self.result, self.solution, self.evidence, self.cancel, self.review, self.attempt,
            self.mine,
        ]  # fmt: skip


def build(page: Page) -> Solve:
    limits = page.settings
    with gr.Row(elem_classes="sc-row"):
        with gr.Column(scale=5, min_width=320, elem_classes="sc-sheet"):
            problem = gr.Textbox(
                label="Problem",
                placeholder="Write a problem; LaTeX is welcome. Shift+Enter solves it.",
                lines=5,
                max_lines=14,
                elem_id="solve-problem",
            )
            offer = panel(elem_id="solve-offer", visible=False)
            reference = gr.Textbox(
                label="Reference answer (optional)",
                placeholder="a match ends the attempts early",
                elem_id="solve-reference",
            )
            with gr.Accordion("Attempts, budget, sampling", open=False, elem_classes="sc-fold-block"):
                attempts = gr.Slider(1, 16, value=min(16, limits.attempts), step=1, label="Attempts")
                budget = gr.Slider(
                    16, 4096, value=min(4096, limits.max_tokens), step=16, label="Token budget of an attempt"
                )
                temperature = gr.Slider(
                    0, 1.5, value=min(1.5, limits.temperature), step=0.05, label="Temperature (0: greedy)"
                )
                seed = gr.Number(value=0, precision=0, minimum=0, maximum=2**31 - 1, label="Seed")
            message = panel(elem_id="solve-message")
            with gr.Row(elem_classes="sc-tight"):
                solve = gr.Button("Solve", variant="primary", elem_id="solve-go")
                ask = gr.Button("Ask the library", elem_id="solve-ask")
            panel(parts.heading("Examples", "one click each"))
            with gr.Column(elem_classes="sc-tight sc-examples"):
                examples = tuple(
                    gr.Button(text, size="sm", elem_id=f"example-{n}") for n, (text, _) in enumerate(EXAMPLES)
                )
            batch = campaign.build()
        with gr.Column(scale=7, min_width=320):
            with gr.Column(elem_classes="sc-sheet"):
                status = panel(show.progress(None), elem_id="solve-status")
                live = panel(
                    elem_id="solve-live", elem_classes="sc-live-box", max_height=300, autoscroll=True, visible=False
                )
                cancel = gr.Button(
                    "Cancel", variant="stop", size="sm", visible=False, elem_classes="sc-grow-none",
                    elem_id="solve-cancel",
                )  # fmt: skip
                result = panel(elem_id="solve-result")
                solution = gr.Markdown(
                    latex_delimiters=prose.DELIMITERS,
                    elem_id="solve-solution",
                    elem_classes="sc-solution",
                    visible=False,
                )
                review = gr.Button("Review this attempt", variant="primary", visible=False, elem_id="solve-review")
                evidence = panel(elem_id="solve-evidence")
            with gr.Column(elem_classes="sc-sheet"):
                panel(parts.heading("My jobs", "kept by the server, also when this page is closed"))
                mine = pickable(elem_id="solve-jobs")
    attempt = gr.State("")
    return Solve(
        problem, reference, attempts, budget, temperature, seed, examples, offer, message, solve, ask, status, live,
        result, solution, evidence, cancel, review, mine, attempt, batch,
    )  # fmt: skip


def wire(tab: Solve, page: Page, job: gr.BrowserState, demo: gr.Blocks, opened: list[Any]) -> None:
    """`opened`: the events upon which the tab is looked at again, such as its selection."""
    inputs = [tab.problem, tab.reference, tab.attempts, tab.budget, tab.temperature, tab.seed]

    def submit(
        problem: str, reference: str, attempts: float, budget: float, heat: float, seed: float, request: gr.Request
    ) -> tuple[Any, Html]:
        try:
            person = page.who(request, Right.SOLVE)
            job_id = page.engine.submit(
                problem or "",
                by=person.name,
                reference=(reference or "").strip() or None,
                attempts=int(attempts),
                max_tokens=int(budget),
                temperature=float(heat),
                seed=int(seed or 0),
                source="page",
            )
        except ScionError as error:
            return gr.skip(), fault(error)
        return job_id, Html("")

    def ask(problem: str, budget: float, request: gr.Request) -> tuple[Any, Html]:
        try:
            person = page.who(request, Right.SOLVE)
            return page.engine.submit_ask(problem or "", by=person.name, fresh_max_tokens=int(budget)), Html("")
        except ScionError as error:
            return gr.skip(), fault(error)

    async def follow(job_id: str, request: gr.Request) -> AsyncIterator[list[Any]]:
        if not job_id:
            yield _idle(page, request)
            return
        state = ""
        async for view in page.follow(job_id, request, "solve"):
            yield _shown(page, view, request, jobs_changed=view.state != state)
            state = view.state
        yield unchanged(len(tab.stage)) if state else _idle(page, request)

    def stop(job_id: str, request: gr.Request) -> Html:
        return page.stop(job_id, request)

    def offered(problem: str, request: gr.Request) -> tuple[Any, Any, Any]:
        try:
            page.who(request)
            found = page.engine.offer(problem) if (problem or "").strip() else None
        except ScionError:
            found = None
        shown = show.offer(found)
        exact = found is not None and str(found.verdict) == "GRAFT"
        first, second = ("secondary", "primary") if exact else ("primary", "secondary")
        return gr.update(value=shown, visible=bool(shown)), gr.update(variant=first), gr.update(variant=second)

    def pick(event: gr.EventData, request: gr.Request) -> tuple[Any, Html]:
        try:
            return page.job(picked(event), page.who(request)).id, Html("")
        except ScionError as error:
            return gr.skip(), fault(error)

    for event in (demo.load, *opened):
        event(follow, [job], tab.stage, **LISTENING)
    for start in (
        tab.solve.click(submit, inputs, [job, tab.message], **in_turn("solve")),
        tab.problem.submit(submit, inputs, [job, tab.message], **in_turn("solve")),
        tab.ask.click(ask, [tab.problem, tab.budget], [job, tab.message], **in_turn("solve")),
        tab.mine.pick(pick, None, [job, tab.message], **in_turn("solve", "multiple")),
        tab.batch.rows.pick(pick, None, [job, tab.message], **in_turn("solve", "multiple")),
    ):
        start.success(follow, [job], tab.stage, **LISTENING)
    campaign.wire(tab.batch, page, [tab.attempts, tab.budget, tab.temperature], tab.message, demo)
    tab.cancel.click(stop, [job], [tab.message], queue=False, **PRIVATE)
    gr.on(  # on the tab's selection too: what was approved meanwhile may answer what still stands here
        [tab.problem.change, *opened],
        offered,
        [tab.problem],
        [tab.offer, tab.solve, tab.ask],
        trigger_mode="always_last",
        **PRIVATE,
    )
    for button, (text, answer) in zip(tab.examples, EXAMPLES, strict=True):
        button.click(
            lambda t=text, a=answer: (t, a, EXAMPLE_ATTEMPTS),
            None,
            [tab.problem, tab.reference, tab.attempts],
            queue=False,
            **PRIVATE,
        )


def _idle(page: Page, request: gr.Request) -> list[Any]:
    hidden = gr.update(visible=False)
    return [show.progress(None), hidden, Html(""), hidden, Html(""), hidden, hidden, "", _mine(page, request, "")]


def _mine(page: Page, request: gr.Request, chosen: str) -> Html:
    try:
        person = page.who(request)
        return show.listing(page.engine.jobs(owner=person.name, limit=8, single=True), chosen)
    except ScionError as error:
        return fault(error)


def _shown(page: Page, view: Any, request: gr.Request, *, jobs_changed: bool) -> list[Any]:
    """The stage for one look at a job, in the order of `Solve.stage`."""
    result, solution, evidence, attempt = Html(""), "", Html(""), ""
    if view.over:
        result, solution, evidence, attempt = _outcome(page, view)
    running = not view.over
    return [
        show.progress(view),
        gr.update(value=show.live(view), visible=running or not (solution or result)),
        result,
        gr.update(value=prose.markdown(solution), visible=bool(solution)),
        evidence,
        gr.update(visible=running),
        gr.update(visible=bool(attempt)),
        attempt,
        _mine(page, request, view.id) if jobs_changed else gr.skip(),
    ]


def _outcome(page: Page, view: Any) -> tuple[Html, str, Html, str]:
    """What came of a job that is over: (figures, solution text, evidence, attempt to review)."""
    library, said = page.engine.library, view.result
    if view.kind in BOOK_JOBS:
        return join([books.work(view), books.answer(said) if view.kind == "book" else None]), "", Html(""), ""
    if view.kind == "ask" and said:
        attempt, text = str(said.get("attempt_id") or ""), str(said.get("text") or "")
        return show.ask(said), "" if text == said.get("answer") else text, Html(""), attempt
    attempts = [str(a) for a in said.get("attempts") or ()]
    chosen = str(said.get("chosen") or (attempts[-1] if attempts else ""))
    if not chosen:
        return Html(""), "", Html(""), ""
    try:
        row = library.attempt(chosen)
        found = library.evidence(chosen)
    except NotFound:
        return Html(""), "", Html(""), ""
    result = join(
        [show.answer(row.answer), parts.folded("Thinking", parts.pre(row.thinking)) if row.thinking else None]
    )
    return result, row.solution, records.checks(found), chosen if row.review in OPEN_FOR_REVIEW else ""
