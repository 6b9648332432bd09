"""The use case of solving: attempts on the model, evidence on each, one of them put before the reviewers.

Knows model, checks and library; not the queue's threads and not the page.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from core import deposit, verify
from core.answer import normalise, split_thinking
from core.deposit import Held, Origin
from core.energy import Energy, measure
from core.equivalence import equal
from core.gate import CANONICAL_VERSION, canonical_key
from core.jobs import Context, Stream
from core.model import FrozenModel
from core.solve import Attempt, Finish, Finished, Listener, Plan, Row, solve
from library import manifest as m
from library import tables
from library.store import Library

_SHOW_SECONDS = 0.12  # how often texts are decoded for a person to read


@dataclass(frozen=True)
class Solved:
    """What a solve left: every attempt's record id, the one put up for review, and the whole cost."""

    attempts: tuple[str, ...]
    chosen: str | None
    answer: str | None
    status: str
    decode_tokens: int
    prefill_tokens: int
    seconds: float
    tokens_per_second: float
    joules: float | None
    flops: int
    text: str

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Task:
    """What to solve, and from which state: a fresh context, or after a graft (`cache` holds `past` positions)."""

    problem: str
    prompt_ids: tuple[int, ...]
    plan: Plan
    reference: str | None = None
    origin: str = "solve"
    cache: Any = None
    past_ids: tuple[int, ...] = ()
    past_runs: tuple[m.Run, ...] = ()
    parent: str | None = None

    @property
    def source(self) -> Origin:
        """Prompt ids and schedule up to the attempt, the grafted positions included."""
        past = len(self.past_ids)
        return Origin(self.problem, self.reference, self.past_ids + self.prompt_ids, self.past_runs, self.parent, past)


class Watch:
    """Follows the rows of a solve for a person, at a few hertz; also the solve's early stop."""

    def __init__(self, model: FrozenModel, context: Context, task: Task, offset: int = 0) -> None:
        self.model, self.context, self.task = model, context, task
        self.started = time.perf_counter()
        self.shown = 0.0
        self.before = list(context.progress.streams[:offset])
        streams = (Stream(f"attempt {n + 1}") for n in range(task.plan.attempts))
        self.streams = dict(enumerate(streams))
        self.decoded = 0

    def step(self, rows: Sequence[Row], decoded: int) -> None:
        now = time.perf_counter()
        if now - self.shown < _SHOW_SECONDS:
            return
        self.shown = now
        for row in rows:
            thinking, text = self._split(row.ids)
            self.streams[row.number] = replace(
                self.streams[row.number], thinking=thinking, text=text, tokens=len(row.ids), state="running"
            )
        self.publish(max(len(row.ids) for row in rows), decoded)

    def finish(self, attempt: Attempt) -> bool:
        """Show a finished attempt. Always False: it ends nothing, so that it can serve as a solve's `Finished`."""
        self.decoded += attempt.decoded
        self.streams[attempt.number] = replace(
            self.streams[attempt.number],
            thinking=attempt.thinking,
            text=attempt.solution,
            tokens=attempt.decoded,
            state=attempt.finish,
            answer=attempt.answer,
            seconds=attempt.seconds,
        )
        self.publish(attempt.decoded, self.decoded)
        return False

    def publish(self, tokens: int, decoded: int) -> None:
        seconds = time.perf_counter() - self.started
        running = [n for n, s in self.streams.items() if s.state == "running"]
        self.context.report(
            phase="decoding",
            tokens=tokens,
            budget=self.task.plan.max_tokens,
            tokens_per_second=decoded / seconds if seconds else 0.0,
            seconds=seconds,
            attempt=(min(running) if running else len(self.streams) - 1) + 1,
            attempts=len(self.streams),
            streams=tuple(self.before) + tuple(self.streams.values()),
        )

    def _split(self, ids: Sequence[int]) -> tuple[str, str]:
        text = self.model.decode(ids)
        markers = self.model.profile.thinking
        return split_thinking(text, *markers) if markers else ("", text)


def attempts_of(
    model: FrozenModel, task: Task, context: Context, on_step: Listener, on_finish: Finished
) -> list[Attempt]:
    """Run a task's attempts on the model, which is ours alone meanwhile. Records nothing; consumes `task.cache`."""
    with model.lock:
        return solve(
            model,
            task.prompt_ids,
            task.plan,
            cache=task.cache,
            past=len(task.past_ids),
            on_step=on_step,
            on_finish=on_finish,
            cancelled=context.cancelled,
        )


def run(
    model: FrozenModel, library: Library, task: Task, context: Context, *, job_id: str | None, offset: int = 0
) -> Solved:
    """Solve a task and record it. The chosen attempt is staged and put up for review with all evidence."""
    watch = Watch(model, context, task, offset)
    held: dict[str, Held] = {}
    right: dict[str, bool] = {}
    context.report(phase="prefill", budget=task.plan.max_tokens)

    def on_finish(attempt: Attempt, live: Callable[[], Any]) -> bool:
        watch.finish(attempt)
        if attempt.finish != "stop" or attempt.answer is None:
            return False
        key = normalise(attempt.answer)
        if key not in right:
            right[key] = task.reference is not None and equal(task.reference, attempt.answer).is_equal
        if key not in held or not held[key].replays:
            held[key] = deposit.hold(model, attempt, live, len(task.past_ids) + len(task.prompt_ids))
        return right[key] and held[key].replays

    with measure(model.device.type) as reading:
        finished = attempts_of(model, task, context, watch.step, on_finish)
    context.report(phase="checking")
    return _record(model, library, task, finished, held, right, reading.energy, job_id, context.owner)


def _record(
    model: FrozenModel,
    library: Library,
    task: Task,
    finished: Sequence[Attempt],
    held: Mapping[str, Held],
    right: Mapping[str, bool],
    energy: Energy,
    job_id: str | None,
    owner: str,
) -> Solved:
    chosen = _choose(finished, held, right)
    problem_id = add_problem(library, task.problem, task.reference, task.origin, owner)
    ids: list[str] = []
    chosen_id = None
    cancelled = any(a.finish == "cancelled" for a in finished)
    for attempt in finished:
        mine = chosen is not None and attempt.number == chosen.attempt.number
        keep = chosen if mine and not cancelled else None
        row = _row(model, task, attempt, problem_id, job_id, owner)
        row.joules = _share(energy.joules, attempt, finished)
        if keep is not None:
            origin = replace(task.source, schedule=task.past_runs + attempt.schedule)
            row.staged = deposit.stage(library, model, origin, keep, task.plan, row.joules)
            row.review = "pending"
        others = [a.answer for a in finished if a.number != attempt.number and a.finish in ("stop", "length")]
        evidence = _evidence(task, attempt, keep, others) if keep is not None else ()
        ids.append(library.add_attempt(row, deposit.evidence_rows("", evidence)))
        if keep is not None:
            chosen_id = ids[-1]
    decoded = sum(a.decoded for a in finished)
    best = chosen.attempt if chosen else (finished[0] if finished else None)
    return Solved(
        attempts=tuple(ids),
        chosen=chosen_id,
        answer=best.answer if best else None,
        status=_status(task, finished, chosen, right),
        decode_tokens=decoded,
        prefill_tokens=len(task.prompt_ids),
        seconds=energy.seconds,
        tokens_per_second=decoded / energy.seconds if energy.seconds else 0.0,
        joules=energy.joules,
        flops=deposit.flops(model, len(task.prompt_ids) + decoded, len(task.source.prompt_ids)),
        text=best.solution if best else "",
    )


def _share(joules: float | None, attempt: Attempt, finished: Sequence[Attempt]) -> float | None:
    """An attempt's part of what the whole solve took: rows of a batch share every step, so by the tokens decoded."""
    return None if joules is None else joules * attempt.decoded / max(1, sum(other.decoded for other in finished))


def _choose(finished: Sequence[Attempt], held: Mapping[str, Held], right: Mapping[str, bool]) -> Held | None:
    """Right by the reference first, then what most attempts agree on; one that replays before one that does not."""
    if not held:
        return None
    votes = Counter(normalise(a.answer) for a in finished if a.answer is not None and a.finish in ("stop", "length"))
    return held[max(held, key=lambda key: (right.get(key, False), held[key].replays, votes[key]))]


def _status(task: Task, finished: Sequence[Attempt], chosen: Held | None, right: Mapping[str, bool]) -> str:
    if any(a.finish == "cancelled" for a in finished):
        return "cancelled"
    if chosen is None:
        return "truncated" if any(a.finish == "length" for a in finished) else "unsolved"
    if task.reference is None or right.get(normalise(chosen.attempt.answer or ""), False):
        return "solved"
    return "unsolved"


_ROW_STATUS: dict[Finish, str] = {"stop": "solved", "length": "truncated", "cancelled": "cancelled"}


def _row(
    model: FrozenModel, task: Task, attempt: Attempt, problem_id: str, job_id: str | None, owner: str
) -> tables.Attempt:
    runs = [run.model_dump() for run in task.past_runs + attempt.schedule]
    return tables.Attempt(
        id="",
        problem_id=problem_id,
        job_id=job_id,
        number=attempt.number,
        origin=task.origin,
        model=model.name,
        identity=model.identity.digest,
        environment=model.environment.digest,
        sampling=json.dumps({**asdict(task.plan), "schedule": runs}),
        thinking=attempt.thinking,
        solution=attempt.solution,
        answer=attempt.answer,
        status=_ROW_STATUS.get(attempt.finish, "cancelled"),
        prompt_tokens=len(task.source.prompt_ids),
        decode_tokens=attempt.decoded,
        seconds=attempt.seconds,
        tokens_per_second=attempt.decoded / attempt.seconds if attempt.seconds else 0.0,
        flops=deposit.flops(model, len(task.prompt_ids) + attempt.decoded, len(task.source.prompt_ids)),
        created="",
        created_by=owner,
    )


def _evidence(task: Task, attempt: Attempt, held: Held, others: Sequence[str | None]) -> tuple[verify.Evidence, ...]:
    return verify.verify(
        verify.Subject(
            problem=task.problem,
            reference=task.reference,
            solution=attempt.solution,
            thinking=attempt.thinking,
            answer=attempt.answer,
            extraction_method=attempt.extracted.method if attempt.extracted else None,
            finish=attempt.finish,
            token_ids=attempt.ids,
            sibling_answers=tuple(others),
            replayed_answer=held.continuation.answer,
        )
    )


def add_problem(library: Library, text: str, reference: str | None, source: str, by: str) -> str:
    """The problem's row under its canonical key."""
    return library.add_problem(
        text,
        canonical_key=canonical_key(text),
        canonical_version=CANONICAL_VERSION,
        reference=reference,
        source=source,
        by=by,
    )


def fresh_task(
    model: FrozenModel, problem: str, plan: Plan, *, reference: str | None = None, origin: str = "solve"
) -> Task:
    """A task in a fresh context."""
    return Task(problem, tuple(model.prompt_ids(problem)), plan, reference, origin)
