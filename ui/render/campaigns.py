"""Lists of problems that were queued together: how far one is, its rows, and the lists of a person."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ui.render import parts, words
from ui.render.html import Child, Html, div, join, span, tag

if TYPE_CHECKING:
    from core.jobs import JobView
    from library.campaigns import Campaign

SHOWN = 40  # rows of a list that are shown at once, around the one that runs
_OVER = ("done", "failed", "cancelled")


def status(item: Campaign) -> str:
    """One word for a whole list: what a person would say it does."""
    if item.active:
        return "running"
    if item.resumable:
        return "paused"
    return "cancelled" if item.count("cancelled") else "done"


def progress(item: Campaign) -> Html:
    """How far a list is, by state."""
    over = item.count(*_OVER)
    marks = [
        span("sc-nowrap", parts.state(state), " ", tag("b", words.count(number))) for state, number in _ordered(item)
    ]
    hint = None
    if not item.active and item.count("interrupted"):
        hint = parts.notice("warn", "The server stopped meanwhile", "Resume goes on where it stood.")
    elif item.active and item.count("paused"):
        hint = span("sc-muted", "what runs goes on to its end")
    return div(
        "sc-campaign",
        div(
            "sc-line",
            span("sc-strong", words.clip(item.name, 40) or "list"),
            span("sc-muted", f"{over} of {item.total} over"),
            span("sc-muted sc-push", words.when(item.created)),
        ),
        parts.bar(over, item.total, "problems done"),
        div("sc-line", *marks),
        hint,
    )


def rows(views: Sequence[JobView], right: Mapping[str, str], chosen: str = "") -> Html:
    """The problems of a list, in its order; `right` is what the comparison with the reference found, by attempt."""
    if not views:
        return Html("")
    first = next((place for place, view in enumerate(views) if not view.over and view.state != "paused"), 0)
    start = max(0, min(first - 3, len(views) - SHOWN))
    body: list[tuple[str, Sequence[Child]]] = []
    for place, view in list(enumerate(views, 1))[start : start + SHOWN]:
        found = right.get(str(view.result.get("chosen") or ""), "")
        marks = [parts.state(view.state)]
        if found in ("pass", "fail"):
            marks = [parts.badge({"pass": "right", "fail": "wrong"}[found], {"pass": "✓", "fail": "✕"}[found], found)]
        answer = words.clip(str(view.result.get("answer") or ""), 16) or "–"
        cells: list[Child] = [str(place), words.clip(str(view.payload.get("problem", "")), 80), answer, join(marks)]
        body.append((view.id, cells))
    columns = [("#", "sc-num"), ("Problem", "sc-grow"), ("Answer", ""), ("State", "")]
    table = parts.table(columns, body, chosen=chosen, caption="Problems of the list")
    if len(views) <= SHOWN:
        return table
    return join([table, div("sc-muted sc-small", f"{start + 1}–{start + len(body)} of {len(views)}")])


def listed(items: Sequence[Campaign], chosen: str = "") -> Html:
    """A person's lists, newest first; nothing where there is only the one that is shown."""
    if len(items) < 2:
        return Html("")
    body: list[tuple[str, Sequence[Child]]] = [
        (
            item.id,
            [
                words.clip(item.name, 40) or "list",
                f"{item.count(*_OVER)} of {item.total}",
                parts.state(status(item)),
                words.when(item.created),
            ],
        )
        for item in items
    ]
    columns = [("List", "sc-grow"), ("Over", "sc-num"), ("State", ""), ("When", "sc-nowrap")]
    return parts.table(columns, body, chosen=chosen, caption="My lists")


def _ordered(item: Campaign) -> list[tuple[str, int]]:
    order = ("running", "queued", "paused", "interrupted", "done", "failed", "cancelled")
    return sorted(item.states, key=lambda pair: order.index(pair[0]) if pair[0] in order else len(order))
