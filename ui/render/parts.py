"""The page's one visual language: verdicts, evidence, states, hashes, tables, notices. Knows no engine and no store.

Every sign has a shape and a word besides its colour, so that it can be told apart without seeing colours.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ui.render import words
from ui.render.html import Child, Html, div, join, span, tag

_VERDICTS = {"GRAFT": ("◆", "graft"), "TRANSFER": ("◇", "transfer"), "REFUSE": ("⊘", "refuse")}
_VERDICT_MEANS = {
    "GRAFT": "Same problem: the stored answer is replayed from the stored state.",
    "TRANSFER": "Same family, other values: the state serves as a worked example; the answer is new and unverified.",
    "REFUSE": "Not shown to be the same problem: solved fresh.",
}
_EVIDENCE = {
    "pass": ("✓", "pass", "pass"),
    "fail": ("✕", "fail", "fail"),
    "unknown": ("?", "unknown", "unknown"),
    "not_applicable": ("–", "n/a", "none"),
}
# state -> (sign, tone)
_STATES = {
    "queued": ("◌", "none"), "running": ("▸", "accent"), "paused": ("‖", "none"), "done": ("✓", "pass"),
    "failed": ("✕", "fail"), "cancelled": ("◼", "none"), "interrupted": ("!", "unknown"),
    "waiting": ("◌", "none"), "stop": ("✓", "pass"), "length": ("…", "unknown"), "skipped": ("–", "none"),
    "solved": ("✓", "pass"), "truncated": ("…", "unknown"),
    "none": ("–", "none"), "pending": ("◌", "accent"), "flagged": ("⚑", "unknown"),
    "approved": ("✓", "pass"), "rejected": ("✕", "fail"), "adjudicate": ("⇄", "fail"),
    "second": ("◔", "accent"), "awaiting": ("◔", "none"),
    "published": ("●", "pass"), "held": ("‖", "unknown"), "evicted": ("○", "none"),
    "quarantined": ("!", "fail"), "revoked": ("✕", "fail"), "imported": ("↓", "accent"),
    "building": ("▸", "accent"), "accepted": ("✓", "pass"), "missing": ("◌", "none"),
    "safe": ("✓", "pass"), "unsafe": ("✕", "fail"), "unsure": ("?", "unknown"),
    "byte-exact": ("≡", "pass"), "argmax-equal": ("≈", "unknown"), "divergent": ("≠", "fail"),
    "uncertified": ("?", "none"), "superseded": ("–", "none"),
}  # fmt: skip
_STATE_WORDS = {
    "length": "cut at budget",
    "stop": "finished",
    "superseded": "not needed",
    "none": "not in review",
    "adjudicate": "disagreement",
    "second": "one approval",
    "awaiting": "awaits another",
}


def badge(word: str, sign: str, tone: str, title: str = "") -> Html:
    return span(
        f"sc-badge sc-{tone}", tag("i", sign, class_="sc-sign", aria_hidden="true"), f" {word}", title=title or None
    )


def verdict(name: str) -> Html:
    """GRAFT, TRANSFER or REFUSE; anything else is shown as neutral text."""
    sign, tone = _VERDICTS.get(name, ("·", "none"))
    return span(
        f"sc-verdict sc-v-{tone}",
        tag("i", sign, class_="sc-sign", aria_hidden="true"),
        f" {name or 'no verdict'}",
        title=_VERDICT_MEANS.get(name),
    )


def outcome(name: str) -> Html:
    """The outcome of one check."""
    sign, word, tone = _EVIDENCE.get(name, ("?", name, "unknown"))
    return badge(word, sign, tone)


def state(name: str, title: str = "") -> Html:
    """The state of a job, stream, attempt, artifact, label or the exactness of a graft."""
    sign, tone = _STATES.get(name, ("·", "none"))
    return badge(_STATE_WORDS.get(name, name), sign, tone, title)


_COPY = Html(
    '<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true">'
    '<rect x="5.5" y="5.5" width="8" height="8" rx="1.5"/><path d="M10.5 5.5v-2a1 1 0 0 0-1-1h-6a1 1 0 0 0-1 1v6a1 1 0 '
    '0 0 1 1h2"/></svg>'
)


def digest(value: str | None, label: str = "digest") -> Html:
    """Short form with a copy button; the whole digest on hover and in the copied text."""
    if not value:
        return span("sc-muted", "–")
    return span(
        "sc-digest",
        tag("code", words.short_digest(value), title=value),
        tag(
            "button", _COPY, type="button", class_="sc-copy", data_copy=value, aria_label=f"Copy {label}", title="Copy"
        ),
    )


def code(value: str, title: str = "") -> Html:
    return tag("code", value, class_="sc-code", title=title or None)


def stat(label: str, value: Child, note: Child = None) -> Html:
    """One figure with its name."""
    worded = isinstance(value, str) and len(value) > 3 and not any(sign.isdigit() for sign in value)
    return div(
        "sc-stat",
        div("sc-stat-label", label),
        div("sc-stat-value sc-stat-word" if worded else "sc-stat-value", value),
        div("sc-stat-note", note) if note else None,
    )


def stats(*items: Html) -> Html:
    return div("sc-stats", *items)


def facts(rows: Iterable[tuple[str, Child]]) -> Html:
    """Names and values, one a line."""
    lines = [join([tag("dt", name), tag("dd", value)]) for name, value in rows]
    return tag("dl", *lines, class_="sc-facts")


def heading(title: str, note: Child = None) -> Html:
    return div("sc-heading", tag("h2", title), span("sc-muted", note) if note else None)


def empty(title: str, hint: Child = None) -> Html:
    """What a panel shows when there is nothing yet, and what to do about it."""
    return div("sc-empty", div("sc-empty-title", title), div("sc-muted", hint) if hint else None)


def notice(tone: str, title: Child, body: Child = None) -> Html:
    """`tone` is info, good, warn or bad. A bad one is announced to screen readers."""
    sign = {"info": "i", "good": "✓", "warn": "!", "bad": "✕"}.get(tone, "i")
    return div(
        f"sc-notice sc-n-{tone}",
        tag("i", sign, class_="sc-sign", aria_hidden="true"),
        div("sc-notice-body", tag("strong", title), tag("div", body) if body else None),
        role="alert" if tone == "bad" else "status",
    )


def bar(value: float, limit: float, label: str) -> Html:
    """A share of a whole; empty where the whole is unknown."""
    share = min(1.0, value / limit) if limit > 0 else 0.0
    return tag("progress", value=f"{share:.4f}", max="1", class_="sc-bar", aria_label=label)


def folded(title: str, body: Child) -> Html:
    return tag("details", tag("summary", title), div("sc-fold", body), class_="sc-details")


def pre(value: str) -> Html:
    """Text with its own line breaks. It can be scrolled, so it can be reached by the keyboard."""
    return tag("pre", value, class_="sc-pre", tabindex="0")


def table(
    columns: Sequence[tuple[str, str]],
    rows: Iterable[tuple[str, Sequence[Child]]],
    *,
    chosen: str = "",
    caption: str = "",
    pick: bool = True,
) -> Html:
    """A table whose rows can be chosen by click or Enter (`pick`); the row's key goes to the page's `pick` event.

    columns: (heading, class); rows: (key, cells).
    """
    head = tag("tr", *[tag("th", name, scope="col", class_=kind or None) for name, kind in columns])
    body = []
    for key, cells in rows:
        tds = []
        for number, (cell, (name, kind)) in enumerate(zip(cells, columns, strict=True)):
            shown: Child = cell
            if pick and number == 0:  # a real button: focus, Enter and screen readers work by themselves
                shown = tag(
                    "button", cell, type="button", class_="sc-rowbutton", aria_pressed=str(key == chosen).lower()
                )
            tds.append(tag("td", shown, class_=kind or None, data_name=name))
        body.append(
            tag("tr", *tds, data_key=key if pick else None, class_="sc-chosen" if pick and key == chosen else None)
        )
    return div(
        "sc-tablewrap",
        tag(
            "table",
            tag("caption", caption, class_="sc-hidden") if caption else None,
            tag("thead", head),
            tag("tbody", *body),
            class_="sc-table" + (" sc-pick" if pick else ""),
        ),
        tabindex="0",
        role="region",
        aria_label=caption or "table",
    )
