"""The use cases without a model: what is refused before it is queued, and what decisions lead to."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.gate import Policy, Verdict
from core.settings import load_settings
from library.errors import Conflict, NotFound, ScionError, StaleVersion, StorageFull, UsageError
from library.store import Library
from library.tables import Artifact
from tests.conftest import PROBLEM
from tests.core.engines import engine_at
from tests.ui.doubles import add_attempt


@pytest.fixture
def engine(library: Library) -> Iterator[Engine]:
    made = Engine(load_settings(library=library.root, max_problem_chars=50), library)
    yield made
    made.close()


def pending(engine: Engine, problem: str = "What is 3 + 4?") -> str:
    return add_attempt(engine.library, problem, "3 + 4 = 7", answer="7")


def staged(engine: Engine) -> list[Path]:
    return list((engine.library.root / "staging").iterdir())


def decide(engine: Engine, attempt: str, action: str = "approve", reviewer: str = "ada", **options: Any) -> Any:
    version = engine.library.attempt(attempt).version
    return engine.decide(attempt, version=version, action=action, reviewer=reviewer, **options)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        (" \n\t ", "empty"),
        ("x" * 51, r"51 characters, the limit is 50 \(SCION_MAX_PROBLEM_CHARS\)"),
        ("a\0b", "NUL"),
    ],
)
@pytest.mark.parametrize("use", ["submit", "submit_ask"])
def test_a_problem_that_cannot_be_used_is_refused_before_it_is_queued(
    engine: Engine, use: str, text: str, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        getattr(engine, use)(text, by="ada")
    assert engine.jobs() == []


@pytest.mark.parametrize(
    ("figures", "message"),
    [
        ({"attempts": 0}, "attempts is 0"),
        ({"attempts": 257}, "attempts is 257"),
        ({"max_tokens": 0}, "max-tokens is 0"),
        ({"temperature": -0.1}, "temperature is -0.1"),
        ({"temperature": float("nan")}, "temperature is nan"),
        ({"top_p": 0}, "top-p is 0"),
        ({"top_p": 1.01}, "top-p is 1.01"),
    ],
)
def test_a_figure_out_of_range_is_named(engine: Engine, figures: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        engine.submit("1 + 1?", by="ada", **figures)
    assert engine.jobs() == []


def test_asks_are_checked_before_they_are_queued(engine: Engine) -> None:
    with pytest.raises(UsageError, match="must not be negative"):
        engine.submit_ask("1 + 1?", by="ada", fresh_max_tokens=-1)
    with pytest.raises(UsageError, match="unknown gate policy 'lax': one of strict"):
        engine.submit_ask("1 + 1?", by="ada", policy="lax")
    with pytest.raises(UsageError, match="SCION_CALIBRATION"):
        engine.submit_ask("1 + 1?", by="ada", policy="calibrated")
    assert engine.jobs() == []


@pytest.mark.parametrize("text", ["{", "[]", '{"threshold": "high"}', ""])
def test_a_calibration_file_that_is_none_is_named(library: Library, tmp_path: Path, text: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    engine = Engine(load_settings(calibration=path), library)
    with pytest.raises(UsageError, match=r"calibration\.json"):
        engine.judge("1 + 1?", "1 + 1?", "calibrated")
    path.unlink()
    with pytest.raises(UsageError, match="cannot read"):
        engine.calibration()


def test_an_approval_publishes(engine: Engine) -> None:
    attempt = pending(engine)
    decided = decide(engine, attempt, reason="right")
    assert decided.artifact is not None
    row = engine.library.artifact(decided.artifact.digest)
    assert (row.state, row.reviewer, row.problem_text) == ("published", "ada", "What is 3 + 4?")
    assert engine.offer("What is 3 + 4 ?").verdict is Verdict.GRAFT
    assert staged(engine) == []
    assert [found.ok for found in engine.verify()] == [True]
    with pytest.raises(Conflict):
        decide(engine, attempt)


def test_a_rejection_discards_the_state_and_keeps_the_record(engine: Engine) -> None:
    attempt = pending(engine)
    with pytest.raises(UsageError, match="reason"):
        decide(engine, attempt, "reject")
    decided = decide(engine, attempt, "reject", reason="adds wrongly")
    row = engine.library.attempt(attempt)
    assert (decided.artifact, row.review, row.staged) == (None, "rejected", None)
    assert staged(engine) == []
    assert [d.reason for d in engine.library.decisions(attempt)] == ["adds wrongly"]
    assert engine.offer("What is 3 + 4?").verdict is Verdict.REFUSE


def test_a_decision_on_what_has_changed_is_refused(engine: Engine) -> None:
    attempt = pending(engine)
    with pytest.raises(StaleVersion):
        engine.decide(attempt, version=7, action="approve", reviewer="ada")
    with pytest.raises(UsageError, match="unknown action"):
        engine.decide(attempt, version=1, action="praise", reviewer="ada")
    with pytest.raises(UsageError, match="reviewer"):
        engine.decide(attempt, version=1, action="approve", reviewer=" ")
    with pytest.raises(NotFound):
        engine.decide("a0000000000000000", version=1, action="approve", reviewer="ada")
    assert engine.library.attempt(attempt).review == "pending"


def test_an_answer_that_the_cue_does_not_bring_back_cannot_be_approved(engine: Engine) -> None:
    from library.artifact import decode, encode
    from library.digest import Digest

    attempt = pending(engine)
    real = decode(engine.library.read_staged(engine.library.attempt(attempt).staged or ""), None)
    certificate = real.manifest.certificate
    assert certificate is not None
    wrong = real.manifest.model_copy(update={"certificate": certificate.model_copy(update={"answer": "8"})})
    digest = engine.library.stage(encode(wrong, list(real.tensors.values())))
    assert Digest.parse(digest)
    problem = engine.library.attempt(attempt).problem_id
    other = engine.library.attempt(attempt).model_copy(update={"id": "", "problem_id": problem, "staged": digest})
    again = engine.library.add_attempt(type(other)(**other.model_dump()))
    with pytest.raises(Conflict, match="cannot be replayed: its answer is '7', but the answer cue reads '8'"):
        decide(engine, again)
    assert engine.library.attempt(again).review == "pending"


def test_two_reviewers_must_agree_if_so_set(library: Library) -> None:
    engine = Engine(load_settings(library=library.root, second_approver=True), library)
    attempt = pending(engine)
    first = decide(engine, attempt)
    assert (first.artifact, first.decision.action, first.settled) == (None, "approve", False)
    assert engine.library.attempt(attempt).review == "pending"
    assert "second reviewer" in first.note
    again = decide(engine, attempt)  # the same person does not count twice
    assert again.artifact is None
    second = decide(engine, attempt, reviewer="bob")
    assert second.artifact is not None
    assert second.artifact.reviewer == "bob"


def two_must_agree(library: Library) -> Engine:
    return Engine(load_settings(library=library.root, second_approver=True, undo_seconds=3600), library)


def test_a_first_approval_counts_no_more_once_it_was_taken_back(library: Library) -> None:
    engine = two_must_agree(library)
    attempt = pending(engine)
    decide(engine, attempt)
    back = decide(engine, attempt, "undo")
    assert (back.decision.action, back.note) == ("undo", "your word (approve) is taken back")
    with pytest.raises(Conflict, match="no decision to undo"):
        decide(engine, attempt, "undo")
    assert "second reviewer" in decide(engine, attempt, reviewer="bob").note
    assert decide(engine, attempt, reviewer="eve").artifact is not None


@pytest.mark.parametrize("against", ["undo", "flag"])
def test_a_word_against_it_voids_an_earlier_first_approval(library: Library, against: str) -> None:
    engine = two_must_agree(library)
    attempt = pending(engine)
    decide(engine, attempt)
    if against == "undo":
        decide(engine, attempt, reviewer="bob", defer=True)
        assert engine.library.attempt(attempt).review == "approved"
    else:
        decide(engine, attempt, against, reviewer="bob", reason="adds wrongly", defer=True)
    decide(engine, attempt, "undo", reviewer="bob")
    assert engine.library.attempt(attempt).review == "pending"
    third = decide(engine, attempt, reviewer="eve", defer=True)
    assert "second reviewer" in third.note
    assert engine.publish_due(everything=True) == []
    assert decide(engine, attempt, reviewer="bob").artifact is not None


def test_a_disagreement_is_decided_by_a_third_person(library: Library) -> None:
    engine = two_must_agree(library)
    kept, dropped = pending(engine, "What is 3 + 4?"), pending(engine, "What is 2 + 5?")
    for attempt in (kept, dropped):
        decide(engine, attempt)
        against = decide(engine, attempt, "reject", reviewer="bob", reason="adds wrongly", defer=True)
        assert (against.settled, against.note) == (
            False,
            "recorded; another reviewer disagrees, a third person decides",
        )
        assert engine.library.attempt(attempt).staged is not None
    counts = engine.library.review_counts()
    assert (counts.pending, counts.seconds, counts.disputed, counts.open) == (0, 0, 2, 2)
    with pytest.raises(Conflict, match="a third person decides"):
        decide(engine, kept)
    assert decide(engine, kept, reviewer="eve").artifact is not None
    assert decide(engine, dropped, "reject", reviewer="eve", reason="bob is right").settled
    assert engine.library.attempt(dropped).review == "rejected"
    assert engine.library.attempt(dropped).staged is None
    history = [(d.reviewer, d.action) for d in engine.library.decisions(kept)]
    assert history == [("ada", "approve"), ("bob", "reject"), ("eve", "approve")]
    assert engine.library.review_counts().open == 0


@pytest.mark.parametrize("way", ["bob undoes", "ada gives in"])
def test_a_disagreement_ends_when_one_gives_way(library: Library, way: str) -> None:
    engine = two_must_agree(library)
    attempt = pending(engine)
    decide(engine, attempt)
    decide(engine, attempt, "reject", reviewer="bob", reason="adds wrongly")
    if way == "bob undoes":
        decide(engine, attempt, "undo", reviewer="bob")
        assert not engine.library.standing(attempt).disputed
        assert decide(engine, attempt, reviewer="bob").artifact is not None
    else:
        assert decide(engine, attempt, "reject", reason="bob is right").settled
        assert engine.library.attempt(attempt).review == "rejected"


def test_a_first_rejection_needs_no_second(library: Library) -> None:
    engine = two_must_agree(library)
    attempt = pending(engine)
    assert decide(engine, attempt, "reject", reason="adds wrongly").settled
    assert engine.library.attempt(attempt).review == "rejected"


def test_a_note_does_not_pass_for_an_approval(library: Library) -> None:
    engine = two_must_agree(library)
    attempt = pending(engine)
    decide(engine, attempt, "note", reason="looks fine")
    assert "second reviewer" in decide(engine, attempt, reviewer="bob").note


def test_a_deferred_approval_can_be_undone_until_it_is_due(library: Library) -> None:
    with engine_at(library.root, undo_seconds=3600) as engine:
        kept, undone = pending(engine, "What is 3 + 4?"), pending(engine, "What is 2 + 5?")
        for attempt in (kept, undone):
            assert decide(engine, attempt, defer=True).artifact is None
        assert engine.publish_due() == []
        decide(engine, undone, "undo")
        (artifact,) = engine.publish_due(everything=True)
        assert artifact.attempt_id == kept
        assert engine.library.attempt(undone).review == "pending"


@pytest.mark.parametrize("action", ["approve", "reject"])
def test_a_deferred_decision_is_carried_out_by_itself(library: Library, action: str) -> None:
    with engine_at(library.root, undo_seconds=1) as engine:
        attempt = pending(engine)
        decide(engine, attempt, action, reason="seen", defer=True)
        assert engine.library.attempt(attempt).staged is not None
        end = time.monotonic() + 20
        while engine.library.attempt(attempt).staged is not None and time.monotonic() < end:
            time.sleep(0.1)
        assert engine.library.attempt(attempt).staged is None
        assert engine.library.index.count(states=["published"]) == (1 if action == "approve" else 0)


def test_a_damaged_state_does_not_hold_up_the_others(library: Library, capsys: pytest.CaptureFixture[str]) -> None:
    with engine_at(library.root, undo_seconds=3600) as engine:
        damaged, sound = pending(engine, "What is 3 + 4?"), pending(engine, "What is 2 + 5?")
        for attempt in (damaged, sound):
            decide(engine, attempt, defer=True)
        staged_digest = str(library.attempt(damaged).staged).removeprefix("blake3:")
        path = library.root / "staging" / staged_digest
        path.chmod(0o600)
        path.write_bytes(path.read_bytes()[:-1] + b"\xff")
        published = engine.publish_due(everything=True)
        assert [row.attempt_id for row in published] == [sound]
        assert library.attempt(damaged).review == "approved"
    assert damaged in capsys.readouterr().out


def test_a_full_disk_leaves_the_approval_and_finishes_later(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    attempt = pending(engine)
    real = engine.library.publish

    def full(*arguments: Any, **options: Any) -> Artifact:
        raise StorageFull("no space left on the device")

    monkeypatch.setattr(engine.library, "publish", full)
    with pytest.raises(StorageFull):
        decide(engine, attempt)
    assert [row.id for row in engine.library.unpublished()] == [attempt]
    monkeypatch.setattr(engine.library, "publish", real)
    (artifact,) = engine.publish_due(everything=True)
    assert artifact.attempt_id == attempt


def test_what_cannot_be_grafted_cannot_be_compared(engine: Engine) -> None:
    digest = decide(engine, pending(engine)).artifact.digest
    engine.library.set_artifact_state(digest, "quarantined", "damaged", "ada")
    with pytest.raises(Conflict, match="quarantined"):
        engine.submit_compare(digest, "1 + 1?", by="ada")
    for use in (engine.submit_audit, engine.submit_certify, engine.submit_verify):
        with pytest.raises(NotFound):
            use("blake3:" + "0" * 64, by="ada")
    with pytest.raises(NotFound):
        engine.submit_chat("blake3:" + "0" * 64, "1 + 1?", by="ada")
    assert engine.jobs() == []


def test_verify_finds_what_is_damaged_and_what_is_gone(engine: Engine) -> None:
    digests = [decide(engine, pending(engine, f"What is {n} + 4?")).artifact.digest for n in range(3)]
    files = {d: engine.library.root / "blobs" / d[7:9] / d[9:] for d in digests}
    files[digests[0]].chmod(0o600)
    files[digests[0]].write_bytes(b"other")
    files[digests[1]].unlink()
    view = engine.worker.wait(engine.submit_verify(None, by="ada"), timeout=30)
    assert view.result["checked"] == 3
    assert {row["digest"]: row["finding"].partition(":")[0] for row in view.result["bad"]} == {
        digests[0]: "DigestMismatch",
        digests[1]: "MissingBlob",
    }
    assert [row.ok for row in engine.verify(digests[2])] == [True]
    assert not engine.verify(digests[0])[0].ok


@pytest.mark.parametrize("policy", [None, "strict", Policy.EDITS])
def test_the_gate_is_asked_without_a_model(engine: Engine, policy: Any) -> None:
    assert engine.judge(PROBLEM, PROBLEM, policy).verdict is Verdict.GRAFT
    assert engine.judge("What is 1 + 1?", "What is 1 + 2?", policy).verdict is not Verdict.GRAFT
    assert engine.loaded is None


def test_labels_are_kept(engine: Engine) -> None:
    assert engine.label("1 + 1?", "1+1?", "safe", by="ada").startswith("l")
    with pytest.raises(UsageError, match="safe, unsafe, unsure"):
        engine.label("1 + 1?", "1 + 2?", "perhaps", by="ada")


def test_a_model_that_cannot_be_loaded_fails_the_job_and_not_the_engine(library: Library) -> None:
    with engine_at(library.root, model="no-such-model") as engine:
        view = engine.worker.wait(engine.submit("1 + 1?", by="ada"), timeout=60)
        assert (view.state, view.error.partition(":")[0]) == ("failed", "UnknownModel")
        with pytest.raises(ScionError):
            engine.model()
        assert decide(engine, pending(engine)).artifact is not None
