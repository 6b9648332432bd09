"""The Graft lab tab: change a stored problem a little, run it fresh, ungated and gated, and judge what came out."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import gradio as gr

from core.evaluate.mutate import KINDS, variant
from library.errors import ScionError, UsageError
from library.search import Record
from library.tables import Artifact
from ui.access import Right
from ui.page import LISTENING, PRIVATE, Page, done, fault, in_turn, panel, unchanged
from ui.render import diff, figures, parts, prose, words
from ui.render import lab as show
from ui.render.html import Html, join

LABELS = ("safe", "unsafe", "unsure")
LISTED = 200  # artifacts offered in the list; others are reached from the Library tab
RUNS = ("fresh", "ungated", "gated")


@dataclass(frozen=True)
class Lab:
    artifact: gr.Dropdown
    query: gr.Textbox
    mutations: dict[str, gr.Button]
    seed: gr.State
    judgement: gr.HTML
    blind: gr.Checkbox
    budget: gr.Slider
    run: gr.Button
    cancel: gr.Button
    message: gr.HTML
    trouble: gr.HTML
    columns: tuple[tuple[gr.HTML, gr.Markdown], ...]
    label: gr.Radio
    note: gr.Textbox
    save: gr.Button
    saved: gr.HTML
    again: gr.Button
    repeated: gr.HTML
    chosen: gr.State

    @property
    def runs(self) -> list[Any]:
        """In the order of `_runs`."""
        return [self.trouble, *[part for column in self.columns for part in column]]

    @property
    def opened(self) -> list[Any]:
        return [self.artifact, self.query, self.judgement, self.chosen]


def build(page: Page) -> Lab:
    mutations: dict[str, gr.Button] = {}
    with gr.Row(elem_classes="sc-row"):
        with gr.Column(scale=6, min_width=320, elem_classes="sc-sheet"):
            artifact = gr.Dropdown(
                [],
                value=None,
                label="Stored problem",
                filterable=True,
                allow_custom_value=False,
                elem_id="lab-artifact",
            )
            query = gr.Textbox(
                label="Query", placeholder="Edit the stored problem, or take a change below.", lines=4, max_lines=10,
                elem_id="lab-query",
            )  # fmt: skip
            panel(parts.heading("Change it", "each click makes another one"))
            with gr.Row(elem_classes="sc-tight"):
                for kind in KINDS:
                    mutations[kind] = gr.Button(
                        kind.replace("_", " "),
                        size="sm",
                        min_width=60,
                        elem_classes="sc-grow-none",
                        elem_id=f"lab-{kind}",
                    )
            with gr.Row(elem_classes="sc-tight"):
                budget = gr.Slider(
                    16, 2048, value=min(256, page.settings.max_tokens), step=16, label="Token budget of a run"
                )
                blind = gr.Checkbox(
                    label="Blind order", info="names the runs only after your label", elem_id="lab-blind"
                )
            with gr.Row(elem_classes="sc-tight"):
                run = gr.Button("Run all three", variant="primary", elem_id="lab-run")
                cancel = gr.Button("Cancel", variant="stop", visible=False, elem_id="lab-cancel")
            message = panel(elem_id="lab-message")
        with gr.Column(scale=6, min_width=320, elem_classes="sc-sheet"):
            panel(parts.heading("What the gate says"))
            judgement = panel(diff.judgement("", "", (), None), elem_id="lab-judgement")
    trouble = panel(elem_id="lab-trouble")
    columns: list[tuple[gr.HTML, gr.Markdown]] = []
    with gr.Row(elem_classes="sc-runs", elem_id="lab-runs"):
        for place, name in enumerate(RUNS):
            with gr.Column(elem_classes="sc-run", min_width=240):
                head = panel(show.run(None, name, place, blind=False)[0])
                text = gr.Markdown(
                    latex_delimiters=prose.DELIMITERS, visible=False, elem_classes=["sc-solution", "sc-run-prose"]
                )
                columns.append((head, text))
    with gr.Row(elem_classes="sc-row"):
        with gr.Column(scale=6, min_width=320, elem_classes="sc-sheet"):
            panel(parts.heading("Would a graft be safe here?", "safe: the stored answer is right for the query too"))
            label = gr.Radio(list(LABELS), label="Label", container=False, elem_id="lab-label")
            note = gr.Textbox(label="Note", lines=1, max_lines=4, elem_id="lab-note")
            save = gr.Button("Save label", size="sm", elem_classes="sc-grow-none", elem_id="lab-save")
            saved = panel(elem_id="lab-saved")
        with gr.Column(scale=6, min_width=320, elem_classes="sc-sheet"):
            panel(join([parts.heading("All labelled pairs", figures.export(page.settings.root_path))]))
            again = gr.Button("Judge all pairs again", size="sm", elem_classes="sc-grow-none", elem_id="lab-again")
            repeated = panel(
                parts.empty("Not judged again yet", "Shows where the gate and people's labels disagree."),
                elem_id="lab-repeated",
            )
    return Lab(
        artifact, query, mutations, gr.State(0), judgement, blind, budget, run, cancel, message, trouble,
        tuple(columns), label, note, save, saved, again, repeated, gr.State(""),
    )  # fmt: skip


def opener(page: Page) -> Any:
    """The handler that opens the lab on an artifact: its problem becomes the query."""

    def fill(chosen: str, request: gr.Request) -> list[Any]:
        try:
            page.who(request)
            rows: list[Artifact | Record] = [*page.engine.library.index.artifacts(states=["published"], limit=LISTED)]
            current = page.engine.library.artifact(chosen) if chosen else (rows[0] if rows else None)
        except ScionError as error:
            return [gr.skip(), gr.skip(), fault(error), gr.skip()]
        if current is None:
            empty = parts.empty("No artifact to try", "Solve a problem and approve it; then change it here.")
            return [gr.update(choices=[], value=None), "", empty, ""]
        if all(row.digest != current.digest for row in rows):
            rows = [current, *rows]
        choices = [
            (f"{words.short_digest(row.digest)}  {words.clip(row.problem_text, 90)}", row.digest) for row in rows
        ]
        query = current.problem_text
        shown = _judged(page, current.problem_text, query)
        return [gr.update(choices=choices, value=current.digest), query, shown, current.digest]

    return fill


def wire(tab: Lab, page: Page, job: gr.State, opened: list[Any]) -> None:
    def enter(chosen: str, query: str, request: gr.Request) -> list[Any]:
        if chosen and query:  # coming back: keep what was being written
            return [gr.skip(), gr.skip(), gr.skip(), gr.skip()]
        return list(opener(page)(chosen, request))

    def choose(digest: str | None, chosen: str, request: gr.Request) -> list[Any]:
        if not digest or digest == chosen:
            return [gr.skip(), gr.skip(), gr.skip()]
        try:
            page.who(request)
            row = page.engine.library.artifact(digest)
        except ScionError as error:
            return [gr.skip(), fault(error), gr.skip()]
        return [row.problem_text, _judged(page, row.problem_text, row.problem_text), row.digest]

    def judge(chosen: str, query: str, request: gr.Request) -> Html:
        try:
            page.who(request)
            stored = page.engine.library.artifact(chosen).problem_text if chosen else ""
        except ScionError as error:
            return fault(error)
        return _judged(page, stored, query or "")

    def change(kind: str) -> Any:
        def go(chosen: str, seed: int, request: gr.Request) -> tuple[Any, int, Html]:
            try:
                page.who(request)
                if not chosen:
                    raise UsageError("choose a stored problem first")
                text = variant(page.engine.library.artifact(chosen).problem_text, kind, int(seed))
            except ScionError as error:
                return gr.skip(), seed, fault(error)
            if text is None:
                return gr.skip(), seed + 1, parts.notice("info", f"This problem has nothing to change by “{kind}”.")
            return text, seed + 1, Html("")

        return go

    def start(chosen: str, query: str, budget: float, request: gr.Request) -> tuple[Any, Html]:
        try:
            person = page.who(request, Right.SOLVE)
            if not chosen:
                raise UsageError("choose a stored problem first")
            return page.engine.submit_compare(chosen, query or "", by=person.name, max_tokens=int(budget)), Html("")
        except ScionError as error:
            return gr.skip(), fault(error)

    async def follow(job_id: str, blind: bool, request: gr.Request) -> AsyncIterator[list[Any]]:
        if not job_id:
            return
        async for view in page.follow(job_id, request, "lab"):
            yield [*_runs(view, _order(job_id, blind), blind=blind), gr.update(visible=not view.over)]
        yield unchanged(len(tab.runs) + 1)

    def stop(job_id: str, request: gr.Request) -> Html:
        return page.stop(job_id, request)

    def save(
        chosen: str, query: str, label: str | None, note: str, job_id: str, blind: bool, request: gr.Request
    ) -> list[Any]:
        try:
            person = page.who(request, Right.REVIEW)
            if label not in LABELS:
                raise UsageError("choose safe, unsafe or unsure")
            stored = page.engine.library.artifact(chosen).problem_text
            page.engine.label(stored, query, label, note=(note or "").strip(), by=person.name, artifact=chosen)
            view = page.job(job_id, person) if job_id and blind else None
        except ScionError as error:
            return [fault(error), *[gr.skip()] * (2 + len(tab.runs))]
        runs = _runs(view, _order(job_id, blind), blind=False) if view else [gr.skip()] * len(tab.runs)
        return [done(f"Labelled {label}."), None, "", *runs]

    def again(request: gr.Request) -> Html:
        try:
            page.who(request)
            rows = [(item, page.engine.judge(item.stored, item.query)) for item in page.engine.library.labels()]
        except ScionError as error:
            return fault(error)
        return show.repeated(rows)

    for event in opened:
        event(enter, [tab.chosen, tab.query], tab.opened, **in_turn("lab", "always_last"))
    tab.artifact.input(
        choose, [tab.artifact, tab.chosen], [tab.query, tab.judgement, tab.chosen], **in_turn("lab", "always_last")
    )
    tab.query.change(judge, [tab.chosen, tab.query], [tab.judgement], **in_turn("lab", "always_last"))
    for kind, button in tab.mutations.items():
        button.click(change(kind), [tab.chosen, tab.seed], [tab.query, tab.seed, tab.message], **in_turn("lab"))
    tab.run.click(start, [tab.chosen, tab.query, tab.budget], [job, tab.message], **in_turn("lab")).success(
        follow, [job, tab.blind], [*tab.runs, tab.cancel], **LISTENING
    )
    tab.cancel.click(stop, [job], [tab.message], queue=False, **PRIVATE)
    tab.save.click(
        save, [tab.chosen, tab.query, tab.label, tab.note, job, tab.blind], [tab.saved, tab.label, tab.note, *tab.runs],
        **PRIVATE,
    )  # fmt: skip
    tab.again.click(again, None, [tab.repeated], **PRIVATE)


def _runs(view: Any, order: tuple[str, ...], *, blind: bool) -> list[Any]:
    """The three columns, in the order of `Lab.runs`. Formulas are set once a text is final, as on the Solve tab."""
    shown: list[Any] = [show.trouble(view)]
    for place, name in enumerate(order):
        head, text = show.run(view, name, place, blind=blind)
        shown += [head, gr.update(value=prose.markdown(text), visible=bool(text))]
    return shown


def _order(job_id: str, blind: bool) -> tuple[str, ...]:
    """The order of the columns; under blind order it depends on the job only, so that it does not jump."""
    if not blind:
        return RUNS
    return tuple(sorted(RUNS, key=lambda name: hashlib.sha256(f"{job_id}/{name}".encode()).digest()))


def _judged(page: Page, stored: str, query: str) -> Html:
    if not stored or not query.strip():
        return diff.judgement("", "", (), None)
    said = page.engine.judge(stored, query)
    return join(
        [
            diff.judgement(
                str(said.verdict), str(said.policy), [r.text for r in said.reasons], said.score, unsafe=said.unsafe
            ),
            diff.comparison(stored, query, said.edits),
            diff.edit_list(said.edits),
        ]
    )
