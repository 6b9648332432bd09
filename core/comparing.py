"""The graft lab's use case: one query answered three ways, and a chat that goes on from a grafted state."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from core import asking, solving
from core.cache import new_cache
from core.deposit import flops, same_text
from core.energy import measure
from core.gate import Calibration, Judgement, Policy, Reason, Verdict, judge
from core.graft import grafted
from core.jobs import Context, Stream
from core.model import FrozenModel
from core.opening import check_tokens, open_artifact
from core.solve import Plan, prefill
from library.artifact import Artifact as Opened
from library.errors import Conflict, CorruptError, ModelError, NotFound, StoreError
from library.store import Library
from library.tables import Artifact


@dataclass(frozen=True)
class Run:
    """One of the three runs. `copied`: the stored answer came out although the text is another."""

    answer: str | None
    text: str
    decode_tokens: int
    prefill_tokens: int
    seconds: float
    joules: float | None
    exactness: str
    verdict: str
    reasons: tuple[Reason, ...]
    copied: bool


def compare(
    model: FrozenModel,
    library: Library,
    row: Artifact,
    query: str,
    plan: Plan,
    context: Context,
    *,
    policy: Policy,
    by: str,
    calibration: Calibration | None = None,
) -> Mapping[str, Any]:
    """Fresh, ungated graft and gated graft of `query` against one artifact; nothing of it enters the review queue."""
    judgement = judge(row.problem_text, query, policy, calibration=calibration)
    titles = ("fresh", "ungated", "gated")
    context.report(streams=tuple(Stream(title) for title in titles))
    fresh = _fresh(model, query, plan, context, row)
    ungated = _ungated(model, library, row, query, context, by)
    gated = _gated(model, library, row, query, plan, context, judgement, fresh, ungated)
    runs = dict(zip(titles, (fresh, ungated, gated), strict=True))
    return {
        "stored": {"digest": row.digest, "problem": row.problem_text, "answer": row.answer},
        "query": query,
        "judgement": asdict(judgement),
        "runs": {title: asdict(run) for title, run in runs.items()},
    }


def _fresh(model: FrozenModel, query: str, plan: Plan, context: Context, row: Artifact) -> Run:
    task = solving.fresh_task(model, query, replace(plan, attempts=1))
    return _generate(model, lambda: task, context, 0, Verdict.REFUSE, (), row)


def _ungated(model: FrozenModel, library: Library, row: Artifact, query: str, context: Context, by: str) -> Run:
    reason = Reason("ungated", "no gate was asked: the stored state answers whatever the query says")
    request = asking.Request(query, Policy.OFF, None, by)
    with measure(model.device.type) as reading:  # reading and hashing the state are part of what a graft costs
        try:
            opened = open_artifact(library, model, row)
        except (CorruptError, ModelError, StoreError, NotFound) as fault:
            return _failed(context, 1, fault)
        inner = Context(context.job_id, {}, by, context.cancelled)
        result = asking.graft_answer(model, library, row, opened, request, (reason,), (), inner)
    run = replace(_from_result(result, reading.energy.joules, query, row), seconds=reading.energy.seconds)
    _show(context, 1, run)
    return run


def _gated(
    model: FrozenModel,
    library: Library,
    row: Artifact,
    query: str,
    plan: Plan,
    context: Context,
    judgement: Judgement,
    fresh: Run,
    ungated: Run,
) -> Run:
    """What the gate's verdict leads to; a graft or a fresh solve was run already and is not run twice."""
    if judgement.verdict is Verdict.GRAFT and ungated.exactness:
        try:
            check_tokens(library, model, open_artifact(library, model, row), row)
        except (Conflict, CorruptError, ModelError, StoreError, NotFound) as fault:
            return _failed(context, 2, fault)
        run = replace(ungated, verdict=str(judgement.verdict), reasons=judgement.reasons)
    elif judgement.verdict is Verdict.TRANSFER:

        def task() -> solving.Task:
            opened = open_artifact(library, model, row)
            check_tokens(library, model, opened, row)
            return asking.transfer_task(model, opened, row, query, plan)

        try:
            run = _generate(model, task, context, 2, Verdict.TRANSFER, judgement.reasons, row)
        except (Conflict, CorruptError, ModelError, StoreError, NotFound) as fault:
            return _failed(context, 2, fault)
    else:
        run = replace(fresh, verdict=str(Verdict.REFUSE), reasons=judgement.reasons)
    _show(context, 2, run)
    return run


def _generate(
    model: FrozenModel,
    make: Callable[[], solving.Task],
    context: Context,
    place: int,
    verdict: Verdict,
    reasons: tuple[Reason, ...],
    row: Artifact,
) -> Run:
    """One attempt at the task that `make` gives; making it, which may read and restore a state, is metered too."""
    inner = Context(context.job_id, {}, context.owner, context.cancelled)
    titles = context.progress.streams

    def show(progress: Any) -> None:
        stream = replace(progress.streams[0], title=titles[place].title)
        streams = list(context.progress.streams)
        streams[place] = stream
        context.report(
            phase=progress.phase,
            streams=tuple(streams),
            tokens=progress.tokens,
            budget=progress.budget,
            tokens_per_second=progress.tokens_per_second,
        )

    inner.on_progress = lambda progress: show(progress) if progress.streams else None
    with measure(model.device.type) as reading:
        task = make()
        watch = solving.Watch(model, inner, task)
        attempts = solving.attempts_of(model, task, context, watch.step, lambda attempt, live: watch.finish(attempt))
    context.check()
    attempt = attempts[0]
    return Run(
        answer=attempt.answer,
        text=attempt.solution,
        decode_tokens=attempt.decoded,
        prefill_tokens=len(task.prompt_ids),
        seconds=reading.energy.seconds,
        joules=reading.energy.joules,
        exactness="",
        verdict=str(verdict),
        reasons=reasons,
        copied=copied(task.problem, attempt.answer, row),
    )


def copied(query: str, answer: str | None, row: Artifact) -> bool:
    """Is this the stored answer, given to another text?"""
    return query.strip() != row.problem_text.strip() and answer is not None and same_text(answer, row.answer)


def _from_result(result: asking.AskResult, joules: float | None, query: str, row: Artifact) -> Run:
    return Run(
        result.answer,
        result.text,
        result.decode_tokens,
        result.prefill_tokens,
        result.seconds,
        joules,
        result.exactness,
        str(result.verdict),
        result.reasons,
        copied(query, result.answer, row),
    )


def _failed(context: Context, place: int, fault: Exception) -> Run:
    reason = Reason(type(fault).__name__, str(fault))
    run = Run(None, "", 0, 0, 0.0, None, "", str(Verdict.REFUSE), (reason,), False)
    _show(context, place, run)
    return run


def _show(context: Context, place: int, run: Run) -> None:
    streams = list(context.progress.streams)
    streams[place] = replace(
        streams[place],
        text=run.text,
        tokens=run.decode_tokens,
        state="stop",
        verdict=run.verdict,
        answer=run.answer,
        exactness=run.exactness,
        seconds=run.seconds,
        prefill_tokens=run.prefill_tokens,
    )
    context.report(streams=tuple(streams))


def chat(
    model: FrozenModel, opened: Opened, row: Artifact, messages: tuple[str, ...], plan: Plan, context: Context
) -> Mapping[str, Any]:
    """Go on from a grafted state: each message is a turn, the last one is answered.

    Earlier turns are given as (message, answer) texts in order; they are prefilled after the graft. Also measures
    what a re-prefill of the same positions would take, in the same run.
    """
    written = opened.manifest
    turn: list[int] = []
    for number, text in enumerate(messages):
        turn += model.next_turn_ids(text) if number % 2 == 0 else model.tokenizer.encode(text, add_special_tokens=False)
    started = time.perf_counter()
    cache = grafted(model, opened, room=len(turn) + plan.max_tokens)
    restored = time.perf_counter() - started
    task = solving.Task(
        written.problem,
        tuple(turn),
        replace(plan, attempts=1),
        cache=cache,
        past_ids=written.prompt_ids + written.attempt_ids,
    )
    first: list[float] = []
    watch = solving.Watch(model, context, task)

    def step(rows: Any, decoded: int) -> None:
        if not first:
            first.append(time.perf_counter() - started)
        watch.step(rows, decoded)

    with model.lock:
        attempts = solving.attempts_of(model, task, context, step, lambda attempt, live: watch.finish(attempt))
        context.check()
        begun = time.perf_counter()
        prefill(model, new_cache(model.config, room=len(task.past_ids)), task.past_ids, context.cancelled)
        again = time.perf_counter() - begun
    attempt = attempts[0]
    return {
        "artifact": row.digest,
        "text": attempt.solution,
        "decode_tokens": attempt.decoded,
        "prefill_tokens": len(turn),
        "restored_tokens": len(task.past_ids),
        "restore_seconds": restored,
        "first_token_seconds": first[0] if first else time.perf_counter() - started,
        "reprefill_seconds": again,
        "flops": flops(model, len(turn) + attempt.decoded, len(task.past_ids)),
    }
