"""What a job is doing and what came of it: progress, attempts, live text, results, the offer before a solve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ui.render import parts, words
from ui.render.html import Child, Html, div, join, span, tag

if TYPE_CHECKING:
    from core.asking import Offer
    from core.jobs import JobView, Progress, Stream

_KINDS = {
    "solve": "Solve", "ask": "Ask the library", "compare": "Graft lab", "chat": "Continue", "audit": "Replay audit",
    "verify": "Integrity check", "certify": "Certificate", "ingest": "Build a book", "book": "Ask a book",
    "pack": "Pack a book", "drop": "Drop a book's states",
}  # fmt: skip


_COUNTED = ("ask", "book")  # whose results have their own figures
_PHASES = {"queued": "getting ready", "loading model": "loading the model", "prefill": "reading the problem"}
_REASONS = 2  # of a refusal, beside a problem that is being written
_ABOUT = ("problem", "query", "question", "book")  # what of a job's request says best what it is about


def kind(name: str) -> str:
    return _KINDS.get(name, name)


def first_steps() -> Html:
    """What the work panel says before there is any work: what this is, and the way through it."""
    steps = [
        tag("li", tag("b", "Solve"), " a problem; take an example on the left. The model's attempts stream here."),
        tag("li", tag("b", "Review"), " the best attempt. If you approve it, the state that solved it is kept."),
        tag("li", tag("b", "Ask again"), ": the library answers from that state in a few tokens."),
        tag("li", tag("b", "Graft lab"), ": change the problem a little, see whether the gate notices."),
    ]
    return div(
        "sc-start",
        tag("p", "A frozen model solves a problem once. What a person approves is kept, byte for byte."),
        tag("ol", *steps),
    )


def progress(view: JobView | None) -> Html:
    """The head of the work panel: phase, budget, speed, attempts."""
    if view is None:
        return first_steps()
    now = view.progress
    phase = "" if view.over else _phase(now)
    line = [parts.state(view.state), span("sc-strong", kind(view.kind)), span("sc-muted", phase) if phase else None]
    spent, budget = now.tokens, now.budget
    left = parts.stat("left, at most", _left(now) if view.state == "running" else "–") if not view.over else None
    facts = [
        parts.stat("tokens", words.count(spent), f"of {words.count(budget)}" if budget else None),
        parts.stat("speed", f"{now.tokens_per_second:.1f}/s" if now.tokens_per_second else "–"),
        parts.stat("elapsed", words.seconds(now.seconds) if now.seconds else "–"),
        left,
    ]
    return div(
        "sc-progress",
        div("sc-line", *line, span("sc-push sc-muted", parts.code(words.short_digest(view.id), view.id))),
        parts.bar(spent, budget, "tokens of the budget") if not view.over else None,
        None if view.over and view.kind in _COUNTED else parts.stats(*[fact for fact in facts if fact is not None]),
        strip(now.streams) if len(now.streams) > 1 else None,
        div("sc-muted sc-small", now.note) if now.note and now.phase != "decoding" and not view.over else None,
        parts.notice("bad", "The job failed", view.error) if view.state == "failed" else None,
        parts.notice("warn", "Interrupted", "The server stopped while it ran. Submit it again.")
        if view.state == "interrupted"
        else None,
        aria_live="off",
    )


def _phase(now: Progress) -> str:
    if now.place:
        return f"waiting, {words.plural(now.place, 'job')} before it"
    return _PHASES.get(now.phase, now.phase)


def _left(now: Progress) -> str:
    if now.tokens_per_second <= 0 or now.budget <= now.tokens:
        return "–"
    return words.seconds((now.budget - now.tokens) / now.tokens_per_second)


_NOT_NEEDED = "Another attempt was right first, so this one was ended"


def strip(streams: Sequence[Stream]) -> Html:
    """One cell an attempt, filling as they run."""
    cells = []
    for number, stream in enumerate(streams, 1):
        answer = stream.answer if stream.state != "superseded" else None  # what was broken off has said nothing yet
        cells.append(
            tag(
                "li",
                span("sc-strip-number", number),
                parts.state(stream.state, _NOT_NEEDED if stream.state == "superseded" else ""),
                span(
                    "sc-strip-said",
                    span("sc-muted", f"{words.count(stream.tokens)} tokens") if stream.tokens else None,
                    span("sc-strip-answer", words.clip(answer, 24)) if answer else None,
                ),
                class_=f"sc-strip-cell sc-s-{stream.state}",
            )
        )
    return tag("ol", *cells, class_="sc-strip", aria_label="attempts")


def focus(streams: Sequence[Stream]) -> Stream | None:
    """The stream worth reading: the first that runs, else the last that ended by itself, else the last that wrote."""
    running = [stream for stream in streams if stream.state == "running" and (stream.text or stream.thinking)]
    written = [stream for stream in streams if stream.text or stream.thinking]
    ended = [stream for stream in written if stream.state == "stop"]  # not one that another made unnecessary
    return next(iter(running or ended[-1:] or written[-1:]), None)


def live(view: JobView | None) -> Html:
    """The text as it comes. Thinking stands above the solution in a quieter voice."""
    stream = focus(view.progress.streams) if view else None
    if view is None or stream is None:
        return div("sc-live sc-quiet", _waiting(view) if view is not None and not view.over else "")
    return div(
        "sc-live",
        div("sc-thinking", stream.thinking) if stream.thinking else None,
        div("sc-text", stream.text),
        span("sc-caret", "▍", aria_hidden="true") if not view.over else None,
    )


def _waiting(view: JobView) -> str:
    """Why there is no text yet; the first solve after a start loads the model."""
    if view.progress.place or view.state == "queued":
        return "Waits for the device…"
    if view.progress.phase in ("queued", "loading model"):
        return "Loading the model: some seconds; the very first time it is converted too, up to a minute…"
    return "Waiting for the first token…"


def ask(result: Mapping[str, Any]) -> Html:
    """An answer from the library or a fresh one: verdict, answer, what it cost and saved, and why."""
    saved = int(result.get("tokens_saved") or 0)
    exact = str(result.get("exactness") or "")
    figures = [
        parts.stat("decoded", words.count(result.get("decode_tokens")), "tokens"),
        parts.stat("prefilled", words.count(result.get("prefill_tokens")), "tokens"),
        parts.stat("time", words.seconds(result.get("seconds"))),
        parts.stat("tokens saved", words.count(saved), _ratio(saved, result.get("decode_tokens"))),
    ]
    return div(
        "sc-result",
        div(
            "sc-line",
            verdict_of(result),
            parts.state(exact) if exact else None,
            parts.digest(result.get("artifact"), "artifact digest") if result.get("artifact") else None,
        ),
        answer(result.get("answer")),
        parts.stats(*figures),
        reasons(result.get("reasons") or ()),
        join([parts.notice("warn", str(w)) for w in result.get("warnings") or ()]),
    )


def verdict_of(result: Mapping[str, Any]) -> Html:
    return parts.verdict(str(result.get("verdict") or ""))


def _ratio(saved: int, spent: Any) -> Child:
    spent = int(spent or 0)
    return f"{(saved + spent) / spent:.0f}× fewer" if saved > 0 and spent > 0 else None


def answer(value: Any) -> Html:
    shown = words.clip(str(value), 400) if value not in (None, "") else "no answer"
    return div("sc-answer", span("sc-label", "Answer"), span("sc-answer-text", shown))


def reasons(items: Sequence[Any]) -> Html:
    """Reasons as the engine gives them: a mapping or an object with `code` and `text`, or plain text."""
    lines = []
    for item in items:
        text = item.get("text") if isinstance(item, Mapping) else getattr(item, "text", item)
        lines.append(tag("li", str(text)))
    return tag("ul", *lines, class_="sc-reasons") if lines else Html("")


def _few(items: Sequence[Any]) -> Html:
    """The first reasons; the others folded."""
    rest = items[_REASONS:]
    more = parts.folded(f"{len(rest)} more", reasons(rest)) if rest else None
    return join([reasons(items[:_REASONS]), more])


def offer(found: Offer | None) -> Html:
    """What the library holds for the problem that is being written; nothing where it holds nothing near."""
    if found is None or found.artifact is None:
        return Html("")
    artifact, judgement = found.artifact, found.judgement
    name = str(found.verdict)
    if name == "GRAFT":
        said: Child = (
            f"The library holds this problem: its answer takes a few tokens instead of {artifact.solve_tokens}."
        )
    elif name == "TRANSFER":
        said = "The library holds a problem of the same family. It can serve as a worked example."
    else:
        said = "The nearest problem in the library is another problem. It will be solved fresh."
    return div(
        f"sc-offer sc-o-{name.lower()}",
        div("sc-line", parts.verdict(name), parts.digest(artifact.digest, "artifact digest")),
        div("sc-offer-said", said),
        div("sc-quote", words.clip(artifact.problem_text, 220)) if name != "GRAFT" else None,
        _few(judgement.reasons) if judgement is not None and name != "GRAFT" else None,
    )


def listing(views: Sequence[JobView], chosen: str = "") -> Html:
    """My jobs, newest first."""
    if not views:
        return parts.empty("No jobs yet", "What you submit is listed here, also after a reload.")
    rows = []
    for view in views:
        about = str(next((view.payload[key] for key in _ABOUT if view.payload.get(key)), ""))
        if not about and view.payload.get("messages"):
            about = str(view.payload["messages"][-1])
        if not about and view.payload.get("digest"):
            about = words.short_digest(str(view.payload["digest"]))
        cells: list[Child] = [
            words.clip(about, 90) or kind(view.kind),
            kind(view.kind),
            parts.state(view.state),
            words.count(view.progress.tokens),
            words.when(view.created),
        ]
        rows.append((view.id, cells))
    columns = [("About", "sc-grow"), ("Kind", "sc-nowrap"), ("State", ""), ("Tokens", "sc-num"), ("When", "sc-nowrap")]
    return parts.table(columns, rows, chosen=chosen, caption="My jobs")
