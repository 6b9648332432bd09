"""Three runs side by side, live and afterwards, and labelled pairs judged again. Takes a job's view, asks nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ui.render import jobs, parts, words
from ui.render.html import Child, Html, div, join, span, tag

if TYPE_CHECKING:
    from core.gate.verdict import Judgement
    from core.jobs import JobView, Stream
    from library.tables import PairLabel

_TITLES = {"fresh": "Fresh", "ungated": "Ungated graft", "gated": "Gated graft"}
_NOTES = {
    "fresh": "the model alone",
    "ungated": "no gate asked: unsafe, to compare",
    "gated": "what the product would do",
}


def run(view: JobView | None, name: str, place: int, *, blind: bool) -> tuple[Html, str]:
    """One column: its figures as HTML, and its text for `prose.markdown` once final. `blind` hides which it is."""
    result: Mapping[str, Any] = (view.result.get("runs") or {}) if view is not None and view.over else {}
    streams = {stream.title.lower(): stream for stream in view.progress.streams} if view is not None else {}
    title = f"Run {'ABC'[place]}" if blind else _TITLES[name]
    note = None if blind else div("sc-muted sc-small", _NOTES[name])
    final = result.get(name)
    body = _finished(final, name, blind) if final is not None else _live(streams.get(name), view)
    shown = div("", div("sc-line", span("sc-run-title", title)), note, body, aria_label=title, role="group")
    text = str(final.get("text") or "") if final is not None else ""
    return shown, "" if final is not None and text == final.get("answer") else text


def trouble(view: JobView | None) -> Html:
    """Why a comparison has no result; nothing if it has or may still have one."""
    if view is not None and view.state == "failed":
        return parts.notice("bad", "The comparison failed", view.error)
    if view is not None and view.state in ("cancelled", "interrupted"):
        return parts.notice("warn", f"The comparison was {view.state}", None)
    return Html("")


def _live(stream: Stream | None, view: JobView | None) -> Html:
    if view is None:
        return parts.empty("Not run yet")
    if stream is None or stream.state == "waiting":
        place = view.progress.place
        waiting = f"waiting, {words.plural(place, 'job')} before it" if place else "waits for its turn"
        return parts.empty(waiting) if not view.over else parts.empty("did not run")
    return join(
        [
            div("sc-line", parts.state(stream.state), parts.verdict(stream.verdict) if stream.verdict else None),
            parts.stats(
                parts.stat("decoded", words.count(stream.tokens), "tokens"),
                parts.stat("time", words.seconds(stream.seconds)),
            ),
            div("sc-run-text", stream.text, tabindex="0"),
        ]
    )


def _finished(run: Mapping[str, Any], name: str, blind: bool) -> Html:
    marks: list[Child] = []
    if run.get("verdict") and not blind and name != "fresh":  # no gate was asked there
        marks.append(parts.verdict(str(run["verdict"])))
    if run.get("exactness") and not blind:
        marks.append(parts.state(str(run["exactness"])))
    if run.get("copied") and not blind:
        marks.append(parts.badge("copied the stored answer", "!", "unknown"))
    joules = run.get("joules")
    figures = [
        parts.stat("decoded", words.count(run.get("decode_tokens")), "tokens"),
        parts.stat("prefilled", words.count(run.get("prefill_tokens")), "tokens"),
        parts.stat("time", words.seconds(run.get("seconds"))),
        parts.stat("energy", words.joules(joules)) if joules is not None else None,
    ]
    return join(
        [
            div("sc-line", *marks) if marks else None,
            jobs.answer(run.get("answer")),
            parts.stats(*[figure for figure in figures if figure is not None]),
            jobs.reasons(run.get("reasons") or ()) if not blind else None,
        ]
    )


def repeated(rows: Sequence[tuple[PairLabel, Judgement]]) -> Html:
    """All labelled pairs under the gate as it is now: the totals, then where gate and people disagree."""
    if not rows:
        return parts.empty("No labelled pairs yet", "Label a pair on the left.")
    wrong = [(item, said) for item, said in rows if item.label == "unsafe" and str(said.verdict) == "GRAFT"]
    missed = [(item, said) for item, said in rows if item.label == "safe" and str(said.verdict) != "GRAFT"]
    unsafe = sum(item.label == "unsafe" for item, _ in rows)
    safe = sum(item.label == "safe" for item, _ in rows)
    figures = parts.stats(
        parts.stat("pairs", words.count(len(rows))),
        parts.stat("unsafe, grafted", words.count(len(wrong)), f"of {unsafe}"),
        parts.stat("safe, not grafted", words.count(len(missed)), f"of {safe}"),
    )
    body: list[tuple[str, Sequence[Child]]] = []
    for item, said in [*wrong, *missed][:50]:
        cells: list[Child] = [
            parts.state(item.label), parts.verdict(str(said.verdict)), words.clip(item.stored, 90),
            words.clip(item.query, 90),
        ]  # fmt: skip
        body.append((item.id, cells))
    table = (
        parts.table(
            [("Label", ""), ("Gate", ""), ("Stored", ""), ("Query", "")], body, caption="Disagreements", pick=False
        )
        if body
        else parts.notice("good", "The gate agrees with every label, or is more careful.")
    )
    return join([figures, table, tag("div", "", class_="sc-small")])
