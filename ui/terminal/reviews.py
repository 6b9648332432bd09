"""Commands of review: list, show, approve, reject."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ui.terminal.common import actor, plain, session, short, table

app = typer.Typer(no_args_is_help=True, help="Decide on solved attempts.")


@app.command("list")
def list_(
    context: typer.Context,
    state: Annotated[str, typer.Option(help="pending, flagged, approved, rejected or all")] = "pending",
    limit: Annotated[int, typer.Option(min=1, max=10_000)] = 50,
) -> None:
    """Attempts in the review queue, newest first."""
    from library.errors import UsageError

    known = ("pending", "flagged", "approved", "rejected")
    if state not in (*known, "all"):
        raise UsageError(f"unknown state {state!r}: one of {', '.join(known)}, all")
    here = session(context)
    with here.library() as library:
        rows = library.attempts(review=known if state == "all" else state, limit=limit)
        items = [_brief(library, row) for row in rows]
    heads = ("attempt", "review", "answer", "reference", "tokens", "problem")
    words = table(
        [
            (
                i["id"],
                i["review"],
                short(i["answer"], 20),
                i["reference_check"],
                i["decode_tokens"],
                short(i["problem"], 60),
            )
            for i in items
        ],
        heads,
    )
    here.show(items, words if items else "nothing waits for review")


@app.command()
def show(context: typer.Context, attempt_id: str) -> None:
    """One attempt with its solution, evidence and decisions."""
    here = session(context)
    with here.library() as library:
        row = library.attempt(attempt_id)
        item = {
            **plain(row),
            **_brief(library, row),
            "evidence": [plain(e) for e in library.evidence(attempt_id)],
            "decisions": [plain(d) for d in library.decisions(attempt_id)],
        }
    lines = [f"{item['id']}  {item['review']}  version {item['version']}", "", item["problem"], ""]
    lines += [item["solution"].strip(), "", f"answer: {item['answer']}"]
    lines += [f"  {e['outcome']:<14} {e['check_name']:<12} {e['summary']}" for e in item["evidence"]]
    lines += [f"  {d['created']} {d['reviewer']}: {d['action']} {d['reason']}" for d in item["decisions"]]
    here.show(item, "\n".join(lines))


@app.command()
def approve(
    context: typer.Context,
    attempt_id: str,
    note: Annotated[str, typer.Option(help="a note kept with the decision")] = "",
    version: Annotated[int | None, typer.Option(help="refuse if the record's version is another")] = None,
) -> None:
    """Approve an attempt: its state is published as an artifact."""
    _decide(context, attempt_id, "approve", note, version)


@app.command()
def reject(
    context: typer.Context,
    attempt_id: str,
    reason: Annotated[str, typer.Option(help="why; required")],
    version: Annotated[int | None, typer.Option(help="refuse if the record's version is another")] = None,
) -> None:
    """Reject an attempt: its state is discarded, the record stays."""
    _decide(context, attempt_id, "reject", reason, version)


def _decide(context: typer.Context, attempt_id: str, action: str, reason: str, version: int | None) -> None:
    from core.engine import Decided

    here = session(context)
    with here.engine() as engine:
        row = engine.library.attempt(attempt_id)
        if action == "approve" and row.review == "approved" and row.staged is not None:
            # The disk was full, say, when it was approved: the word was kept, the deposit is made up for.
            decision = engine.library.decisions(attempt_id)[-1]
            decided = Decided(decision, engine.publish(attempt_id), "published; it was approved before")
        else:
            seen = row.version if version is None else version
            decided = engine.decide(attempt_id, version=seen, action=action, reviewer=actor(), reason=reason)
    artifact = decided.artifact
    shown: dict[str, Any] = {
        "decision": decided.decision.id,
        "action": decided.decision.action,
        "attempt_id": attempt_id,
        "artifact": artifact.digest if artifact else None,
        "note": decided.note,
    }
    here.show(shown, f"{action}: {attempt_id}" + (f"\nartifact {artifact.digest}" if artifact else f" {decided.note}"))


def _brief(library: Any, row: Any) -> dict[str, Any]:
    problem = library.problem(row.problem_id)
    reference = next((e.outcome for e in library.evidence(row.id) if e.check_name == "reference"), "")
    return {
        "id": row.id,
        "review": row.review,
        "version": row.version,
        "problem": problem.text,
        "reference": problem.reference,
        "reference_check": reference,
        "answer": row.answer,
        "decode_tokens": row.decode_tokens,
        "model": row.model,
        "created": row.created,
    }
