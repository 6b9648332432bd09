"""What the Review tab shows: the attempts of a filter, one of them in full, and what a reviewer should be told of it.

Takes the lease of what it shows; decides nothing. A blind reviewer does not learn what others said before.
"""

from __future__ import annotations

from typing import Any

import gradio as gr

from library.errors import Conflict, NotFound, ScionError
from library.reviews import OPEN_FOR_REVIEW
from library.votes import Standing
from ui.access import Denied, Person, Right
from ui.page import Page, fault
from ui.render import parts, prose, records
from ui.render.html import Html, join

TO_REVIEW, DISAGREE, AWAITING = "To review", "Disputed", "Awaiting"
FILTERS: dict[str, tuple[str, ...]] = {
    TO_REVIEW: OPEN_FOR_REVIEW,
    DISAGREE: OPEN_FOR_REVIEW,
    AWAITING: OPEN_FOR_REVIEW,
    "Flagged": ("flagged",),
    "Approved": ("approved",),
    "Rejected": ("rejected",),
    "All": ("pending", "flagged", "approved", "rejected"),
}
PAGE = 60
_EMPTY = {
    DISAGREE: "Where one approves and another rejects, a third person decides here.",
    AWAITING: "What you decided and another person must confirm is listed here.",
}
_NO_EVIDENCE = parts.empty("Nothing to show", "What the automatic checks found about an attempt.")
_NO_HISTORY = parts.empty("Nothing to show", "Who decided what about it, and why.")


def listed(page: Page, name: str, text: str, person: Person) -> list[Any]:
    """The attempts of a filter. What waits for somebody else's word is not this person's to review."""
    states = FILTERS.get(name, FILTERS[TO_REVIEW])
    only, without = None, set()
    if name in (TO_REVIEW, DISAGREE, AWAITING):
        votes = page.engine.library.open_votes()
        disputed = {attempt for attempt, (_, found) in votes.items() if found.disputed}
        given = {attempt for attempt, (_, found) in votes.items() if found.word(person.name)} - disputed
        only = {DISAGREE: disputed, AWAITING: given}.get(name)
        without = disputed | given if name == TO_REVIEW else set()
    words = (text or "").strip() or None
    return page.engine.library.attempts(review=states, limit=PAGE, text=words, only=only, without=without)


def after(page: Page, name: str, text: str, attempt: str, person: Person) -> str:
    """The next open attempt that nobody else has before them; the one after this, else the first."""
    taken = {lease.attempt_id for lease in page.engine.library.leases() if lease.reviewer != person.name}
    rows = [row.id for row in listed(page, name, text, person) if row.review in OPEN_FOR_REVIEW]
    here = rows.index(attempt) if attempt in rows else -1
    ordered = [*rows[here + 1 :], *rows[: max(here, 0)]]
    return next((row for row in ordered if row not in taken and row != attempt), "")


def whole(
    page: Page, request: gr.Request, name: str, text: str, chosen: str, *, message: Html | None = None
) -> list[Any]:
    """The tab for a filter and a chosen attempt, in the order of `Review.whole`. Takes the lease of what it shows."""
    try:
        person = page.who(request)
        library = page.engine.library
        rows = listed(page, name, text, person)
        votes = library.open_votes()
        numbers = library.review_counts()
        leased = library.leased_by_others(person.name)
    except ScionError as error:
        return failed(error, note_kept=False)
    if not chosen and rows:
        taken = {lease.attempt_id for lease in library.leases() if lease.reviewer != person.name}
        chosen = next((row.id for row in rows if row.id not in taken), "")
    shown = [(row, library.problem(row.problem_id).text, _state(page, row, votes.get(row.id), person)) for row in rows]
    record, warning = _record(page, person, chosen)
    return [
        records.counts(numbers),
        records.queue(shown, chosen, leased, _EMPTY.get(name, "")),
        *record,
        join([message, warning]),
        "",
    ]


def _record(page: Page, person: Person, chosen: str) -> tuple[list[Any], Html]:
    """One attempt in the order of `Review.record`, and what the reviewer should be told about it."""
    nothing = Html("")
    blank = [records.attempt_head(None), nothing, "", _NO_EVIDENCE, _NO_HISTORY, ("", 0)]
    if not chosen:
        return blank, nothing
    library, warning = page.engine.library, nothing
    try:
        row = library.attempt(chosen)
    except NotFound as error:
        return blank, fault(error)
    if row.review in OPEN_FOR_REVIEW and person.may(Right.REVIEW):
        try:
            library.lease(row.id, person.name, page.settings.lease_seconds)
        except Conflict as error:
            warning = parts.notice("warn", "With another reviewer", str(error))
    problem = library.problem(row.problem_id)
    decisions = library.decisions(row.id)
    own = any(decision.reviewer == person.name for decision in decisions)
    vote = library.open_votes().get(row.id)
    standing = vote[1] if vote is not None else Standing()
    disputed = standing.disputed  # who is to decide between two must read both
    if disputed and not warning:
        warning = _dispute(standing.word(person.name) is not None)
    hidden = page.settings.blind and bool(decisions) and not own and row.review in OPEN_FOR_REVIEW and not disputed
    thinking = parts.folded("Thinking", parts.pre(row.thinking)) if row.thinking else nothing
    return [
        records.attempt_head(row, problem.text, problem.reference, _state(page, row, vote, person)),
        thinking,
        prose.markdown(row.solution),
        records.evidence(library.evidence(row.id)),
        records.history(decisions, hidden=hidden),
        (row.id, row.version),
    ], warning


def _dispute(involved: bool) -> Html:
    if involved:
        return parts.notice(
            "warn", "Another reviewer disagrees with you", "A third person decides. Undo takes yours back."
        )
    return parts.notice("info", "Two reviewers disagree", "Their words are in the history; yours decides.")


def _state(page: Page, row: Any, vote: Any, person: Person) -> str:
    """What is shown as an attempt's state. A blind reviewer does not learn that somebody approved it before."""
    if vote is None or row.review not in OPEN_FOR_REVIEW:
        return str(row.review)
    if vote[1].disputed:
        return "adjudicate"
    if vote[1].word(person.name):
        return "awaiting"
    return str(row.review) if page.settings.blind else "second"


def failed(error: ScionError, *, note_kept: bool) -> list[Any]:
    """Nothing changes but the message."""
    if isinstance(error, Denied):
        note_kept = True
    skipped = [gr.skip() for _ in range(8)]
    return [*skipped, fault(error), gr.skip() if note_kept else ""]
