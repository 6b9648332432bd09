"""Attempts under review and artifacts in the library: lists, evidence, history, manifest. Takes rows, asks nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ui.render import parts, words
from ui.render.html import Child, Html, div, join, span, tag

if TYPE_CHECKING:
    from library.reviews import ReviewCounts
    from library.search import Record
    from library.tables import Attempt, Decision, Evidence, Outcome

_ACTIONS = {
    "approve": ("✓", "pass"), "reject": ("✕", "fail"), "flag": ("⚑", "unknown"), "skip": ("→", "none"),
    "undo": ("↶", "none"), "note": ("✎", "none"),
}  # fmt: skip


_KEYS = (
    ("a", "approve"), ("r", "reject"), ("f", "flag"), ("s", "skip"), ("u", "undo"), ("←", "previous"), ("→", "next"),
    ("?", "this list"),
)  # fmt: skip


def keys() -> Html:
    """The keys of the Review tab."""
    items = [span("", tag("kbd", key), f" {meaning}") for key, meaning in _KEYS]
    return div("sc-keys", *items, span("", "off while you type"))


def counts(numbers: ReviewCounts) -> Html:
    """How many attempts stand where."""
    shown = [(name, getattr(numbers, name)) for name in ("pending", "flagged", "approved", "rejected")]
    rare = [("second", numbers.seconds), ("adjudicate", numbers.disputed)]  # only where two people must agree
    shown[1:1] = [item for item in rare if item[1]]
    items = [tag("li", parts.state(name), " ", tag("b", words.count(number))) for name, number in shown]
    return tag("ul", *items, class_="sc-counts", aria_label="review queue by state")


def queue(rows: Sequence[tuple[Attempt, str, str]], chosen: str, leased: int = 0, about: str = "") -> Html:
    """The review queue: (attempt, problem text, state) in order; `about` says what the list is for if it is empty."""
    if not rows:
        hint = f"{words.plural(leased, 'item is', 'items are')} with other reviewers." if leased else about
        return parts.empty("Nothing to review here", hint or "Solve a problem, or choose another filter.")
    items = []
    for attempt, problem, state in rows:
        current = attempt.id == chosen
        items.append(
            tag(
                "li",
                tag(
                    "button",
                    span("sc-queue-text", words.clip(problem, 96)),
                    span(
                        "sc-line",
                        parts.state(state),
                        span("sc-muted", "→ ", tag("b", words.clip(attempt.answer or "no answer", 18))),
                        span("sc-muted sc-push", words.when(attempt.created)),
                    ),
                    type="button",
                    class_="sc-queue-item" + (" sc-chosen" if current else ""),
                    data_key=attempt.id,
                    aria_current="true" if current else None,
                ),
            )
        )
    more = div("sc-muted", f"{words.plural(leased, 'item', 'items')} with other reviewers") if leased else None
    return join([tag("ol", *items, class_="sc-queue"), more])


def attempt_head(attempt: Attempt | None, problem: str = "", reference: str | None = None, state: str = "") -> Html:
    """Problem, answer against the reference, and the run's figures."""
    if attempt is None:
        return parts.empty("No attempt chosen", "Choose one from the queue; what waits for you is under “To review”.")
    figures = [
        parts.stat("tokens", words.count(attempt.decode_tokens), f"+ {words.count(attempt.prompt_tokens)} prompt"),
        parts.stat("speed", f"{attempt.tokens_per_second:.1f}/s"),
        parts.stat("time", words.seconds(attempt.seconds)),
        parts.stat("energy", words.joules(attempt.joules)),
    ]
    return div(
        "sc-attempt",
        div(
            "sc-line",
            parts.state(state or attempt.review),
            parts.state(attempt.status) if attempt.status != "solved" else None,
            span("sc-muted", attempt.model),
            span("sc-muted sc-push", f"version {attempt.version} · ", parts.code(words.short_digest(attempt.id))),
        ),
        div("sc-problem", div("sc-label", "Problem"), div("sc-text", problem)),
        div(
            "sc-answers",
            div("sc-answer", span("sc-label", "Answer"), span("sc-answer-text", attempt.answer or "none found")),
            div(
                "sc-answer",
                span("sc-label", "Reference"),
                span("sc-answer-text" if reference else "sc-stat-word", reference or "not given"),
            ),
        ),
        parts.stats(*figures),
    )


def evidence(rows: Sequence[Evidence]) -> Html:
    """What the automatic checks found; the raw data folded."""
    if not rows:
        return parts.empty("No evidence", "No automatic check has looked at this attempt.")
    cells: list[tuple[str, Sequence[Child]]] = []
    for row in rows:
        detail = _json(row.detail)
        name = span("sc-strong", row.check_name.replace("_", " "))
        raw = parts.folded("raw", parts.pre(detail)) if detail not in ("{}", "") else None
        cells.append((str(row.id), [parts.outcome(row.outcome), join([name, div("", row.summary), raw])]))
    table = parts.table([("Found", ""), ("Check", "sc-grow")], cells, caption="Evidence", pick=False)
    note = f"Evidence is shown to help; it never decides. Verifier {rows[0].verifier}."
    return join([table, div("sc-muted sc-small", note)])


def checks(rows: Sequence[Evidence]) -> Html:
    """The same on one line: each check's outcome and name, with what it found on hover."""
    if not rows:
        return Html("")
    items = [
        tag("li", parts.outcome(row.outcome), " ", row.check_name.replace("_", " "), title=row.summary) for row in rows
    ]
    return div("sc-checks", div("sc-label", "Evidence"), tag("ul", *items, class_="sc-chips"))


def history(rows: Sequence[Decision], *, hidden: bool = False) -> Html:
    """The decisions on one attempt, oldest first."""
    if hidden:
        return parts.empty("Hidden until you decide", "Earlier decisions are shown once you have given your own.")
    if not rows:
        return parts.empty("No decision yet")
    items = []
    for row in rows:
        sign, tone = _ACTIONS.get(row.action, ("·", "none"))
        items.append(
            tag(
                "li",
                div(
                    "sc-line",
                    parts.badge(row.action, sign, tone),
                    tag("b", row.reviewer),
                    span("sc-muted", f"on version {row.attempt_version}"),
                    span("sc-muted sc-push", words.when(row.created), title=row.created),
                ),
                div("sc-reason", row.reason) if row.reason else None,
            )
        )
    return tag("ol", *items, class_="sc-history")


def artifacts(rows: Sequence[Record], chosen: str, total: int, offset: int, filtered: bool) -> Html:
    """One page of the library."""
    if not rows:
        if filtered:
            return parts.empty("Nothing matches", "Change the search or the filter.")
        return parts.empty("The library is empty", "Approve an attempt in Review; its state is kept here.")
    body: list[tuple[str, Sequence[Child]]] = []
    for row in rows:
        size = words.bytes_(row.stored_bytes or row.size_bytes)
        note = span("sc-cell-note", f"{row.model} · {size} · used {row.uses}×")
        cells: list[Child] = [
            tag("code", words.short_digest(row.digest), title=row.digest),
            join([words.clip(row.problem_text, 130), note]),
            words.clip(row.answer, 24),
            words.count(row.graft_point),
            words.count(row.solve_tokens * row.uses),
            parts.state(row.state, row.state_reason),
        ]
        body.append((row.digest, cells))
    columns = [
        ("Hash", ""), ("Problem", "sc-grow"), ("Answer", ""), ("Tokens", "sc-num"), ("Saved ≤", "sc-num"),
        ("State", ""),
    ]  # fmt: skip
    shown = f"{offset + 1}–{offset + len(rows)} of {words.count(total)}"
    table = parts.table(columns, body, chosen=chosen, caption="Artifacts")
    return join([table, div("sc-muted sc-small", shown)])


def outcomes(rows: Sequence[Outcome]) -> Html:
    """The asks that an artifact served."""
    if not rows:
        return parts.empty("Not asked yet", "Each ask that this artifact serves leaves a line here.")
    body: list[tuple[str, Sequence[Child]]] = []
    for row in rows:
        cells: list[Child] = [
            parts.verdict(row.verdict),
            words.clip(row.query, 70),
            words.clip(row.answer or "–", 16),
            f"{row.decode_tokens}",
            parts.state(row.exactness) if row.exactness else "–",
            words.when(row.created),
        ]
        body.append((row.id, cells))
    columns = [
        ("Verdict", ""), ("Query", "sc-grow"), ("Answer", ""), ("Decoded", "sc-num"), ("Exactness", ""), ("When", ""),
    ]  # fmt: skip
    return parts.table(columns, body, caption="Outcomes", pick=False)


def _json(value: str | Mapping[str, Any]) -> str:
    try:
        data = json.loads(value) if isinstance(value, str) else value
        return json.dumps(data, indent=2, ensure_ascii=False, sort_keys=True)
    except ValueError:
        return str(value)
