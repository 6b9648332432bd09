from __future__ import annotations

from pathlib import Path

import pytest

from core.answer import Extracted
from core.deposit import Held, flops, same_text, sealed
from core.gate import canonical_key
from core.graft import Continuation
from core.model import FrozenModel
from core.solve import Attempt
from core.state import State
from library.artifact import decode
from library.digest import Digest
from library.errors import Conflict, CorruptError, DigestMismatch, MissingBlob
from library.store import Library
from tests.conftest import ANSWER, PROBLEM, Deposit
from tests.core.engines import engine_at
from tests.ui.doubles import add_attempt


def staged_file(library: Library, digest: str) -> Path:
    return library.root / "staging" / digest.removeprefix("blake3:")


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("7", "7", True),
        (" 7 ", "7", True),
        ("$7$", "7", True),
        ("7", "7.5", False),
        ("1/2", "0.5", False),
        ("", "7", False),
    ],
)
def test_a_replay_repeats_and_does_not_compute(first: str, second: str, same: bool) -> None:
    assert same_text(first, second) is same


@pytest.mark.parametrize(
    ("answer", "read", "closed", "replays"),
    [("7", "7", True, True), ("7", "8", True, False), ("7", "7", False, False), (None, "7", True, False)],
)
def test_an_attempt_replays_if_the_cue_reads_its_answer(
    answer: str | None, read: str, closed: bool, replays: bool
) -> None:
    extracted = None if answer is None else Extracted(answer, "boxed", (0, 1))
    attempt = Attempt(0, (1,), (), "stop", 2, "", "", "", extracted, 0.0)
    held = Held(attempt, State((), {}, 0), Continuation((1,), (2,), (), read, closed, 0.0, 0.0))
    assert held.replays is replays


def test_the_artifact_says_who_approved_it_and_on_what_evidence(library: Library) -> None:
    attempt = add_attempt(library, PROBLEM, "2 + 5 = 7", answer="7", reference="7")
    library.decide(attempt, version=1, reviewer="ada", action="approve", reason="checked by hand")
    row = library.attempt(attempt)
    staged = decode(library.read_staged(str(row.staged)), Digest.parse(str(row.staged)))
    encoded, record = sealed(library, row)
    written = decode(encoded.to_bytes(), encoded.digest).manifest
    assert [(note.reviewer, note.action, note.reason) for note in written.decisions] == [
        ("ada", "approve", "checked by hand")
    ]
    assert {item.check: item.outcome for item in written.evidence}["reference"] == "pass"
    assert written.tensors == staged.manifest.tensors
    assert written.model_copy(update={"evidence": (), "decisions": ()}) == staged.manifest
    assert (record.digest, record.reviewer, record.answer) == (str(encoded.digest), "ada", "7")
    assert record.canonical_key == canonical_key(PROBLEM)
    assert (record.size_bytes, record.solve_tokens) == (encoded.size, row.decode_tokens)


def test_nothing_is_sealed_without_a_staged_state(library: Library) -> None:
    attempt = add_attempt(library, PROBLEM, "x", answer="7")
    library.discard_staged(str(library.attempt(attempt).staged))
    with pytest.raises(Conflict, match="no staged state"):
        sealed(library, library.attempt(attempt))


@pytest.mark.parametrize("harm", ["flip", "truncate", "remove"])
def test_a_damaged_staged_state_is_never_published(library: Library, harm: str) -> None:
    attempt = add_attempt(library, PROBLEM, "x", answer="7")
    path = staged_file(library, str(library.attempt(attempt).staged))
    raw = bytearray(path.read_bytes())
    path.chmod(0o600)
    if harm == "flip":
        raw[-1] ^= 1
        path.write_bytes(raw)
    elif harm == "truncate":
        path.write_bytes(raw[:-1])
    else:
        path.unlink()
    with engine_at(library.root) as engine, pytest.raises((DigestMismatch, MissingBlob, CorruptError)):
        engine.decide(attempt, version=1, action="approve", reviewer="ada")
    row = library.attempt(attempt)
    assert row.review == "pending"  # the damage showed before the decision was taken
    assert library.index.count() == 0


def test_the_deposit_holds_what_the_attempt_was(golden: Deposit) -> None:
    with Library.open(golden.folder) as library:
        row, artifact = library.attempt(golden.attempt), library.artifact(golden.artifact)
    written = decode(golden.blob().read_bytes(), Digest.parse(golden.artifact)).manifest
    assert (written.problem, written.answer, written.reference) == (PROBLEM, ANSWER, ANSWER)
    assert written.cost.decode_tokens == row.decode_tokens == artifact.solve_tokens == len(written.attempt_ids) + 1
    assert written.cost.prefill_tokens == len(written.prompt_ids) == row.prompt_tokens
    assert written.certificate is not None
    assert written.certificate.answer == ANSWER
    assert (row.review, row.staged, artifact.state) == ("approved", None, "published")


def test_flops_grow_with_tokens_and_context(model: FrozenModel) -> None:
    assert 0 < flops(model, 1, 100) < flops(model, 1, 1000) < flops(model, 10, 1000)
    assert flops(model, 1, 1) >= 2 * model.parameters * 0.5
