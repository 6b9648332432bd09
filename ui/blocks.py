"""Puts the five tabs on one page, and wires what goes from one to another. Each tab knows only itself."""

from __future__ import annotations

from typing import Any

import gradio as gr

from library.errors import ScionError
from ui import api, book_events, books, dashboard, lab, review, shelf, solve
from ui.page import PRIVATE, Page, in_turn, panel
from ui.render import figures
from ui.render.html import Html

TABS = ("solve", "review", "library", "lab", "dashboard")
# A fixed secret keeps a job's id readable after the server restarts; it is a reference, not a right.
_JOB_KEY, _JOB_SECRET = "scion-job", "scion-browser-state"


def build(page: Page) -> gr.Blocks:
    """The page. Nothing in it is read from the library before somebody who may see it asks."""
    with gr.Blocks(title="Scion", analytics_enabled=False, fill_width=True, delete_cache=(3600, 86_400)) as demo:
        job = gr.BrowserState("", storage_key=_JOB_KEY, secret=_JOB_SECRET)
        lab_job = gr.State("")
        top = panel(figures.brand(), elem_id="top")
        with gr.Tabs(elem_id="tabs") as tabs:
            with gr.Tab("Solve", id="solve") as solve_tab:
                solving = solve.build(page)
            with gr.Tab("Review", id="review") as review_tab:
                reviewing = review.build(page)
            with gr.Tab("Library", id="library") as shelf_tab, gr.Tabs(elem_id="library-parts") as library_parts:
                with gr.Tab("Artifacts", id="artifacts"):
                    holding = shelf.build(page)
                with gr.Tab("Books", id="books") as books_tab:
                    reading = books.build()
            with gr.Tab("Graft lab", id="lab") as lab_tab:
                trying = lab.build(page)
            with gr.Tab("Dashboard", id="dashboard") as dashboard_tab:
                counting = dashboard.build(page)

        api.add(page)  # first: a handler of the same name would take the endpoint's name

        def head(request: gr.Request) -> Html:
            try:
                person = page.who(request)
                library = page.engine.library
                held = dict(library.statistics().artifacts).get("published", 0)
                counts = library.review_counts()
            except ScionError:
                return figures.brand()
            return figures.top(
                page.settings.model,
                held,
                counts.open,
                person.name,
                person.role,
                root=page.settings.root_path.rstrip("/"),
                login=not page.access.open(),
            )

        def arrive(request: gr.Request) -> tuple[Any, Any, Any, Any, Any]:
            """A link such as `?tab=review&id=a1b2` or `?tab=library&book=NAME`: which tab, and what is chosen in it."""
            asked = dict(request.query_params) if request else {}
            tab, chosen = str(asked.get("tab", "")), str(asked.get("id", ""))[:200]
            book = str(asked.get("book", ""))[:200]
            return (
                gr.Tabs(selected=tab) if tab in TABS else gr.skip(),
                (chosen, 0) if tab == "review" and chosen else gr.skip(),
                chosen if tab == "library" and chosen else gr.skip(),
                gr.Tabs(selected="books") if tab == "library" and book else gr.skip(),
                book if tab == "library" and book else gr.skip(),
            )

        solve.wire(solving, page, job, demo, [solve_tab.select])
        places = [tabs, reviewing.seen, holding.chosen, library_parts, reading.chosen]
        arrived = demo.load(arrive, None, places, **PRIVATE)
        review.wire(reviewing, page, [review_tab.select, arrived.then])
        shelf.wire(holding, page, [shelf_tab.select, arrived.then])
        book_events.wire(reading, page, [books_tab.select, arrived.then])
        lab.wire(trying, page, lab_job, [lab_tab.select])
        dashboard.wire(counting, page, [dashboard_tab.select])
        tabs_entered = [review_tab.select, shelf_tab.select, dashboard_tab.select]
        changed = [solving.evidence.change, reviewing.head.change, reviewing.message.change]
        gr.on([demo.load, *tabs_entered, *changed], head, None, [top], trigger_mode="always_last", **PRIVATE)

        solving.review.click(
            lambda attempt: (gr.Tabs(selected="review"), (attempt, 0)),
            [solving.attempt],
            [tabs, reviewing.seen],
            **in_turn("review"),
        ).then(
            review.filler(page),
            [reviewing.filter, reviewing.search, reviewing.seen],
            reviewing.whole,
            **in_turn("review", "always_last"),
        )
        holding.graft.click(
            lambda chosen: (gr.Tabs(selected="lab"), chosen), [holding.chosen], [tabs, trying.chosen], **in_turn("lab")
        ).then(lab.opener(page), [trying.chosen], trying.opened, **in_turn("lab", "always_last"))

    return demo  # Gradio has no types
