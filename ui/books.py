"""Books, in the Library tab: what stands there. What it does is in book_events.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from ui.page import panel, pickable
from ui.render import books as show
from ui.render import parts


@dataclass(frozen=True)
class Books:
    table: gr.HTML
    name: gr.Textbox
    files: gr.File
    tokens: gr.Number
    build: gr.Button
    message: gr.HTML
    work: gr.HTML
    running: gr.Column
    cancel: gr.Button
    detail: gr.HTML
    deciding: gr.Column
    note: gr.Textbox
    accept: gr.Button
    refuse: gr.Button
    halfway: gr.Column
    resume: gr.Button
    asking: gr.Column
    question: gr.Textbox
    ask: gr.Button
    answer: gr.HTML
    keeping: gr.Accordion
    pack: gr.Button
    drop: gr.Button
    reason: gr.Textbox
    revoke: gr.Button
    chosen: gr.State
    seen: gr.State  # the digest of the book as it was shown: a decision is about that one
    job: gr.State

    @property
    def whole(self) -> list[Any]:
        """The list and the chosen book, in the order of `book_events.filled`."""
        return [
            self.table, self.detail, self.deciding, self.halfway, self.asking, self.keeping, self.chosen, self.seen,
        ]  # fmt: skip

    @property
    def stage(self) -> list[Any]:
        """What follows a job."""
        return [self.work, self.running, self.answer]


def build() -> Books:
    with gr.Row(elem_classes="sc-row"):
        with gr.Column(scale=7, min_width=320):
            with gr.Column(elem_classes="sc-sheet"):
                panel(parts.heading("Books", "texts longer than the window, asked one segment at a time"))
                table = pickable(elem_id="books-table")
            with gr.Column(elem_classes="sc-sheet"):
                panel(parts.heading("Build a book", "of UTF-8 text, Markdown or PDF; up to 16 MB a file"))
                name = gr.Textbox(label="Name", max_length=100, elem_id="books-name")
                files = gr.File(
                    label="Files; they join those that the book has",
                    file_count="multiple",
                    height=140,
                    elem_id="books-files",
                )
                with gr.Accordion("Length of a segment", open=False, elem_classes="sc-fold-block"):
                    tokens = gr.Number(
                        value=0,
                        precision=0,
                        minimum=0,
                        label="Most tokens of text (0: 2,048 or what fits)",
                    )
                build_ = gr.Button("Build", variant="primary", elem_id="books-build")
        with gr.Column(scale=5, min_width=320):
            message = panel(elem_id="books-message")
            work = panel(elem_id="books-work")
            # A button that is hidden at first in a tab within a tab comes to light without its text; a column is whole.
            with gr.Column(visible=False, elem_classes="sc-tight") as running:
                cancel = gr.Button(
                    "Cancel", variant="stop", size="sm", elem_classes="sc-grow-none", elem_id="books-cancel"
                )
            with gr.Column(elem_classes="sc-sheet"):
                detail = panel(show.detail(None), elem_id="books-detail")
                with gr.Column(visible=False, elem_classes="sc-tight") as halfway:
                    resume = gr.Button("Resume", size="sm", elem_classes="sc-grow-none", elem_id="books-resume")
                with gr.Column(visible=False, elem_classes="sc-tight") as deciding:
                    note = gr.Textbox(label="Reason (required to refuse)", elem_id="books-note")
                    with gr.Row(elem_classes="sc-tight"):
                        accept = gr.Button("Accept", variant="primary", size="sm", elem_id="books-accept")
                        refuse = gr.Button("Refuse", variant="stop", size="sm", elem_id="books-refuse")
                with gr.Column(visible=False, elem_classes="sc-tight") as asking:
                    question = gr.Textbox(label="Question", lines=2, elem_id="books-question")
                    ask = gr.Button("Ask this book", variant="primary", elem_id="books-ask")
                    answer = panel(elem_id="books-answer")
                with gr.Accordion(
                    "Keep small, take out of use", open=False, visible=False, elem_classes="sc-fold-block"
                ) as keeping:
                    with gr.Row(elem_classes="sc-tight"):
                        pack = gr.Button("Pack (lossless)", size="sm", elem_id="books-pack")
                        drop = gr.Button("Drop until needed", size="sm", elem_id="books-drop")
                    reason = gr.Textbox(label="Reason (required)", elem_id="books-reason")
                    revoke = gr.Button(
                        "Revoke for good", variant="stop", size="sm", elem_classes="sc-grow-none",
                        elem_id="books-revoke",
                    )  # fmt: skip
    return Books(
        table, name, files, tokens, build_, message, work, running, cancel, detail, deciding, note, accept, refuse,
        halfway, resume, asking, question, ask, answer, keeping, pack, drop, reason, revoke, gr.State(""), gr.State(""),
        gr.State(""),
    )  # fmt: skip
