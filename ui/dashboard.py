"""The Dashboard tab: what the library saved, what was decided, what it holds. Each figure with its data as CSV."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import gradio as gr

from core.calibrations import calibration_path
from core.evaluate.calibrating import read_report
from core.evaluate.last import read_last
from library.errors import ScionError
from ui import plots
from ui.access import Right
from ui.page import PRIVATE, Page, fault, panel
from ui.period import CHOICES, DATES, USUAL, Period, period
from ui.render import figures

TITLES = {
    "saved": "Tokens and seconds saved", "verdicts": "Verdicts of the gate", "hits": "Hit rate",
    "review": "Review, day by day", "artifacts": "Artifacts by state, now", "reviewers": "Decisions by reviewer",
    "labels": "Labels of pairs", "agreement": "Do reviewers agree?",
    "threshold": "The gate at every threshold, last calibration",
    "experiment": "Near-misses: the last experiment",
}  # fmt: skip
HINTS = {
    "saved": "The first graft draws the first bar.", "verdicts": "Ask the library something.",
    "hits": "Ask the library something.", "artifacts": "Approve an attempt.", "review": "Decide on an attempt.",
    "agreement": "Needs attempts that two people judged (SCION_SECOND_APPROVER).",
    "reviewers": "Decide on an attempt.", "labels": "Label a pair in the graft lab.",
    "threshold": "Run evaluate calibrate --labels, or with --pairs.",
    "experiment": "Run evaluate near-miss.",
}  # fmt: skip
NAMES = tuple(TITLES)


@dataclass(frozen=True)
class Dashboard:
    span: gr.Radio
    dates: gr.Row
    first: gr.Textbox
    last: gr.Textbox
    refresh: gr.Button
    tiles: gr.HTML
    sheets: dict[str, gr.Column]
    heads: dict[str, gr.HTML]
    plots: dict[str, gr.Plot]
    blanks: gr.HTML

    @property
    def period(self) -> list[Any]:
        return [self.span, self.first, self.last]

    @property
    def whole(self) -> list[Any]:
        return [self.dates, self.tiles, *self.sheets.values(), *self.heads.values(), *self.plots.values(), self.blanks]


def build(page: Page) -> Dashboard:
    """A figure that has nothing to draw takes no place of its own: all of these stand in one list at the end."""
    sheets: dict[str, gr.Column] = {}
    heads: dict[str, gr.HTML] = {}
    drawn: dict[str, gr.Plot] = {}
    with gr.Row(elem_classes="sc-row sc-between sc-controls"):
        span = gr.Radio(list(CHOICES), value=USUAL, label="Range", container=False, elem_id="dashboard-range")
        with gr.Row(visible=False, elem_classes="sc-tight sc-dates") as dates:
            first = _day("From", "dashboard-first")
            last = _day("To", "dashboard-last")
        refresh = gr.Button("Refresh", size="sm", elem_classes="sc-grow-none", elem_id="dashboard-refresh")
    tiles = panel(elem_id="dashboard-tiles")
    with gr.Row(elem_classes="sc-figures"):
        for name in NAMES:
            with gr.Column(elem_classes="sc-sheet sc-figure", visible=False) as sheet:
                heads[name] = panel(figures.title(TITLES[name], name, page.settings.root_path, period(USUAL).query))
                drawn[name] = gr.Plot(show_label=False, elem_id=f"figure-{name}")
            sheets[name] = sheet
    blanks = panel(elem_id="dashboard-blanks")
    return Dashboard(span, dates, first, last, refresh, tiles, sheets, heads, drawn, blanks)


def _day(label: str, elem_id: str) -> gr.Textbox:
    return gr.Textbox(
        label=label, placeholder="YYYY-MM-DD", max_length=10, min_width=120, elem_classes="sc-day", elem_id=elem_id
    )


def wire(tab: Dashboard, page: Page, opened: list[Any]) -> None:
    def fill(choice: str, first: str, last: str, request: gr.Request) -> list[Any]:
        dated = gr.update(visible=choice == DATES)
        try:
            page.who(request, Right.VIEW)
            span = period(choice, first, last)
            numbers = page.engine.library.statistics(since=span.since, until=span.until)
            tables = data(page, numbers, span)
            counts = page.engine.library.review_counts()
        except ScionError as error:
            return [dated, fault(error), *[gr.skip()] * (3 * len(NAMES) + 1)]
        charts = {name: plots.figure(tables[name]) for name in NAMES}
        return [
            dated,
            figures.tiles(numbers, counts),
            *[gr.update(visible=chart is not None) for chart in charts.values()],
            *[figures.title(TITLES[name], name, page.settings.root_path, span.query) for name in NAMES],
            *charts.values(),
            figures.blanks([(TITLES[name], HINTS[name]) for name, chart in charts.items() if chart is None]),
        ]

    days = [event for field in (tab.first, tab.last) for event in (field.submit, field.blur)]
    gr.on(  # one listener: of several, an older answer could land on a newer one
        [*opened, tab.refresh.click, tab.span.change, *days],
        fill,
        tab.period,
        tab.whole,
        trigger_mode="always_last",
        **PRIVATE,
    )


def data(page: Page, numbers: Any, span: Period) -> dict[str, plots.Table]:
    """The data of every figure, by name."""
    labels = [label for label in page.engine.library.labels() if span.holds(label.created)]
    return {
        "saved": plots.saved(numbers),
        "verdicts": plots.verdicts(numbers),
        "artifacts": plots.holdings(numbers),
        "labels": plots.labels(labels),
        "reviewers": plots.reviewers(numbers),
        "review": plots.reviews(numbers),
        "agreement": plots.agreement(numbers),
        "hits": plots.hits(numbers),
        "threshold": plots.thresholds(read_report(calibration_path(page.settings))),
        "experiment": plots.experiment(read_last(page.settings.library)),
    }
