"""Bundles on the page: what would be exported, and what an import found. Takes rows and previews, asks nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ui.render import parts, words
from ui.render.html import Child, Html, div, join, span, tag

if TYPE_CHECKING:
    from library.exchange import Preview

SHOWN = 50


def link(root: str, count: int, size: int, query: dict[str, str]) -> Html:
    """The download of a bundle; a hint where there is nothing to put into one."""
    if not count:
        return parts.empty("Nothing to export", "Only published artifacts travel.")
    asked = f"?{urlencode(query)}" if query else ""
    said = f"Download {words.plural(count, 'artifact')}"
    return div(
        "sc-line",
        tag("a", said, href=f"{root}/bundle{asked}", download=True, class_="sc-linkbutton"),
        span("sc-muted", f"{words.bytes_(size)}, not signed"),
    )


def steps(at: int) -> Html:
    """Where one is: pick, verify, look, decide."""
    items = [
        tag("li", name, aria_current="step" if place == at else None, class_="sc-past" if place < at else None)
        for place, name in enumerate(("Pick a file", "Verified", "Accept or refuse"))
    ]
    return tag("ol", *items, class_="sc-steps")


def found(preview: Preview) -> Html:
    """A bundle beside this library: who signed it, what is new, what is here already."""
    contents = preview.contents
    if contents.signed_by:
        signed = parts.badge("signed by a trusted key", "✓", "pass", contents.signed_by)
    elif contents.claimed_key:
        signed = parts.badge("signed by an unknown key", "?", "unknown", contents.claimed_key)
    else:
        signed = parts.badge("not signed", "–", "none")
    size = sum(item.size for item in preview.new)
    body: list[tuple[str, Sequence[Child]]] = []
    for item in preview.incoming[:SHOWN]:
        status = parts.badge("new", "+", "accent") if item.status == "new" else parts.state(item.status)
        note = span("sc-cell-note", f"{words.short_digest(item.digest)} · {item.model} · {words.bytes_(item.size)}")
        body.append((item.digest, [status, join([words.clip(item.problem, 130), note]), words.clip(item.answer, 24)]))
    columns = [("Here", ""), ("Problem", "sc-grow"), ("Answer", "")]
    more = len(preview.incoming) - SHOWN
    return join(
        [
            div(
                "sc-line",
                signed,
                parts.digest(str(contents.digest), "bundle digest"),
                span("sc-muted sc-push", f"{len(preview.new)} of {len(preview.incoming)} new, {words.bytes_(size)}"),
            ),
            parts.table(columns, body, caption="What the bundle brings", pick=False),
            div("sc-muted sc-small", f"and {more} more") if more > 0 else None,
        ]
    )


def refused(kind: str, reason: str) -> Html:
    """Why a file was not taken. Nothing of it came in."""
    titles = {"UntrustedError": "Refused: its signature does not hold", "NotFound": "Refused: it cannot be read"}
    title = titles.get(kind, "Refused: the bundle is damaged or not one")
    return parts.notice("bad", title, join([div("", reason), div("", "Nothing of it came into the library.")]))
