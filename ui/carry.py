"""Bundles on the Library tab: export by a link, import in steps: pick a file, see what it would bring, accept, refuse.

What is decided here is decided again in the library: an import is verified anew when it is carried out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gradio as gr

from core.gate import CANONICAL_VERSION, canonical_key
from library import exchange
from library.errors import ScionError, UsageError
from library.store import Library
from ui.access import Denied, Right
from ui.page import Page, done, fault, in_turn, panel
from ui.render import carry as show
from ui.render import words
from ui.render.html import Html, join

ALL, LISTED, ONE = "All published", "What the search shows", "The chosen one"
MOST = 1000  # artifacts that a search puts into a bundle


@dataclass(frozen=True)
class Carry:
    what: gr.Radio
    link: gr.HTML
    file: gr.File
    steps: gr.HTML
    preview: gr.HTML
    accept: gr.Button
    keep: gr.Button
    refuse: gr.Button
    path: gr.State  # the file that was verified; kept on the server

    @property
    def shown(self) -> list[Any]:
        """The import's parts, in the order of `_step`."""
        return [self.file, self.steps, self.preview, self.accept, self.keep, self.refuse, self.path]


def build() -> Carry:
    with gr.Accordion("Export a bundle", open=False, elem_classes="sc-fold-block"):
        what = gr.Radio([ALL, LISTED, ONE], value=ALL, label="What to export", container=False, elem_id="export-what")
        link = panel(elem_id="export-link")
    with gr.Accordion("Import a bundle", open=False, elem_classes="sc-fold-block"):
        steps = panel(show.steps(0), elem_id="import-steps")
        file = gr.File(label="A bundle that a library exported", height=128, elem_id="import-file")
        preview = panel(elem_id="import-preview")
        with gr.Row(elem_classes="sc-tight"):
            accept = gr.Button(
                "Accept", variant="primary", size="sm", min_width=130, visible=False, elem_id="import-accept"
            )
            keep = gr.Button("Decide one by one", size="sm", min_width=130, visible=False, elem_id="import-keep")
            refuse = gr.Button(
                "Refuse", variant="stop", size="sm", min_width=130, visible=False, elem_id="import-refuse"
            )
    return Carry(what, link, file, steps, preview, accept, keep, refuse, gr.State(""))


def wanted(library: Library, digest: str, text: str, state: str) -> list[str] | None:
    """The artifacts that a link asks for; None for all published ones."""
    if digest:
        return [digest]
    if not text and not state:
        return None
    if state and state not in exchange.EXPORTABLE:
        return []
    states = [state] if state else ["published"]
    return [row.digest for row in library.index.artifacts(states=states, text=text or None, limit=MOST)]


def wire(
    tab: Carry, page: Page, search: gr.Textbox, state: gr.Dropdown, chosen: gr.State, opened: list[Any]
) -> list[Any]:
    """Returns the events after which the library holds something else."""

    def offer(what: str, text: str, state: str, digest: str, request: gr.Request) -> Html:
        library, query = page.engine.library, {}
        try:
            page.who(request)
            if what == ONE and not digest:
                raise UsageError("choose an artifact in the list first")
            if what == ONE:
                query = {"digest": digest}
            elif what == LISTED:
                query = {"text": (text or "").strip(), "state": "" if state == "Any state" else state}
                query = {name: value for name, value in query.items() if value}
            if query or what == ONE:
                digests = wanted(library, query.get("digest", ""), query.get("text", ""), query.get("state", ""))
                rows = [library.artifact(name) for name in digests or ()]
                rows = [row for row in rows if row.state in exchange.EXPORTABLE]
                count, size = len(rows), sum(row.size_bytes for row in rows)
            else:
                ((count, size),) = library.index.query(
                    "SELECT count(*), coalesce(sum(size_bytes), 0) FROM artifact WHERE state = 'published'"
                )
        except ScionError as error:
            return fault(error)
        return show.link(page.settings.root_path.rstrip("/"), count, size, query)

    def look(path: str | None, request: gr.Request) -> list[Any]:
        if not path:
            return _step(0)
        try:
            page.who(request, Right.ADMIN)
            preview = exchange.preview_bundle(page.engine.library, Path(path))
        except Denied as error:
            return _step(0, fault(error))
        except ScionError as error:
            return _step(0, show.refused(type(error).__name__, str(error)))
        if not preview.new:
            return _step(1, join([done("All of it is here already: there is nothing to import."), show.found(preview)]))
        return _step(2, show.found(preview), path=path, new=len(preview.new))

    def land(publish: bool) -> Any:
        def go(path: str, request: gr.Request) -> list[Any]:
            library = page.engine.library
            try:
                person = page.who(request, Right.ADMIN)
                if not path:
                    raise UsageError("pick a file first")
                landed = exchange.import_bundle(library, Path(path), _keyed, actor=person.name)
                if publish:
                    library.accept_import(landed, person.name)
            except Denied as error:
                return _step(0, fault(error))
            except ScionError as error:
                return _step(0, show.refused(type(error).__name__, str(error)))
            said = words.plural(len(landed), "artifact is", "artifacts are")
            if publish:
                return _step(0, done(f"Accepted: {said} in the library and may be grafted."))
            return _step(0, done(f"{said} here as “imported”. Choose one in the list to accept or refuse it."))

        return go

    def refuse(path: str, request: gr.Request) -> list[Any]:
        try:
            page.who(request, Right.ADMIN)
        except ScionError as error:
            return _step(0, fault(error))
        return _step(0, done("Refused: nothing of the bundle came into the library."))

    given = [tab.what, search, state, chosen]
    for event in (*opened, tab.what.input, search.submit, search.blur, state.change, chosen.change):
        event(offer, given, [tab.link], **in_turn("export", "always_last"))
    tab.file.upload(look, [tab.file], tab.shown, **in_turn("import"))
    tab.file.clear(lambda: _step(0), None, tab.shown, **in_turn("import"))
    tab.refuse.click(refuse, [tab.path], tab.shown, **in_turn("import"))
    return [
        tab.accept.click(land(True), [tab.path], tab.shown, **in_turn("import")),
        tab.keep.click(land(False), [tab.path], tab.shown, **in_turn("import")),
    ]


def _keyed(text: str) -> tuple[str, int]:
    return canonical_key(text), CANONICAL_VERSION


def _step(at: int, shown: Html | None = None, *, path: str = "", new: int = 0) -> list[Any]:
    decide = bool(path)
    return [
        gr.skip() if decide else None,  # another file can be picked as soon as this one is done with
        show.steps(at),
        shown if shown is not None else Html(""),
        gr.update(visible=decide, value=f"Accept {words.plural(new, 'artifact')}"),
        gr.update(visible=decide, value="Decide one by one"),
        gr.update(visible=decide, value="Refuse"),
        path,
    ]
