"""The dashboard's figures and their data as CSV, from plain numbers. Knows no Gradio and reads no library.

A figure and its CSV come from the same `Table`, so that they cannot disagree.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from library.statistics import Statistics
    from library.tables import PairLabel

# Middle tones that can be told apart on a light and on a dark ground; text takes its colour from the page's style.
GOOD, WARN, BAD, ACCENT, NONE = "#3f9e6c", "#c98a1b", "#cf5a6d", "#2f93a8", "#8b8f8c"
_COLOURS = {
    "graft": GOOD, "transfer": WARN, "refuse": BAD, "safe": GOOD, "unsafe": BAD, "unsure": NONE,
    "artifacts": ACCENT, "approved": GOOD, "rejected": BAD, "flagged": WARN, "agreed": GOOD, "disagreed": BAD,
}  # fmt: skip
_LYING = ("artifacts", "reviewers", "labels", "agreement")  # by name, not by day
_GRID = "rgba(128,132,130,0.22)"


@dataclass(frozen=True)
class Table:
    """A figure's data: `columns` names each cell of each row."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]

    def csv(self) -> str:
        """RFC 4180 text. A cell that a spreadsheet would take for a formula is quoted with an apostrophe."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\r\n")
        writer.writerow(self.columns)
        writer.writerows([[_inert(cell) for cell in row] for row in self.rows])
        return out.getvalue()


def saved(numbers: Statistics) -> Table:
    """Tokens and seconds saved by day, and their running totals."""
    rows, tokens, seconds = [], 0, 0.0
    for day in numbers.days:
        tokens += day.tokens_saved
        seconds += day.seconds_saved
        rows.append((day.date, day.tokens_saved, round(day.seconds_saved, 3), tokens, round(seconds, 3)))
    return Table(
        "saved",
        "Saved by grafts",
        ("date", "tokens_saved", "seconds_saved", "tokens_total", "seconds_total"),
        tuple(rows),
    )


def verdicts(numbers: Statistics) -> Table:
    """Asks by verdict and day; `wrong` are grafts flagged as wrong."""
    rows = tuple((d.date, d.grafts, d.transfers, d.refusals, d.wrong) for d in numbers.days)
    return Table("verdicts", "Verdicts", ("date", "graft", "transfer", "refuse", "wrong"), rows)


def labels(items: Sequence[PairLabel]) -> Table:
    """How people judged pairs of problems, by where the label comes from."""
    counts: dict[str, dict[str, int]] = {}
    for item in items:
        counts.setdefault(item.source or "unnamed", {"safe": 0, "unsafe": 0, "unsure": 0})[item.label] += 1
    rows = tuple((source, n["safe"], n["unsafe"], n["unsure"]) for source, n in sorted(counts.items()))
    return Table("labels", "Labels of pairs", ("source", "safe", "unsafe", "unsure"), rows)


def thresholds(report: dict[str, Any] | None) -> Table:
    """False accepts and coverage of the gate at every threshold, from the last calibration's report."""
    columns = tuple(
        "threshold wrong different wrong_low wrong_high covered same covered_low covered_high".split()  # noqa: SIM905
    )
    rows = tuple(tuple(point[name] for name in columns) for point in (report or {}).get("curve", ()))
    return Table("threshold", "The gate at every threshold", columns, rows)


def experiment(report: dict[str, Any] | None) -> Table:
    """Wrong and copied answers to near-misses and wrong ones to restatements, by arm, of the last experiment."""
    columns = ("arm", "of", "count", "n", "low", "high", "model", "policy", "created")
    rows: list[tuple[Any, ...]] = []
    about = tuple((report or {}).get(name, "") for name in ("model", "policy", "created"))
    for group, shares in (("near_misses", ("wrong", "copied")), ("restatements", ("wrong",))):
        for arm in report[group]["arms"] if report else ():
            for share in shares:
                found, what = arm[share], f"{group.replace('_', '-')}: {share}"
                rows.append((arm["arm"], what, found["hits"], found["n"], *found["clopper_pearson"], *about))
    return Table("experiment", "The last near-miss experiment", columns, tuple(rows))


def holdings(numbers: Statistics) -> Table:
    """Artifacts by state."""
    return Table("artifacts", "Artifacts by state", ("state", "artifacts"), tuple(numbers.artifacts))


def reviewers(numbers: Statistics) -> Table:
    rows = tuple((r.name, r.approved, r.rejected) for r in numbers.reviewers)
    return Table("reviewers", "Decisions by reviewer", ("reviewer", "approved", "rejected"), rows)


def reviews(numbers: Statistics) -> Table:
    """Decisions by day: the throughput of review."""
    rows = tuple((d.date, d.approved, d.rejected, d.flagged, d.reviewers) for d in numbers.review_days)
    return Table("review", "Decisions by day", ("date", "approved", "rejected", "flagged", "reviewers"), rows)


def agreement(numbers: Statistics) -> Table:
    """For each two reviewers, how often their words on one attempt say the same."""
    rows = tuple((f"{pair.one} & {pair.other}", pair.agreed, pair.disagreed) for pair in numbers.agreements)
    return Table("agreement", "Agreement of reviewers", ("reviewers", "agreed", "disagreed"), rows)


def hits(numbers: Statistics) -> Table:
    """Asks by day and the share of them that a graft answered."""
    rows = tuple((d.date, d.asks, d.grafts, round(d.grafts / d.asks, 4)) for d in numbers.days if d.asks)
    return Table("hits", "Hit rate", ("date", "asks", "grafts", "hit_rate"), rows)


def figure(table: Table) -> Any:
    """The Plotly figure of one of the tables above; None where there is nothing to draw."""
    if not table.rows:
        return None
    import plotly.graph_objects as go

    chart = go.Figure()
    dated = table.columns[0] == "date" and len(table.rows) > 8  # a few days are named one by one
    across = [row[0] for row in table.rows]
    if table.name == "threshold":
        _draw_thresholds(chart, table)
    elif table.name == "experiment":
        _draw_experiment(chart, table)
    elif table.name == "saved":
        bars = {"x": across, "y": [row[1] for row in table.rows], "marker_color": ACCENT, "marker_line_width": 0}
        chart.add_bar(name="tokens a day", opacity=0.45, **bars)
        chart.add_scatter(name="tokens in total", x=across, y=[row[3] for row in table.rows], line_color=ACCENT)
        chart.add_scatter(
            name="seconds in total",
            x=across,
            y=[row[4] for row in table.rows],
            line={"color": WARN, "dash": "dot"},
            yaxis="y2",
        )
        chart.update_layout(
            yaxis_title="tokens",
            yaxis2={"title": "seconds", "overlaying": "y", "side": "right", "showgrid": False, "rangemode": "tozero"},
        )
    elif table.name == "hits":
        chart.add_bar(name="asks", x=across, y=[row[1] for row in table.rows], marker_color=NONE, opacity=0.35)
        share = [row[3] for row in table.rows]
        chart.add_scatter(name="hit rate", x=across, y=share, line_color=GOOD, mode="lines+markers", yaxis="y2")
        right = {"overlaying": "y", "side": "right", "showgrid": False, "range": [0, 1.02], "tickformat": ".0%"}
        chart.update_layout(yaxis_title="asks", yaxis2={"title": "hit rate", **right})
    else:
        _draw_counts(chart, table, across)
    lying = table.name in _LYING
    chart.update_layout(
        height=92 + 40 * len(across) if lying else 260,
        margin={"l": 52, "r": 52 if table.name in ("saved", "hits") else 16, "t": 8, "b": 36},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
        font={"size": 12, "color": NONE, "family": "system-ui, sans-serif"},
        legend={"orientation": "h", "y": 1.03, "yanchor": "bottom", "x": 0, "traceorder": "normal"},
        bargap=0.25 if table.name == "experiment" else 0.4 if lying else 0.45 if len(across) > 4 else 0.8,
        hovermode="x unified" if table.columns[0] == "date" else "closest",
        dragmode=False,
    )
    across_axis, counted = (
        (chart.update_yaxes, chart.update_xaxes) if lying else (chart.update_xaxes, chart.update_yaxes)
    )
    across_axis(type="date" if dated else "category", showgrid=False, linecolor=_GRID, automargin=True)
    counted(gridcolor=_GRID, zerolinecolor=_GRID, rangemode="tozero", nticks=6)
    if lying:
        chart.update_yaxes(autorange="reversed")  # the first row on top
    elif dated:
        chart.update_xaxes(tickformat="%d %b", hoverformat="%Y-%m-%d")
    elif table.columns[0] == "date":
        chart.update_xaxes(tickvals=across, ticktext=[f"{date.fromisoformat(day):%d %b}" for day in across])
    if lying or table.name in ("verdicts", "hits", "review"):  # things that are counted: no half of one
        top = max((sum(cell for cell in row[1:] if isinstance(cell, int)) for row in table.rows), default=0)
        ticks = {"dtick": 1} if top <= 5 else {"tickformat": ",d"}
        chart.update_layout({"xaxis" if lying else "yaxis": ticks})
    return chart


def _draw_counts(chart: Any, table: Table, across: list[Any]) -> None:
    """One stack a row: upright for days, lying for names, which need the room to be read."""
    lying = table.name in _LYING
    for place, name in enumerate(table.columns[1:], 1):
        if name in _COLOURS:
            counts = [row[place] for row in table.rows]
            axes = {"x": counts, "y": across, "orientation": "h"} if lying else {"x": across, "y": counts}
            chart.add_bar(name=name, marker_color=_COLOURS[name], marker_line_width=0, **axes)
    chart.update_layout(barmode="stack", showlegend=len(table.columns) > 2)


def _draw_thresholds(chart: Any, table: Table) -> None:
    across = [f"{row[0]:.2f}" for row in table.rows]
    for name, first, colour in (("wrong grafts", 1, BAD), ("coverage", 5, GOOD)):
        shares = [100 * row[first] / row[first + 1] if row[first + 1] else None for row in table.rows]
        low, high = ([100 * row[first + k] for row in table.rows] for k in (2, 3))
        chart.add_scatter(
            name=f"{name}, n = {table.rows[0][first + 1]}",
            x=across,
            y=shares,
            line_color=colour,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [h - (s or 0) for h, s in zip(high, shares, strict=True)],
                "arrayminus": [(s or 0) - x for x, s in zip(low, shares, strict=True)],
                "thickness": 1,
            },
        )
    chart.update_layout(yaxis_title="% of the pairs, exact 95 % intervals", xaxis_title="least score")


def _draw_experiment(chart: Any, table: Table) -> None:
    colours = {"near-misses: wrong": BAD, "near-misses: copied": WARN, "restatements: wrong": NONE}
    for name, colour in colours.items():
        mine = [row for row in table.rows if row[1] == name and row[3]]
        if not mine:
            continue
        shares = [100 * row[2] / row[3] for row in mine]
        chart.add_bar(
            name=f"{name}, n = {mine[0][3]}",
            x=[row[0].replace("_", " ") for row in mine],
            y=shares,
            marker_color=colour,
            marker_line_width=0,
            error_y={
                "type": "data",
                "symmetric": False,
                "array": [100 * row[5] - y for row, y in zip(mine, shares, strict=True)],
                "arrayminus": [y - 100 * row[4] for row, y in zip(mine, shares, strict=True)],
                "thickness": 1,
                "color": NONE,
            },
        )
    model, policy, created = table.rows[0][6:]
    chart.update_layout(
        barmode="group",
        yaxis_title="%, exact 95 % intervals",
        xaxis_title=f"{model}<br>gate: {policy}, {created[:10]}",
        showlegend=True,
    )


def _inert(cell: Any) -> Any:
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in ("=", "+", "-", "@", "\t", "\r") else cell
