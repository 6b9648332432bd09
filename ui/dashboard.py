"""The Dashboard tab: what the library saved, what was decided, what it holds. Each figure with its data as CSV."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import gradio as gr

from core.calibrations import calibration_path
from core.evaluate.calibrating import read_report
from core.evaluate.last import read_last
from library.errors import ScionError
from ui import plots
from ui.access import Right
from ui.page import Page, fault, panel
from ui.render import figures, parts

RANGES = {"7 days": 7, "30 days": 30, "90 days": 90, "All": 0}
TITLES = {
    "saved": "Tokens and seconds saved", "verdicts": "Verdicts of the gate", "hits": "Hit rate",
    "artifacts": "Artifacts by state", "review": "Review, day by day", "agreement": "Do reviewers agree?",
    "reviewers": "Decisions by reviewer", "labels": "Labels of pairs",
    "threshold": "The gate at every threshold", "experiment": "Near-misses: the last experiment",
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
    refresh: gr.Button
    tiles: gr.HTML
    plots: dict[str, gr.Plot]
    blanks: dict[str, gr.HTML]
    heads: dict[str, gr.HTML]

    @property
    def whole(self) -> list[Any]:
        return [self.tiles, *self.plots.values(), *self.blanks.values(), *self.heads.values()]


def build(page: Page) -> Dashboard:
    drawn: dict[str, gr.Plot] = {}
    blanks: dict[str, gr.HTML] = {}
    heads: dict[str, gr.HTML] = {}
    with gr.Row(elem_classes="sc-row sc-between"):
        span = gr.Radio(list(RANGES), value="30 days", label="Range", container=False, elem_id="dashboard-range")
        refresh = gr.Button("Refresh", size="sm", elem_classes="sc-grow-none", elem_id="dashboard-refresh")
    tiles = panel(elem_id="dashboard-tiles")
    with gr.Row(elem_classes="sc-figures"):
        for name in NAMES:
            with gr.Column(elem_classes="sc-sheet"):
                heads[name] = panel(figures.title(TITLES[name], name, page.settings.root_path))
                drawn[name] = gr.Plot(show_label=False, visible=False, elem_id=f"figure-{name}")
                blanks[name] = panel(parts.empty("Nothing yet", HINTS[name]))
    return Dashboard(span, refresh, tiles, drawn, blanks, heads)


def wire(tab: Dashboard, page: Page, opened: list[Any]) -> None:
    def fill(span: str, request: gr.Request) -> list[Any]:
        try:
            page.who(request, Right.VIEW)
            numbers = page.engine.library.statistics(since=since(span))
            tables = data(page, numbers)
            counts = page.engine.library.review_counts()
        except ScionError as error:
            return [fault(error), *[gr.skip()] * (3 * len(NAMES))]
        charts = [plots.figure(tables[name]) for name in NAMES]
        return [
            figures.tiles(numbers, counts),
            *[gr.update(value=chart, visible=chart is not None) for chart in charts],
            *[gr.update(visible=chart is None) for chart in charts],
            *[figures.title(TITLES[name], name, page.settings.root_path, span) for name in NAMES],
        ]

    options: dict[str, Any] = {"api_visibility": "private", "show_progress": "hidden"}
    for event in [*opened, tab.refresh.click, tab.span.change]:
        event(fill, [tab.span], tab.whole, **options)


def since(span: str) -> str:
    """The start of a range of days as RFC 3339 text; empty for all."""
    days = RANGES.get(span, 30)
    return (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.%fZ") if days else ""


def data(page: Page, numbers: Any) -> dict[str, plots.Table]:
    """The data of every figure, by name."""
    return {
        "saved": plots.saved(numbers),
        "verdicts": plots.verdicts(numbers),
        "artifacts": plots.holdings(numbers),
        "labels": plots.labels(page.engine.library.labels()),
        "reviewers": plots.reviewers(numbers),
        "review": plots.reviews(numbers),
        "agreement": plots.agreement(numbers),
        "hits": plots.hits(numbers),
        "threshold": plots.thresholds(read_report(calibration_path(page.settings))),
        "experiment": plots.experiment(read_last(page.settings.library)),
    }
