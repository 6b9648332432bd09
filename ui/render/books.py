"""Books: the list, one book with its figures and segments, an answer with its sources. Takes plain data, asks nothing.

A book's two lengths always stand side by side: all of its text, and what one answer attended to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ui.render import jobs, parts, words
from ui.render.html import Child, Html, div, join, span, tag

if TYPE_CHECKING:
    from core.books.curate import BookView
    from core.jobs import JobView
    from library.tables import Segment

_NEXT = {
    "building": "Its segments are not all there yet. It goes on where it stopped.",
    "pending": "It waits for a person: look at its segments, then accept or refuse it. Until then it does not answer.",
    "revoked": "It was taken out of use and does not come back.",
}


def listing(views: Sequence[BookView], chosen: str = "") -> Html:
    """All books, as rows that can be chosen."""
    if not views:
        return parts.empty("No books yet", "Give a text, Markdown or PDF file a name below to make one.")
    columns = [
        ("Book", "sc-grow"), ("State", ""), ("Addressable", "sc-num"), ("Attended", "sc-num"), ("Size", "sc-num"),
    ]  # fmt: skip
    rows: list[tuple[str, Sequence[Child]]] = []
    for view in views:
        cells: list[Child] = [
            words.clip(view.name, 60),
            parts.state(view.state),
            words.count(view.addressable_tokens),
            words.count(view.attended_tokens),
            words.bytes_(view.stored_bytes),
        ]
        rows.append((view.name, cells))
    return parts.table(columns, rows, chosen=chosen, caption="Books")


def detail(view: BookView | None, segments: Sequence[Segment] = ()) -> Html:
    """One book: what it holds, how much of it one answer sees, what it costs."""
    if view is None:
        return parts.empty("No book chosen", "Choose a book to see its figures, to accept it, or to ask it.")
    figures = [
        parts.stat("addressable", words.count(view.addressable_tokens), "tokens of text"),
        parts.stat("attended", words.count(view.attended_tokens), "tokens at a time"),
        parts.stat("segments", words.count(view.segments), f"of at most {words.count(view.segment_tokens)}"),
        parts.stat("on disk", words.bytes_(view.stored_bytes), f"{words.bytes_(view.bytes_per_token)} a token"),
    ]
    facts: list[tuple[str, Child]] = [
        ("Digest", parts.digest(view.digest, "book digest")),
        ("Model", view.model),
        ("Made by", f"{view.created_by}, {words.when(view.created)}"),
        ("Files", ", ".join(words.clip(name, 60) for name in view.files[:8]) + ("…" if len(view.files) > 8 else "")),
        ("States", join([span("", parts.state(state), f" {words.count(n)} ") for state, n in view.artifacts])),
    ]
    return div(
        "sc-book",
        div("sc-line", parts.state(view.state), span("sc-strong", words.clip(view.name, 80))),
        parts.notice("warn" if view.state == "pending" else "info", _NEXT[view.state]) if view.state in _NEXT else None,
        parts.stats(*figures),
        parts.facts(facts),
        parts.folded(f"Segments{_of(len(segments), view.segments)}", contents(segments)) if segments else None,
    )


def _of(shown: int, total: int) -> str:
    return f", the first {shown} of {words.count(total)}" if shown < total else f" ({total})"


def contents(segments: Sequence[Segment]) -> Html:
    """The segments with their place in the text, each with its whole text folded away."""
    columns = [("Segment", "sc-num"), ("Where", "sc-nowrap"), ("Tokens", "sc-num"), ("Text", "sc-grow")]
    rows: list[tuple[str, Sequence[Child]]] = []
    for row in segments:
        place = div("", words.clip(row.file, 32), span("sc-cell-note", f"characters {row.start} to {row.end}"))
        text = parts.folded(words.clip(row.text, 70), parts.pre(row.text))
        rows.append((str(row.ordinal), [words.count(row.ordinal), place, words.count(row.tokens), text]))
    return parts.table(columns, rows, caption="Segments", pick=False)


def work(view: JobView | None) -> Html:
    """A book's job while it runs: phase, time left, what has been asked; and how it ended."""
    if view is None:
        return Html("")
    if not view.over:
        return div("sc-sheet", jobs.progress(view))
    about = words.clip(str(view.payload.get("book") or ""), 60)
    if view.state != "done":
        tone, more = ("bad", view.error) if view.state == "failed" else ("warn", _again(view.kind))
        return parts.notice(tone, f"{jobs.kind(view.kind)}, {about}: {view.state}", more or None)
    said = view.result
    if view.kind == "ingest":
        return parts.notice("good", f"{about} is {said.get('state')}", built(said))
    if view.kind == "pack":
        return parts.notice("good", f"{about}: {words.bytes_(said.get('saved_bytes'))} saved, nothing lost.")
    if view.kind == "drop":
        count = words.plural(int(said.get("dropped") or 0), "state")
        return parts.notice("good", f"{about}: {count} dropped; each is rebuilt when a question needs it.")
    return Html("")


def _again(kind: str) -> str:
    return "What is there is kept: build it again, or resume it, and it goes on from there." if kind == "ingest" else ""


def built(said: Mapping[str, Any]) -> Html:
    """What an ingest did."""
    segments = words.plural(int(said.get("segments") or 0), "segment")
    made, tokens = words.count(said.get("built")), words.count(said.get("addressable_tokens"))
    return span("", f"{segments} ({made} built now) of {tokens} tokens in {words.seconds(said.get('seconds'))}")


def answer(said: Mapping[str, Any]) -> Html:
    """An answer from a book: the words, the place they rest on, how much of the book was looked at, who else spoke."""
    if not said:
        return Html("")
    source = said.get("source")
    figures = [
        parts.stat("addressable", words.count(said.get("addressable_tokens")), "tokens of text"),
        parts.stat("attended", words.count(said.get("attended_tokens")), "tokens at a time"),
        parts.stat("first token", words.seconds(said.get("first_token_seconds"))),
        parts.stat("in all", words.seconds(said.get("seconds"))),
    ]
    spoken = [_spoken(item) for item in said.get("answers") or ()]
    return div(
        "sc-result",
        div("sc-label", "Question"),
        div("sc-text", str(said.get("question") or "")),
        _found(said, source) if said.get("answer") is not None and source else _unknown(said),
        parts.stats(*figures),
        parts.folded(f"What {words.plural(len(spoken), 'segment')} said", join(spoken)) if spoken else None,
    )


def _found(said: Mapping[str, Any], source: Mapping[str, Any]) -> Html:
    agreeing = len(said.get("agreeing") or ())
    return join(
        [
            jobs.answer(said.get("answer")),
            div(
                "sc-line",
                parts.badge("unverified", "?", "unknown", "No person has checked this answer"),
                span("sc-muted", f"{words.plural(agreeing, 'segment')} say so") if agreeing > 1 else None,
            ),
            parts.facts([("Source", place(source)), ("It rests on", tag("q", words.clip(_quote(source), 400)))]),
        ]
    )


def _unknown(said: Mapping[str, Any]) -> Html:
    return join(
        [
            parts.notice("warn", "The book does not say", "None of the segments that were asked holds the answer."),
            jobs.reasons(tuple(said.get("reasons") or ())),
        ]
    )


def place(source: Mapping[str, Any]) -> Html:
    """Segment, file and characters: of the quote where there is one, else of the whole segment."""
    quoted = source.get("quote_start") is not None
    start, end = (source.get("quote_start"), source.get("quote_end")) if quoted else (source["start"], source["end"])
    file = words.clip(str(source.get("file") or ""), 60)
    return join([f"segment {source.get('ordinal')}, {file}, ", span("sc-nowrap", f"characters {start} to {end}")])


def _quote(source: Mapping[str, Any]) -> str:
    return str(source.get("quote") or "")


def _spoken(item: Mapping[str, Any]) -> Html:
    """What one of the segments said, and why it counts or does not."""
    sign = parts.badge("knows", "✓", "pass") if item.get("known") else parts.badge("does not know", "–", "none")
    return div(
        "sc-spoken",
        div("sc-line", sign, span("sc-muted", place(item))),
        div("sc-text", words.clip(str(item.get("text") or "nothing"), 300)),
        div("sc-cell-note", str(item["note"])) if item.get("note") else None,
    )
