"""The graft lab: one query three ways, and a chat that goes on from a state."""

from __future__ import annotations

import json

import pytest

from core.comparing import copied
from core.model import FrozenModel
from library.store import Library
from tests.conftest import ANSWER, PROBLEM, Deposit
from tests.core.engines import engine_at, result_of
from tests.library.stores import record_of

NEAR = PROBLEM.replace("5 more", "6 more")


@pytest.mark.parametrize(
    ("query", "answer", "found"),
    [
        (PROBLEM, ANSWER, False),
        (f" {PROBLEM} ", ANSWER, False),
        (NEAR, ANSWER, True),
        (NEAR, "8", False),
        (NEAR, None, False),
    ],
)
def test_a_stored_answer_to_another_text_is_a_copy(query: str, answer: str | None, found: bool) -> None:
    assert copied(query, answer, record_of(PROBLEM, answer=ANSWER)) is found


def test_a_near_miss_is_copied_ungated_and_solved_anew_gated(model: FrozenModel, deposited: Deposit) -> None:
    with engine_at(deposited.folder, model) as engine:
        job = engine.submit_compare(deposited.artifact, NEAR, by="ada", max_tokens=64)
        result = result_of(engine, job)
        streams = engine.job(job).progress.streams
        waiting = engine.library.attempts(review="pending")
    runs = result["runs"]
    assert runs["ungated"]["copied"]
    assert (runs["ungated"]["answer"], runs["ungated"]["exactness"]) == (ANSWER, "byte-exact")
    assert runs["gated"]["verdict"] == result["judgement"]["verdict"] == "TRANSFER"
    assert runs["gated"]["reasons"]
    assert not runs["gated"]["exactness"]
    assert 0 < runs["gated"]["prefill_tokens"] < runs["fresh"]["prefill_tokens"]
    assert runs["ungated"]["decode_tokens"] < runs["fresh"]["decode_tokens"]
    assert [stream.title for stream in streams] == ["fresh", "ungated", "gated"]
    assert {stream.state for stream in streams} <= {"stop", "length"}
    assert waiting == []  # the lab puts nothing before the reviewers
    json.dumps(dict(result))


def test_the_same_problem_is_grafted_by_the_gate(model: FrozenModel, deposited: Deposit) -> None:
    with engine_at(deposited.folder, model) as engine:
        result = result_of(engine, engine.submit_compare(deposited.artifact, PROBLEM, by="ada", max_tokens=4))
    gated = result["runs"]["gated"]
    assert (gated["verdict"], gated["answer"], gated["exactness"], gated["copied"]) == (
        "GRAFT",
        ANSWER,
        "byte-exact",
        False,
    )


def test_a_damaged_artifact_fails_two_columns_and_not_the_third(model: FrozenModel, deposited: Deposit) -> None:
    path = deposited.blob()
    raw = bytearray(path.read_bytes())
    raw[-1] ^= 1
    path.chmod(0o600)
    path.write_bytes(raw)
    with engine_at(deposited.folder, model) as engine:
        result = result_of(engine, engine.submit_compare(deposited.artifact, PROBLEM, by="ada", max_tokens=4))
    runs = result["runs"]
    assert runs["fresh"]["decode_tokens"] == 4
    assert (runs["ungated"]["answer"], runs["ungated"]["verdict"]) == (None, "REFUSE")
    assert runs["ungated"]["reasons"][0]["code"] == "DigestMismatch"
    assert (runs["gated"]["verdict"], runs["gated"]["exactness"]) == ("REFUSE", "")


def test_a_chat_goes_on_from_the_state(model: FrozenModel, deposited: Deposit) -> None:
    with engine_at(deposited.folder, model) as engine:
        first = result_of(engine, engine.submit_chat(deposited.artifact, "And with 9 more?", by="ada", max_tokens=12))
        history = ("And with 9 more?", str(first["text"]))
        second = result_of(
            engine, engine.submit_chat(deposited.artifact, "Thanks.", by="ada", history=history, max_tokens=4)
        )
    with Library.open(deposited.folder) as library:
        point = library.artifact(deposited.artifact).graft_point
    assert first["restored_tokens"] == second["restored_tokens"] == point
    assert 0 < first["prefill_tokens"] < second["prefill_tokens"]
    assert 0 < first["decode_tokens"] <= 12
    assert first["restore_seconds"] < first["reprefill_seconds"]
    assert first["first_token_seconds"] > 0
