"""Whether an artifact may be used, on the Library tab: accept or refuse an import, release what is held, revoke.

Every rule is the library's; this passes a person's word on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from library.errors import ScionError, UsageError
from ui.access import Right
from ui.page import Page, done, fault, in_turn, panel
from ui.render import parts
from ui.render.html import Html

_ASKS = {
    "imported": ("Imported: not used until a person accepts it.", "Look at problem, solution and manifest first."),
    "held": ("Held: not grafted until a person releases it.", "Its last replay answered something else."),
}


@dataclass(frozen=True)
class Decision:
    """What an imported or held artifact asks of a person; hidden for others."""

    group: gr.Column
    ask: gr.HTML
    reason: gr.Textbox
    accept: gr.Button
    refuse: gr.Button
    release: gr.Button


@dataclass(frozen=True)
class Custody:
    decision: Decision
    fold: gr.Accordion
    reason: gr.Textbox
    revoke: gr.Button

    @property
    def shown(self) -> list[Any]:
        """In the order of `shown`."""
        part = self.decision
        return [part.group, part.ask, part.accept, part.refuse, part.release, self.fold]


def build_decision() -> Decision:
    with gr.Column(visible=False, elem_id="library-decide", elem_classes="sc-tight") as group:
        ask = panel()
        reason = gr.Textbox(label="Reason (required to refuse or release)", elem_id="library-decide-reason")
        with gr.Row(elem_classes="sc-tight"):
            accept = gr.Button("Accept", variant="primary", size="sm", min_width=80, elem_id="library-accept")
            refuse = gr.Button("Refuse", variant="stop", size="sm", min_width=80, elem_id="library-refuse")
            release = gr.Button("Release", size="sm", min_width=80, elem_id="library-release")
    return Decision(group, ask, reason, accept, refuse, release)


def build(decision: Decision) -> Custody:
    with gr.Accordion("Take out of use", open=False, elem_classes=["sc-fold-block", "sc-of-chosen"]) as fold:
        reason = gr.Textbox(label="Reason (required)", elem_id="library-reason")
        revoke = gr.Button(
            "Revoke for good", variant="stop", size="sm", elem_classes="sc-grow-none", elem_id="library-revoke"
        )
    return Custody(decision, fold, reason, revoke)


def shown(state: str) -> list[Any]:
    """What can be done about an artifact in this state, in the order of `Custody.shown`."""
    title, hint = _ASKS.get(state, ("", ""))
    return [
        gr.update(visible=bool(title)),
        parts.notice("warn", title, hint) if title else Html(""),
        gr.update(visible=state == "imported", value="Accept"),
        gr.update(visible=state == "imported", value="Refuse"),
        gr.update(visible=state == "held", value="Release"),
        gr.update(visible=state in ("published", "held", "evicted")),
    ]


def wire(tab: Custody, page: Page, chosen: gr.State, message: gr.HTML) -> list[Any]:
    """Returns the events after which an artifact's state may be another."""
    library = page.engine.library

    def act(what: str) -> Any:
        def go(digest: str, reason: str, request: gr.Request) -> tuple[Html, str]:
            why = (reason or "").strip()
            try:
                person = page.who(request, Right.ADMIN)
                if not digest:
                    raise UsageError("choose an artifact first")
                if what == "revoke":
                    gone = library.revoke(digest, reason=why, actor=person.name)
                    said = "Revoked; it will not be grafted again." if gone else "It was revoked already."
                elif what == "accept":
                    library.accept_import([digest], person.name)
                    said = "Accepted: it may be grafted from now on."
                elif what == "refuse":
                    library.refuse_import([digest], person.name, why)
                    said = "Refused; it will not be grafted."
                else:
                    library.release_hold(digest, why, person.name)
                    said = "Released: it may be grafted again."
            except ScionError as error:
                return fault(error), reason
            return done(said), ""

        return go

    part = tab.decision
    wired = (
        (tab.revoke, "revoke", tab.reason), (part.accept, "accept", part.reason),
        (part.refuse, "refuse", part.reason), (part.release, "release", part.reason),
    )  # fmt: skip
    return [
        button.click(act(what), [chosen, reason], [message, reason], **in_turn("library"))
        for button, what, reason in wired
    ]
