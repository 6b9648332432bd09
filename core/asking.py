"""The use case of asking: candidates, gate, then graft, transfer or fresh solve; every ask leaves an outcome.

A damaged or foreign artifact never ends an ask: it becomes a reason, and the problem is solved fresh.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from core import gate, solving
from core.deposit import flops, same_text
from core.energy import measure
from core.gate import Calibration, Judgement, Policy, Reason, Verdict, canonical_key, judge
from core.graft import Exactness, Replay, grafted, replay
from core.jobs import Context, Stream
from core.model import FrozenModel
from core.opening import check_tokens, check_usable, open_artifact
from core.solve import Plan
from library.artifact import Artifact as Opened
from library.artifacts import as_row
from library.errors import Conflict, CorruptError, ModelError, NotFound, StoreError
from library.store import Library
from library.tables import Artifact, Measurement, Outcome

CANDIDATES = 5  # most similar approved problems that the gate looks at


@dataclass(frozen=True)
class Offer:
    """What the library could do for a text, found without the model."""

    verdict: Verdict
    artifact: Artifact | None
    judgement: Judgement | None


@dataclass(frozen=True)
class AskResult:
    """An ask's outcome. `exactness` is empty unless a state was grafted; `attempt_id` if something was solved."""

    verdict: Verdict
    reasons: tuple[Reason, ...]
    answer: str | None
    decode_tokens: int
    prefill_tokens: int
    seconds: float
    exactness: str
    artifact: str | None
    tokens_saved: int
    seconds_saved: float
    joules: float | None
    flops: int
    flagged: bool
    policy: Policy
    text: str = ""
    attempt_id: str | None = None
    outcome_id: str = ""
    first_token_seconds: float = 0.0
    warnings: tuple[str, ...] = ()
    edits: tuple[gate.Edit, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def offer(
    library: Library, query: str, policy: Policy, identity: str | None, calibration: Calibration | None = None
) -> Offer:
    """The gate's best verdict over the candidates for `query`. Reads the library, runs no model, never raises."""
    best = Offer(Verdict.REFUSE, None, None)
    rank = {Verdict.REFUSE: 0, Verdict.TRANSFER: 1, Verdict.GRAFT: 2}
    for row in candidates(library, query, identity):
        judgement = judge(row.problem_text, query, policy, calibration=calibration)
        if best.judgement is None or rank[judgement.verdict] > rank[best.verdict]:
            best = Offer(judgement.verdict, row, judgement)
        if best.verdict is Verdict.GRAFT:
            break
    return best


def candidates(library: Library, query: str, identity: str | None) -> list[Artifact]:
    """Published artifacts with the query's canonical key, then the few whose problems are most similar."""
    exact = library.find_exact(canonical_key(query), identity)
    seen = {row.digest for row in exact}
    likely = [as_row(found.record) for found in library.index.candidates(query, CANDIDATES, identity)]
    similar = [row for row in likely if row.digest not in seen]
    return [*exact, *similar]


def no_candidate() -> Reason:
    return Reason("no_candidate", "no approved problem in the library resembles this one")


def foreign(library: Library, model: FrozenModel, query: str) -> list[Reason]:
    """Why an artifact of this very problem does not serve: another model made it. Names the fields that differ."""
    others = (row for row in library.find_exact(canonical_key(query)) if row.identity != model.identity.digest)
    for row in others:
        try:
            open_artifact(library, model, row)
        except (CorruptError, ModelError, StoreError, NotFound) as fault:
            return [Reason(type(fault).__name__, str(fault))]
    return []


@dataclass(frozen=True)
class Request:
    """One ask. `fresh`: how to solve when nothing applies; None leaves it unanswered."""

    query: str
    policy: Policy
    fresh: Plan | None
    by: str
    job_id: str | None = None
    origin: str = "ask"
    calibration: Calibration | None = None


def ask(model: FrozenModel, library: Library, request: Request, context: Context) -> AskResult:
    """Answer a query from the library where the gate allows it, else fresh. Records the outcome."""
    started = time.perf_counter()
    with measure(model.device.type) as reading:
        result = _ask(model, library, request, context)
    energy = reading.energy
    result = replace(result, seconds=time.perf_counter() - started, joules=energy.joules)
    return record(library, model, request, result)


def _ask(model: FrozenModel, library: Library, request: Request, context: Context) -> AskResult:
    found = offer(library, request.query, request.policy, model.identity.digest, request.calibration)
    reasons: list[Reason] = list(found.judgement.reasons) if found.judgement else [no_candidate()]
    edits = found.judgement.edits if found.judgement else ()
    if found.verdict is not Verdict.GRAFT:
        reasons += foreign(library, model, request.query)
    if found.artifact is not None and found.verdict is not Verdict.REFUSE:
        try:
            opened = open_artifact(library, model, found.artifact)
            check_tokens(library, model, opened, found.artifact)
            check_usable(library, found.artifact.digest, ("published",))  # not revoked while it was read
            if found.verdict is Verdict.GRAFT:
                return graft_answer(model, library, found.artifact, opened, request, reasons, edits, context)
            return transfer(model, library, found.artifact, opened, request, reasons, edits, context)
        except (Conflict, CorruptError, ModelError, StoreError, NotFound) as fault:
            reasons.append(Reason(type(fault).__name__, str(fault)))
    return fresh(model, library, request, reasons, edits, context)


def graft_answer(
    model: FrozenModel,
    library: Library,
    row: Artifact,
    opened: Opened,
    request: Request,
    reasons: Sequence[Reason],
    edits: tuple[gate.Edit, ...],
    context: Context,
) -> AskResult:
    """Replay the deposited answer; hold the artifact if it does not come out, quarantine it if the bits differ."""
    context.report(phase="grafting")
    started = time.perf_counter()
    with model.lock:
        found = replay(model, opened)
    took = time.perf_counter() - started
    continuation = found.continuation
    flagged, warnings = _judge_replay(library, row, opened, found, model, request.by)
    decoded = len(continuation.ids)
    stream = Stream(
        "graft",
        text=continuation.answer,
        tokens=decoded,
        state="stop",
        verdict=str(Verdict.GRAFT),
        answer=continuation.answer,
        exactness=str(found.exactness),
        seconds=took,
        prefill_tokens=len(continuation.cue_ids),
    )
    context.report(streams=(*context.progress.streams, stream), tokens=decoded)
    return AskResult(
        verdict=Verdict.GRAFT,
        reasons=tuple(reasons),
        answer=continuation.answer,
        decode_tokens=decoded,
        prefill_tokens=len(continuation.cue_ids),
        seconds=took,
        exactness=str(found.exactness),
        artifact=row.digest,
        tokens_saved=0 if flagged else max(0, row.solve_tokens - decoded),
        seconds_saved=0.0 if flagged else max(0.0, row.solve_seconds - took),
        joules=None,
        flops=flops(model, len(continuation.cue_ids) + decoded, row.graft_point),
        flagged=flagged,
        policy=request.policy,
        text=continuation.answer,
        first_token_seconds=continuation.first_token_seconds,
        warnings=tuple(warnings),
        edits=edits,
    )


def _judge_replay(
    library: Library, row: Artifact, opened: Opened, found: Replay, model: FrozenModel, by: str
) -> tuple[bool, list[str]]:
    """Acts on what a replay showed: (is the outcome flagged, what to tell)."""
    warnings: list[str] = []
    if found.exactness is Exactness.UNCERTIFIED:
        detail = {"tokens": len(found.continuation.ids)}
        measured(library, model, row, "graft", str(found.measured), detail, by)
        warnings.append(f"made in another environment; measured here: {found.measured}")
    if found.exactness is Exactness.DIVERGENT:
        reason = "a graft in the deposit's own environment gave other tokens"
        library.set_artifact_state(row.digest, "quarantined", reason, by)
        return True, [*warnings, f"{reason}: the artifact is quarantined"]
    if not same_text(found.continuation.answer, opened.manifest.certificate.answer):  # type: ignore[union-attr]
        reason = f"the replay answered {found.continuation.answer!r}, the deposit {row.answer!r}"
        library.hold(row.digest, reason, by)
        return True, [*warnings, f"{reason}: the artifact is held for a person to look at"]
    return False, warnings


def measured(
    library: Library, model: FrozenModel, row: Artifact, kind: str, finding: str, detail: Mapping[str, Any], by: str
) -> None:
    """Record what was found about an artifact in this environment: by a graft, a certification or an audit."""
    measurement = Measurement(
        id="",
        artifact=row.digest,
        kind=kind,
        environment=model.environment.digest,
        finding=finding,
        detail=json.dumps(dict(detail), ensure_ascii=False),
        created="",  # filled in by the library
    )
    library.add_measurement(measurement, actor=by)


def transfer(
    model: FrozenModel,
    library: Library,
    row: Artifact,
    opened: Opened,
    request: Request,
    reasons: Sequence[Reason],
    edits: tuple[gate.Edit, ...],
    context: Context,
) -> AskResult:
    """Use the state as a worked example: the query is a new turn, the answer is new, unverified and sent to review."""
    if request.fresh is None:
        return fresh(model, library, request, reasons, edits, context)
    task = transfer_task(model, opened, row, request.query, request.fresh)
    offset = len(context.progress.streams)
    solved = solving.run(model, library, task, context, job_id=request.job_id, offset=offset)
    return _solved_result(request, Verdict.TRANSFER, reasons, edits, solved, row)


def transfer_task(model: FrozenModel, opened: Opened, row: Artifact, query: str, plan: Plan) -> solving.Task:
    """The query as a new turn after the grafted state, which serves as a worked example."""
    written = opened.manifest
    turn = tuple(model.next_turn_ids(model.profile.instruction.format(problem=query)))
    return solving.Task(
        problem=query,
        prompt_ids=turn,
        plan=replace(plan, attempts=1),
        origin="transfer",
        cache=grafted(model, opened, room=len(turn) + plan.max_tokens),
        past_ids=written.prompt_ids + written.attempt_ids,
        past_runs=written.schedule,
        parent=row.digest,
    )


def fresh(
    model: FrozenModel,
    library: Library,
    request: Request,
    reasons: Sequence[Reason],
    edits: tuple[gate.Edit, ...],
    context: Context,
) -> AskResult:
    """Solve in a fresh context, as a system without a library would."""
    if request.fresh is None:
        nothing = solving.Solved((), None, None, "unsolved", 0, 0, 0.0, 0.0, None, 0, "")
        return _solved_result(request, Verdict.REFUSE, reasons, edits, nothing, None)
    task = solving.fresh_task(model, request.query, request.fresh, origin=request.origin)
    offset = len(context.progress.streams)
    solved = solving.run(model, library, task, context, job_id=request.job_id, offset=offset)
    return _solved_result(request, Verdict.REFUSE, reasons, edits, solved, None)


def _solved_result(
    request: Request,
    verdict: Verdict,
    reasons: Sequence[Reason],
    edits: tuple[gate.Edit, ...],
    solved: solving.Solved,
    row: Artifact | None,
) -> AskResult:
    return AskResult(
        verdict=verdict,
        reasons=tuple(reasons),
        answer=solved.answer,
        decode_tokens=solved.decode_tokens,
        prefill_tokens=solved.prefill_tokens,
        seconds=solved.seconds,
        exactness="",
        artifact=row.digest if row else None,
        tokens_saved=0,
        seconds_saved=0.0,
        joules=solved.joules,
        flops=solved.flops,
        flagged=False,
        policy=request.policy,
        text=solved.text,
        attempt_id=solved.chosen or (solved.attempts[0] if solved.attempts else None),
        warnings=("unverified: the answer awaits review",) if verdict is Verdict.TRANSFER else (),
        edits=edits,
    )


def record(library: Library, model: FrozenModel, request: Request, result: AskResult) -> AskResult:
    """Keep the outcome; the result with its id."""
    outcome = Outcome(
        id="",
        query=request.query,
        artifact=result.artifact,
        policy=str(result.policy),
        verdict=str(result.verdict),
        reasons=json.dumps([asdict(reason) for reason in result.reasons], ensure_ascii=False),
        answer=result.answer,
        decode_tokens=result.decode_tokens,
        prefill_tokens=result.prefill_tokens,
        seconds=result.seconds,
        joules=result.joules,
        flops=result.flops,
        tokens_saved=result.tokens_saved,
        seconds_saved=result.seconds_saved,
        exactness=result.exactness,
        flagged=result.flagged,
        origin=request.origin,
        model=model.name,
        identity=model.identity.digest,
        created="",
        created_by=request.by,
    )
    return replace(result, outcome_id=library.record_outcome(outcome))
