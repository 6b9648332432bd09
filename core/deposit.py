"""From a finished attempt to a staged file, and from an approved staged file to a published artifact.

The certificate is made while the attempt's cache is still alive; approval needs no model. Knows the library's
shapes and the model's states, not how an attempt came about.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from core.answer import normalise
from core.energy import decode_flops
from core.gate import CANONICAL_VERSION, canonical_key
from core.graft import Continuation, follow_cue
from core.model import FrozenModel
from core.profiles import cue_ids
from core.solve import Attempt, Plan, captured, prefill_runs
from core.state import State, state_tensors
from core.verify import VERIFIER_VERSION
from core.verify import Evidence as Finding
from library import manifest as m
from library import tables
from library.artifact import Artifact, Encoded, decode_verified, encode, tensor_digests
from library.audit import now
from library.digest import Digest
from library.errors import Conflict
from library.store import Library


@dataclass(frozen=True)
class Held:
    """A finished attempt whose state is worth keeping, with the continuation that proves it."""

    attempt: Attempt
    state: State
    continuation: Continuation

    @property
    def replays(self) -> bool:
        """Does the cue read back the attempt's own answer?"""
        answer = self.attempt.answer
        return self.continuation.closed and answer is not None and same_text(answer, self.continuation.answer)


@dataclass(frozen=True)
class Origin:
    """What a staged state came from: enough to write its manifest. `restored`: positions that a graft brought."""

    problem: str
    reference: str | None
    prompt_ids: tuple[int, ...]
    schedule: tuple[m.Run, ...]
    parent: str | None = None
    restored: int = 0


def same_text(first: str, second: str) -> bool:
    """Equal after normalising how an answer is written (not by value: a replay repeats, it does not compute)."""
    return normalise(first) == normalise(second)


def hold(model: FrozenModel, attempt: Attempt, live: Callable[[], Any], past: int) -> Held:
    """Capture the state of a finished attempt, then try the profile's cues on copies of the live cache.

    The first cue that reads back the answer is kept, else the first. `past`: positions before the attempt's ids.
    """
    cache = live()
    state = captured(cache, attempt, past)
    tried: list[Continuation] = []
    for number, cue in enumerate(model.profile.cues):
        continuation = follow_cue(model, cache if number == 0 else live(), cue_ids(model.tokenizer, cue))
        tried.append(continuation)
        held = Held(attempt, state, continuation)
        if held.replays:
            return held
    return Held(attempt, state, tried[0])


def flops(model: FrozenModel, tokens: int, context: int) -> int:
    """Estimated FLOPs of running `tokens` positions at a mean context of `context` (core/energy.py)."""
    config = model.config
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    return decode_flops(model.parameters, tokens, config.num_hidden_layers, config.num_attention_heads, head, context)


def prefill_manifest(
    model: FrozenModel,
    state: State,
    ids: Sequence[int],
    *,
    kind: Literal["solution", "segment"],
    problem: str,
    max_tokens: int,
    certificate: m.Certificate | None = None,
    parent: str | None = None,
    source: m.Source | None = None,
) -> m.Manifest:
    """The manifest of a state that only read `ids`, int [length]: nothing decoded, no cost in time, no date."""
    return m.Manifest(
        schema_version=m.SCHEMA_VERSION,
        kind=kind,
        problem=problem,
        reference=None,
        solution="",
        thinking="",
        answer="",
        prompt_ids=tuple(ids),
        attempt_ids=(),
        schedule=tuple(prefill_runs(len(ids))),
        graft_point=len(ids),
        sampling=m.Sampling(temperature="0.0", top_p="1.0", seed=0, max_tokens=max_tokens),
        identity=model.identity,
        environment=model.environment,
        layers=state.layers,
        tensors=tensor_digests(state_tensors(state)),
        certificate=certificate,
        evidence=(),
        decisions=(),
        cost=m.Cost(prefill_tokens=len(ids), decode_tokens=0, microseconds=0, millijoules=None, flops=0),
        parent=parent,
        source=source,
        created="",
    )


def stage(library: Library, model: FrozenModel, origin: Origin, held: Held, plan: Plan, joules: float | None) -> str:
    """Write the attempt's state into the library's staging area; the staged file's digest. `joules`: its own."""
    attempt = held.attempt
    tensors = state_tensors(held.state)
    prompt = len(origin.prompt_ids)
    prefilled = prompt - origin.restored
    written = m.Manifest(
        schema_version=m.SCHEMA_VERSION,
        kind="solution",
        problem=origin.problem,
        reference=origin.reference,
        solution=attempt.solution,
        thinking=attempt.thinking,
        answer=attempt.answer or "",
        prompt_ids=origin.prompt_ids,
        attempt_ids=attempt.ids,
        schedule=origin.schedule,
        graft_point=prompt + len(attempt.ids),
        sampling=m.Sampling(
            temperature=repr(plan.temperature),
            top_p=repr(plan.top_p),
            seed=plan.seed,
            max_tokens=plan.max_tokens,
            attempt=attempt.number,
            attempts=plan.attempts,
        ),
        identity=model.identity,
        environment=model.environment,
        layers=held.state.layers,
        tensors=tensor_digests(tensors),
        certificate=held.continuation.certificate(),
        evidence=(),
        decisions=(),
        cost=m.Cost(
            prefill_tokens=prefilled,
            decode_tokens=attempt.decoded,
            microseconds=round(attempt.seconds * 1e6),
            millijoules=None if joules is None else round(joules * 1e3),
            flops=flops(model, prefilled + attempt.decoded, prompt + attempt.decoded // 2),
        ),
        parent=origin.parent,
        source=None,
        created=now(),
    )
    return library.stage(encode(written, tensors))


def open_staged(library: Library, digest: str) -> Artifact:
    """A staged file, hashed as it was read. Raises `CorruptError` if it is not what it was."""
    return decode_verified(library.read_staged(digest), Digest.parse(digest))


def unreplayable(library: Library, digest: str) -> str | None:
    """Why a staged state must not be deposited: its cue does not read its own answer back. None if it does."""
    written = open_staged(library, digest).manifest
    read = written.certificate.answer if written.certificate else ""
    if written.certificate is not None and same_text(read, written.answer):
        return None
    return f"its answer is {written.answer!r}, but the answer cue reads {read!r}"


def sealed(library: Library, row: tables.Attempt) -> tuple[Encoded, tables.Artifact]:
    """The artifact that an approved attempt becomes: its staged tensors under a manifest with evidence and decisions.

    Raises `Conflict` if nothing is staged; `CorruptError` if the staged file is not what it was.
    """
    if row.staged is None:
        raise Conflict(f"attempt {row.id} has no staged state: it was discarded or is published already")
    staged = open_staged(library, row.staged)
    evidence = tuple(
        m.Evidence.model_validate(
            {"check": e.check_name, "outcome": e.outcome, "summary": e.summary, "verifier": e.verifier}
        )
        for e in library.evidence(row.id)
    )
    decisions = tuple(
        m.DecisionNote(id=d.id, reviewer=d.reviewer, action=d.action, reason=d.reason, time=d.created)
        for d in library.decisions(row.id)
    )
    written = staged.manifest.model_copy(update={"evidence": evidence, "decisions": decisions})
    encoded = encode(written, tuple(staged.tensors.values()))
    approver = next((d.reviewer for d in reversed(decisions) if d.action == "approve"), "")
    return encoded, artifact_row(encoded, written, row, reviewer=approver)


def artifact_row(encoded: Encoded, written: m.Manifest, row: tables.Attempt, *, reviewer: str) -> tables.Artifact:
    """The library's record of an artifact, from its manifest and the attempt's measurements."""
    return tables.Artifact(
        digest=str(encoded.digest),
        kind=written.kind,
        attempt_id=row.id,
        problem_text=written.problem,
        canonical_key=canonical_key(written.problem),
        canonical_version=CANONICAL_VERSION,
        answer=written.answer,
        model=row.model,
        identity=written.identity.digest,
        environment=written.environment.digest,
        verifier=VERIFIER_VERSION,
        reviewer=reviewer,
        size_bytes=encoded.size,
        stored_bytes=encoded.size,
        graft_point=written.graft_point,
        solve_tokens=row.decode_tokens,
        solve_seconds=row.seconds,
        solve_flops=row.flops,
        solve_joules=row.joules,
        parent=written.parent,
        created=now(),
    )


def evidence_rows(attempt_id: str, findings: Sequence[Finding]) -> list[tables.Evidence]:
    """Database rows of what the checks found."""
    return [
        tables.Evidence(
            attempt_id=attempt_id,
            check_name=finding.check,
            outcome=finding.outcome,
            summary=finding.summary,
            detail=json.dumps(dict(finding.detail), ensure_ascii=False),
            verifier=VERIFIER_VERSION,
            created=now(),
        )
        for finding in findings
    ]
