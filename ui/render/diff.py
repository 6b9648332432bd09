"""Two problems side by side with the gate's edits marked. Knows spans, not how the gate found them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ui.render.html import Html, div, join, span, tag
from ui.render.parts import badge, empty, verdict

_UNSCORED = ("strict", "edits")  # policies that decide by rules; the score is the calibrated one's


class EditLike(Protocol):
    """What is needed of a `core.gate.verdict.Edit`."""

    @property
    def kind(self) -> str: ...
    @property
    def stored(self) -> str: ...
    @property
    def query(self) -> str: ...
    @property
    def stored_span(self) -> tuple[int, int]: ...
    @property
    def query_span(self) -> tuple[int, int]: ...
    @property
    def explained(self) -> bool: ...
    @property
    def reason(self) -> str: ...


def marked(text: str, spans: Sequence[tuple[tuple[int, int], bool, str]], side: str) -> Html:
    """The text with the spans marked: (span, explained, reason). Overlaps and spans outside are cut, never repeated."""
    out: list[Html | str] = []
    at = 0
    for (start, end), explained, reason in sorted(spans, key=lambda item: item[0]):
        start, end = max(at, min(start, len(text))), max(at, min(end, len(text)))
        out.append(text[at:start])
        tone = "explained" if explained else side
        shown = text[start:end] or "‸"
        out.append(tag("mark", shown, class_=f"sc-edit sc-e-{tone}", title=reason or None))
        at = max(at, end)
    out.append(text[at:])
    return join(out)


def comparison(stored: str, query: str, edits: Sequence[EditLike]) -> Html:
    """Both texts, differences marked: amber where the meaning changes, green where it is known to stay."""
    left = [(edit.stored_span, edit.explained, edit.reason) for edit in edits]
    right = [(edit.query_span, edit.explained, edit.reason) for edit in edits]
    return div(
        "sc-diff",
        div("sc-diff-side", div("sc-label", "Stored problem"), div("sc-text", marked(stored, left, "removed"))),
        div("sc-diff-side", div("sc-label", "Query"), div("sc-text", marked(query, right, "added"))),
    )


def edit_list(edits: Sequence[EditLike]) -> Html:
    """The edits as a list with the gate's reason for each."""
    if not edits:
        return Html("")
    items = []
    for edit in edits:
        sign = badge("keeps the meaning", "✓", "pass") if edit.explained else badge("changes it", "≠", "unknown")
        items.append(
            tag(
                "li",
                sign,
                " ",
                tag("code", edit.stored or "∅", class_="sc-code"),
                " → ",
                tag("code", edit.query or "∅", class_="sc-code"),
                span("sc-muted", f"  {edit.reason or edit.kind}"),
            )
        )
    return tag("ul", *items, class_="sc-edits")


def judgement(name: str, policy: str, reasons: Sequence[str], score: float | None, *, unsafe: bool = False) -> Html:
    """The verdict with its reasons and the policy that gave it."""
    if not name:
        return empty("No judgement yet", "Choose an artifact and write a query.")
    facts = [span("sc-muted", f"policy {policy}")]
    if score is not None and policy not in _UNSCORED:
        facts.append(span("sc-muted", f"score {score:.3f}"))
    if unsafe:
        facts.append(badge("unsafe: the gate is off", "!", "fail"))
    return div(
        "sc-judgement",
        div("sc-line", verdict(name), *facts),
        tag("ul", *[tag("li", reason) for reason in reasons], class_="sc-reasons") if reasons else None,
    )
