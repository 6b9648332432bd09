"""The Review tab: a queue, the solution beside its evidence, and a person's decision. The engine checks every rule."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import gradio as gr

from library.errors import ScionError, StaleVersion
from ui.access import Right
from ui.page import Page, done, fault, in_turn, panel, pickable, picked
from ui.render import parts, prose, records
from ui.render.html import Html, join, tag
from ui.reviewed import AWAITING, DISAGREE, FILTERS, TO_REVIEW, after, failed, listed, whole

ACTIONS: tuple[tuple[str, str, Literal["primary", "secondary", "stop"]], ...] = (
    ("approve", "Approve", "primary"),
    ("reject", "Reject", "stop"),
    ("flag", "Flag", "secondary"),
    ("skip", "Skip", "secondary"),
    ("note", "Add note", "secondary"),
    ("undo", "Undo", "secondary"),
)
_ASK_AGAIN = "Ask the same problem again in Solve: it is answered from this state."
_SAID = {"approve": "Approved", "reject": "Rejected", "flag": "Flagged", "skip": "Skipped", "undo": "Undone"}


@dataclass(frozen=True)
class Review:
    filter: gr.Dropdown
    search: gr.Textbox
    counts: gr.HTML
    queue: gr.HTML
    message: gr.HTML
    head: gr.HTML
    thinking: gr.HTML
    solution: gr.Markdown
    evidence: gr.HTML
    history: gr.HTML
    note: gr.Textbox
    buttons: dict[str, gr.Button]
    publish: gr.Button
    seen: gr.State  # (attempt id, version) that is shown: what a decision is about
    last: gr.State  # the attempt last decided here: what undo is about

    @property
    def record(self) -> list[Any]:
        """One attempt, in the order of `_record`."""
        return [self.head, self.thinking, self.solution, self.evidence, self.history, self.seen]

    @property
    def whole(self) -> list[Any]:
        return [self.counts, self.queue, *self.record, self.message, self.note]


def build(page: Page) -> Review:
    buttons: dict[str, gr.Button] = {}
    with gr.Row(elem_classes="sc-row"):
        with gr.Column(scale=3, min_width=260, elem_classes="sc-sheet"):
            counts = panel(elem_id="review-counts")
            with gr.Row(elem_classes="sc-tight"):
                alone = () if page.settings.second_approver else (DISAGREE, AWAITING)
                names = [name for name in FILTERS if name not in alone]
                filtered = gr.Dropdown(names, value=TO_REVIEW, label="Show", min_width=110, elem_id="review-filter")
                search = gr.Textbox(label="Search", min_width=110, elem_id="review-search")
            queue = pickable(elem_id="review-queue")
        with gr.Column(scale=6, min_width=320):
            message = panel(elem_id="review-message")
            publish = gr.Button(
                "Publish now", size="sm", visible=False, elem_classes="sc-grow-none", elem_id="review-publish"
            )
            with gr.Column(elem_classes="sc-sheet"):
                head = panel(elem_id="review-head")
                thinking = panel(elem_id="review-thinking")
                solution = gr.Markdown(
                    latex_delimiters=prose.DELIMITERS, elem_classes="sc-solution", elem_id="review-solution"
                )
            with gr.Column(elem_classes="sc-sheet", elem_id="review-decide"):
                note = gr.Textbox(
                    label="Reason or note (required to reject)", lines=1, max_lines=5, elem_id="review-note"
                )
                with gr.Row(elem_classes="sc-tight"):
                    for name, label, variant in ACTIONS:
                        buttons[name] = gr.Button(
                            label,
                            variant=variant,
                            min_width=70,
                            size="md",
                            elem_id="review-add-note" if name == "note" else f"review-{name}",
                        )
                with gr.Row(elem_classes="sc-tight"):
                    buttons["previous"] = gr.Button("← Previous", size="sm", min_width=80, elem_id="review-previous")
                    buttons["next"] = gr.Button("Next →", size="sm", min_width=80, elem_id="review-next")
                    buttons["help"] = gr.Button("Keys ?", size="sm", min_width=80, elem_id="review-help")
                keys = panel(records.keys(), visible=False, elem_id="review-keys")
        with gr.Column(scale=4, min_width=280):
            with gr.Column(elem_classes="sc-sheet"):
                panel(parts.heading("Evidence"))
                evidence = panel(elem_id="review-evidence")
            with gr.Column(elem_classes="sc-sheet"):
                panel(parts.heading("History"))
                history = panel(elem_id="review-history")
    seen, last, shown = gr.State(("", 0)), gr.State(""), gr.State(False)
    buttons["help"].click(
        lambda on: (not on, gr.update(visible=not on)), [shown], [shown, keys], queue=False, api_visibility="private"
    )
    return Review(
        filtered, search, counts, queue, message, head, thinking, solution, evidence, history, note, buttons, publish,
        seen, last,
    )  # fmt: skip


def wire(tab: Review, page: Page, opened: list[Any]) -> None:
    """`opened`: the events upon which the tab is filled anew, such as its selection."""
    fill = filler(page)

    def pick(name: str, text: str, event: gr.EventData, request: gr.Request) -> list[Any]:
        return whole(page, request, name, text, picked(event))

    def move(step: int, name: str, text: str, seen: tuple[str, int], request: gr.Request) -> list[Any]:
        try:
            rows = [row.id for row in listed(page, name, text, page.who(request))]
        except ScionError as error:
            return failed(error, note_kept=False)
        here = rows.index(seen[0]) if seen[0] in rows else -1
        place = min(max(here + step, 0), len(rows) - 1) if rows else -1
        return whole(page, request, name, text, rows[place] if rows else "")

    def decide(
        action: str, name: str, text: str, seen: tuple[str, int], note: str, last: str, request: gr.Request
    ) -> list[Any]:
        attempt, version = seen
        try:
            person = page.who(request, Right.REVIEW)
            if action == "undo":
                attempt = last or attempt
                version = page.engine.library.attempt(attempt).version
            following = after(page, name, text, attempt, person) if action in ("approve", "reject", "skip") else attempt
            decided = page.engine.decide(
                attempt, version=version, action=action, reviewer=person.name, reason=(note or "").strip(), defer=True
            )
            if action != "note":
                page.engine.library.release(attempt, person.name)
        except StaleVersion as error:
            # What is on the page is no longer true: show the record as it is now, keep the note, decide nothing.
            return [*whole(page, request, name, text, attempt, message=fault(error))[:-1], note, last, gr.skip()]
        except ScionError as error:
            return [*failed(error, note_kept=True), last, gr.skip()]
        message = _said(page, action, decided)
        kept = attempt if action in ("approve", "reject", "flag", "skip") else ""
        waits = action == "approve" and decided.settled and decided.artifact is None
        return [*whole(page, request, name, text, following, message=message), kept, gr.update(visible=waits)]

    def publish(name: str, text: str, seen: tuple[str, int], last: str, request: gr.Request) -> list[Any]:
        try:
            page.who(request, Right.REVIEW)
            artifact = page.engine.publish(last)
        except ScionError as error:
            return [*failed(error, note_kept=True), gr.update(visible=False)]
        message = parts.notice("good", _kept(page, "In the library as ", artifact.digest), _ASK_AGAIN)
        return [*whole(page, request, name, text, seen[0], message=message), gr.update(visible=False)]

    scope = [tab.filter, tab.search]
    for event in (*opened, tab.filter.change, tab.search.submit):
        event(fill, [*scope, tab.seen], tab.whole, **in_turn("review", "always_last"))
    tab.publish.click(publish, [*scope, tab.seen, tab.last], [*tab.whole, tab.publish], **in_turn("review"))
    tab.queue.pick(pick, scope, tab.whole, **in_turn("review", "multiple"))
    for name, step in (("next", 1), ("previous", -1)):
        tab.buttons[name].click(_mover(move, step), [*scope, tab.seen], tab.whole, **in_turn("review", "multiple"))
    for action, _, _ in ACTIONS:
        tab.buttons[action].click(
            _decider(decide, action),
            [*scope, tab.seen, tab.note, tab.last],
            [*tab.whole, tab.last, tab.publish],
            **in_turn("review"),
        )


def filler(page: Page) -> Any:
    """The handler that fills the tab for its filter and the attempt in `seen`."""

    def fill(name: str, text: str, seen: tuple[str, int], request: gr.Request) -> list[Any]:
        return whole(page, request, name, text, seen[0])

    return fill


def _mover(move: Any, step: int) -> Any:
    def go(name: str, text: str, seen: tuple[str, int], request: gr.Request) -> list[Any]:
        return list(move(step, name, text, seen, request))

    return go


def _decider(decide: Any, action: str) -> Any:
    def go(name: str, text: str, seen: tuple[str, int], note: str, last: str, request: gr.Request) -> list[Any]:
        return list(decide(action, name, text, seen, note, last, request))

    return go


def _kept(page: Page, said: str, digest: str) -> Html:
    """Where an approved state is now, with the way there."""
    link = tag("a", "Show it", href=f"{page.settings.root_path.rstrip('/')}/?tab=library&id={digest}")
    return join([said, parts.digest(digest, "artifact digest"), " ", link])


def _said(page: Page, action: str, decided: Any) -> Html:
    word = _SAID.get(action, "Noted")
    artifact = getattr(decided, "artifact", None)
    if artifact is not None:
        told = _kept(page, f"{word}. The state is in the library as ", artifact.digest)
        return parts.notice("good", told, decided.note or None)
    return parts.notice("good", word, decided.note) if getattr(decided, "note", "") else done(word)
