"""The few endpoints for programs: submit, job, ask, verdict, artifacts, decide. Same rights and engine as the page."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from typing import Any

import gradio as gr

from core.gate import Policy
from library.errors import ScionError, UsageError
from ui.access import Right
from ui.page import Page
from ui.render.html import text

LISTED = 200


def add(page: Page) -> None:
    """Adds the endpoints to the page that is being built."""

    @_typed
    def submit(
        request: gr.Request, problem: str, reference: str = "", attempts: int = 1, max_tokens: int = 0, seed: int = 0
    ) -> dict[str, Any]:
        person = page.who(request, Right.SOLVE)
        job = page.engine.submit(
            problem,
            by=person.name,
            reference=reference or None,
            attempts=int(attempts),
            max_tokens=int(max_tokens) or None,
            seed=int(seed),
            source="api",
        )
        return {"job": job}

    @_typed
    def job(request: gr.Request, job: str) -> dict[str, Any]:
        view = page.job(job, page.who(request))
        return {
            "job": view.id, "kind": view.kind, "state": view.state, "over": view.over, "error": view.error,
            "progress": {k: v for k, v in asdict(view.progress).items() if k != "streams"}, "result": dict(view.result),
        }  # fmt: skip

    @_typed
    def ask(request: gr.Request, query: str, gate: str = "") -> dict[str, Any]:
        person = page.who(request, Right.SOLVE)
        return {"job": page.engine.submit_ask(query, by=person.name, policy=policy_named(gate))}

    @_typed
    def verdict(request: gr.Request, stored: str, query: str, gate: str = "") -> dict[str, Any]:
        page.who(request)
        said = page.engine.judge(stored, query, policy_named(gate))
        return {
            "verdict": str(said.verdict), "policy": str(said.policy), "score": said.score,
            "reasons": [asdict(reason) for reason in said.reasons], "edits": [asdict(edit) for edit in said.edits],
        }  # fmt: skip

    @_typed
    def artifacts(
        request: gr.Request, query: str = "", state: str = "", limit: int = 50, offset: int = 0
    ) -> dict[str, Any]:
        page.who(request)
        index = page.engine.library.index
        states = [state] if state else None
        page_size, start = max(1, min(int(limit), LISTED)), max(0, int(offset))
        rows = index.artifacts(states=states, text=query or None, limit=page_size, offset=start)
        shown = ("digest", "problem_text", "answer", "model", "state", "solve_tokens", "size_bytes", "uses", "created")
        return {
            "total": index.count(states=states, text=query or None),
            "artifacts": [{name: getattr(row, name) for name in shown} for row in rows],
        }

    @_typed
    def decide(request: gr.Request, attempt: str, version: int, action: str, reason: str = "") -> dict[str, Any]:
        person = page.who(request, Right.REVIEW)
        decided = page.engine.decide(
            attempt,
            version=int(version),
            action=action,
            reviewer=person.name,
            reason=reason,
        )
        artifact = decided.artifact.digest if decided.artifact is not None else None
        return {"decision": decided.decision.id, "artifact": artifact, "note": decided.note}

    for endpoint, description in (
        (submit, "Queue a problem for the model; returns the job's id."),
        (job, "State, progress and result of a job."),
        (ask, "Queue a question: the library answers where it can, else the model; returns the job's id."),
        (verdict, "What the gate says about a stored problem and a query. Runs no model."),
        (artifacts, "One page of the library's artifacts."),
        (decide, "Approve, reject, flag, skip, note or undo an attempt, at the version that you saw."),
    ):
        gr.api(  # type: ignore[attr-defined]
            endpoint, api_name=endpoint.__name__, api_description=description, concurrency_limit=None
        )


def policy_named(name: str) -> Policy | None:
    """The gate's policy by its name, None for the setting's. `off` is for the graft lab only, not for programs."""
    known = [policy for policy in Policy if policy is not Policy.OFF]
    if name and name not in known:
        raise UsageError(f"unknown gate {name[:40]!r}; one of {', '.join(known)}")
    return Policy(name) if name else None


def _typed(endpoint: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    """An error of ours reaches the caller with its kind and text; any other stays on the server."""

    @wraps(endpoint)
    def call(*given: Any, **named: Any) -> dict[str, Any]:
        try:
            return endpoint(*given, **named)
        except ScionError as error:
            # The page shows errors as HTML.
            raise gr.Error(text(f"{type(error).__name__}: {error}"), print_exception=False) from None

    return call
