"""Asking: what is offered, what a replay that goes wrong leads to. The whole way is in test_end_to_end."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

from core import asking, comparing, solving
from core.asking import Request, candidates, foreign, graft_answer, offer
from core.gate import Policy, Verdict
from core.graft import Exactness
from core.jobs import Context
from core.model import FrozenModel, fingerprint
from core.opening import open_artifact
from core.solve import Plan
from library.errors import IdentityMismatch
from library.store import Library
from tests.conftest import ANSWER, PROBLEM, Deposit
from tests.core.engines import asked, engine_at, result_of

OTHER = "A farmer has 12 hens and buys 3 more. How many hens does the farmer have?"


def context() -> Context:
    return Context("", {}, "ada", threading.Event())


def request(query: str = PROBLEM, fresh: Plan | None = None) -> Request:
    return Request(query, Policy.STRICT, fresh, "ada")


def test_an_empty_library_offers_nothing(library: Library) -> None:
    found = offer(library, PROBLEM, Policy.STRICT, None)
    assert (found.verdict, found.artifact, found.judgement) == (Verdict.REFUSE, None, None)


def test_the_same_problem_is_offered_without_a_model(golden: Deposit) -> None:
    with Library.open(golden.folder) as library:
        found = offer(library, f"  {PROBLEM}\n", Policy.STRICT, None)
        other = offer(library, OTHER, Policy.STRICT, None)
        foreign_only = offer(library, PROBLEM, Policy.STRICT, "blake3:" + "0" * 64)
    assert found.artifact is not None
    assert (found.verdict, found.artifact.digest) == (Verdict.GRAFT, golden.artifact)
    assert other.verdict is Verdict.REFUSE
    assert (foreign_only.verdict, foreign_only.artifact) == (Verdict.REFUSE, None)


@pytest.mark.parametrize("state", ["quarantined", "revoked"])
def test_what_is_out_of_use_is_never_a_candidate(deposited: Deposit, state: str) -> None:
    with Library.open(deposited.folder) as library:
        assert [row.digest for row in candidates(library, PROBLEM, None)] == [deposited.artifact]
        if state == "revoked":
            library.revoke(deposited.artifact, reason="wrong", actor="ada")
        else:
            library.set_artifact_state(deposited.artifact, state, "damaged", "ada")
        assert candidates(library, PROBLEM, None) == []


def test_an_exception_in_the_gate_is_a_refusal(
    model: FrozenModel, deposited: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any, **options: Any) -> Any:
        raise RuntimeError("a rule is broken")

    monkeypatch.setattr(sys.modules["core.gate.judge"], "_judge", broken)
    with engine_at(deposited.folder, model) as engine:
        result = asked(engine, PROBLEM, fresh_max_tokens=0)
    assert (result["verdict"], result["answer"]) == ("REFUSE", None)
    assert "a rule is broken" in str(result["reasons"])


def test_another_models_artifact_is_named_with_its_field(model: FrozenModel, golden: Deposit) -> None:
    weights = fingerprint({**model.identity.fields, "weights": "blake3:" + "9" * 64})
    with Library.open(golden.folder) as library:
        assert foreign(library, model, PROBLEM) == []
        (same_name,) = foreign(library, replace(model, identity=weights), PROBLEM)
        (other_name,) = foreign(library, replace(model, identity=weights, name="other"), PROBLEM)
        row = library.artifact(golden.artifact)
        with pytest.raises(IdentityMismatch, match="'other'"):
            open_artifact(library, replace(model, identity=weights, name="other"), row)
    assert same_name.code == other_name.code == "IdentityMismatch"
    assert "weights" in same_name.text
    assert model.name in other_name.text


@pytest.mark.parametrize(
    ("exactness", "answer", "state", "saved"),
    [
        (Exactness.EXACT, ANSWER, "published", True),
        (Exactness.ARGMAX, ANSWER, "published", True),
        (Exactness.UNCERTIFIED, ANSWER, "published", True),
        (Exactness.DIVERGENT, ANSWER, "quarantined", False),
        (Exactness.UNCERTIFIED, "8", "held", False),
    ],
)
def test_what_a_replay_leads_to(
    model: FrozenModel,
    deposited: Deposit,
    monkeypatch: pytest.MonkeyPatch,
    exactness: Exactness,
    answer: str,
    state: str,
    saved: bool,
) -> None:
    real = asking.replay

    def altered(*arguments: Any) -> Any:
        found = real(*arguments)
        return replace(found, exactness=exactness, continuation=replace(found.continuation, answer=answer))

    monkeypatch.setattr(asking, "replay", altered)
    with Library.open(deposited.folder) as library:
        row = library.artifact(deposited.artifact)
        opened = open_artifact(library, model, row)
        result = graft_answer(model, library, row, opened, request(), (), (), context())
        after = library.artifact(deposited.artifact)
        measured = library.measurements(deposited.artifact, limit=5)
    assert (after.state, result.exactness, result.flagged) == (state, str(exactness), not saved)
    assert (result.tokens_saved > 0) is saved
    assert bool(result.warnings) is (state != "published" or exactness is Exactness.UNCERTIFIED)
    assert [m.kind for m in measured] == (["graft"] if exactness is Exactness.UNCERTIFIED else [])


def test_a_transfer_goes_on_from_the_grafted_state(model: FrozenModel, deposited: Deposit) -> None:
    """A new turn after the deposit's own: only the turn is prefilled, the answer is new and awaits review."""
    with Library.open(deposited.folder) as library:
        row = library.artifact(deposited.artifact)
        opened = open_artifact(library, model, row)
        plan = Plan(max_tokens=64)
        result = asking.transfer(model, library, row, opened, request(OTHER, plan), (), (), context())
        assert (result.verdict, result.exactness, result.tokens_saved) == (Verdict.TRANSFER, "", 0)
        assert 0 < result.prefill_tokens < 60 < len(model.prompt_ids(OTHER))
        attempt = library.attempt(str(result.attempt_id))
        assert attempt.origin == "transfer"
        assert attempt.prompt_tokens == row.graft_point + result.prefill_tokens
        assert result.warnings
        without = asking.transfer(model, library, row, opened, request(OTHER, None), (), (), context())
    assert (without.verdict, without.answer, without.attempt_id) == (Verdict.REFUSE, None, None)


def test_every_ask_leaves_an_outcome(model: FrozenModel, deposited: Deposit) -> None:
    with engine_at(deposited.folder, model) as engine:
        grafted, refused = (asked(engine, text, fresh_max_tokens=0) for text in (PROBLEM, OTHER))
        rows = {row.id: row for row in engine.library.outcomes(limit=10)}
    kept = rows[grafted["outcome_id"]]
    assert (kept.verdict, kept.exactness, kept.artifact) == ("GRAFT", "byte-exact", deposited.artifact)
    assert (kept.decode_tokens, kept.prefill_tokens) == (grafted["decode_tokens"], grafted["prefill_tokens"])
    assert kept.created_by == "tester"
    assert rows[refused["outcome_id"]].verdict == "REFUSE"
    assert rows[refused["outcome_id"]].tokens_saved == 0


@pytest.mark.parametrize("job", ["ask", "compare"])
def test_reading_and_hashing_are_inside_what_is_metered(
    model: FrozenModel, deposited: Deposit, monkeypatch: pytest.MonkeyPatch, job: str
) -> None:
    """Every read of the state's bytes happens while a meter runs: a graft's cost begins with its load."""
    running: list[int] = []
    seen: list[bool] = []
    real_measure, real_read = asking.measure, Library.read_blob

    @contextmanager
    def measure(kind: str) -> Iterator[Any]:
        running.append(1)
        with real_measure(kind) as reading:
            yield reading
        running.pop()

    def read_blob(library: Library, digest: str) -> memoryview:
        seen.append(bool(running))
        return real_read(library, digest)

    for module in (asking, comparing, solving):
        monkeypatch.setattr(module, "measure", measure)
    monkeypatch.setattr(Library, "read_blob", read_blob)
    with engine_at(deposited.folder, model) as engine:
        if job == "ask":
            assert asked(engine, PROBLEM, fresh_max_tokens=0)["exactness"] == "byte-exact"
        else:
            near = PROBLEM.replace("5 more", "6 more")
            found = result_of(engine, engine.submit_compare(deposited.artifact, near, by="ada", max_tokens=2))
            assert found["runs"]["gated"]["verdict"] == "TRANSFER"
    assert len(seen) == (1 if job == "ask" else 2)
    assert all(seen)
