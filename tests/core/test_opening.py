"""What makes a stored state usable: its tokens, those of its parents too, and its place in the library."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from core import asking
from core.asking import Request
from core.gate import Policy, Verdict
from core.integrity import check_usable
from core.jobs import Context
from core.model import FrozenModel
from core.opening import open_artifact, same_tokens
from core.solve import Plan
from library.artifact import Artifact as Opened
from library.errors import Conflict, MissingBlob
from library.store import Library
from library.tables import Artifact
from tests.conftest import PROBLEM, Deposit
from tests.core.engines import asked, engine_at, result_of

QUERY = "A farmer has 2 hens and buys 3 more. How many hens does the farmer have?"
OTHER = "A farmer has 12 hens and buys 3 more. How many hens does the farmer have?"


@dataclass(frozen=True)
class Family:
    """A library with a deposit and one that went on from it: digests of both."""

    folder: Path
    parent: str
    child: str


def transferred(model: FrozenModel, folder: Path, parent: str) -> str:
    """Solve `QUERY` after the parent's state, approve the answer; the new artifact's digest."""
    with engine_at(folder, model) as engine:
        row = engine.library.artifact(parent)
        request = Request(QUERY, Policy.STRICT, Plan(max_tokens=96), "ada")
        context = Context("", {}, "ada", threading.Event())
        opened = open_artifact(engine.library, model, row)
        result = asking.transfer(model, engine.library, row, opened, request, (), (), context)
        attempt = engine.library.attempt(str(result.attempt_id))
        decided = engine.decide(attempt.id, version=attempt.version, action="approve", reviewer="ada")
        assert decided.artifact is not None
        return decided.artifact.digest


@pytest.fixture(scope="module")
def family(model: FrozenModel, golden: Deposit, tmp_path_factory: pytest.TempPathFactory) -> Family:
    folder = tmp_path_factory.mktemp("family") / "library"
    shutil.copytree(golden.folder, folder)
    return Family(folder, golden.artifact, transferred(model, folder, golden.artifact))


@pytest.fixture
def relatives(family: Family, tmp_path: Path) -> Family:
    """A copy that a test may change."""
    shutil.copytree(family.folder, tmp_path / "library")
    return replace(family, folder=tmp_path / "library")


@pytest.fixture
def shelf(family: Family) -> Iterator[Library]:
    with Library.open(family.folder) as library:
        yield library


def forged(opened: Opened, **changes: Any) -> Opened:
    return replace(opened, manifest=opened.manifest.model_copy(update=changes))


def test_an_approved_transfer_is_grafted_byte_for_byte_and_rebuilt(model: FrozenModel, relatives: Family) -> None:
    with engine_at(relatives.folder, model) as engine:
        result = asked(engine, QUERY, fresh_max_tokens=0)
        audit = result_of(engine, engine.submit_audit(relatives.child, by="ada"))
        row = engine.library.artifact(relatives.child)
    assert (result["verdict"], result["artifact"], result["exactness"]) == ("GRAFT", relatives.child, "byte-exact")
    assert result["answer"] == row.answer
    assert audit["finding"] == "reproduced"
    assert row.parent == relatives.parent


def test_a_transfer_counts_only_the_turn_as_prefilled(model: FrozenModel, shelf: Library, family: Family) -> None:
    written = open_artifact(shelf, model, shelf.artifact(family.child)).manifest
    parent = shelf.artifact(family.parent)
    assert written.cost.prefill_tokens == len(written.prompt_ids) - parent.graft_point < 60


def test_prompt_tokens_must_be_exactly_those_of_the_text(model: FrozenModel, shelf: Library, family: Family) -> None:
    row = shelf.artifact(family.parent)
    opened = open_artifact(shelf, model, row)
    ids = opened.manifest.prompt_ids
    assert same_tokens(shelf, model, opened, row)
    for wrong in ((ids[0], *ids), (*ids, ids[-1]), ids[1:], ids[:-1], (ids[0] + 1, *ids[1:]), ()):
        assert not same_tokens(shelf, model, forged(opened, prompt_ids=wrong), row)
    asked_other = row.model_copy(update={"problem_text": OTHER})
    assert not same_tokens(shelf, model, opened, asked_other)
    assert not same_tokens(shelf, model, forged(opened, problem=OTHER), asked_other)


def test_a_childs_tokens_must_be_its_parents_and_its_turn(model: FrozenModel, shelf: Library, family: Family) -> None:
    row = shelf.artifact(family.child)
    opened = open_artifact(shelf, model, row)
    ids = opened.manifest.prompt_ids
    point = shelf.artifact(family.parent).graft_point
    assert same_tokens(shelf, model, opened, row)
    for wrong in (
        (ids[0] + 1, *ids[1:]),
        ids[1:],
        (*ids[: point - 1], ids[point - 1] + 1, *ids[point:]),  # the parent's last token
        (*ids[:point], *ids[point - 1 :]),
        (*ids[:-1], ids[-1] + 1),
    ):
        assert not same_tokens(shelf, model, forged(opened, prompt_ids=wrong), row)
    assert not same_tokens(shelf, model, forged(opened, parent=None), row)
    with pytest.raises(Exception, match="no artifact"):
        same_tokens(shelf, model, forged(opened, parent="blake3:" + "1" * 64), row)
    own = forged(opened, parent=family.child)  # a state cannot go on from itself
    assert not same_tokens(shelf, model, own, row)


def test_what_goes_on_from_a_state_out_of_use_is_out_of_use(model: FrozenModel, relatives: Family) -> None:
    with engine_at(relatives.folder, model) as engine:
        engine.library.revoke(relatives.parent, reason="wrong", actor="ada")
        result = asked(engine, QUERY, fresh_max_tokens=0)
    assert (result["verdict"], result["answer"]) == ("REFUSE", None)
    assert any("goes on from" in reason["text"] and "revoked" in reason["text"] for reason in result["reasons"])


def test_a_child_whose_parents_bytes_are_gone_cannot_be_proven(model: FrozenModel, relatives: Family) -> None:
    name = relatives.parent.removeprefix("blake3:")
    (relatives.folder / "blobs" / name[:2] / name[2:]).unlink()
    with engine_at(relatives.folder, model) as engine:
        row = engine.library.artifact(relatives.child)
        with pytest.raises(MissingBlob):
            same_tokens(engine.library, model, open_artifact(engine.library, model, row), row)
        result = asked(engine, QUERY, fresh_max_tokens=0)
    assert (result["verdict"], result["answer"]) == ("REFUSE", None)


def test_an_artifact_that_is_revoked_while_it_is_read_does_not_answer(
    model: FrozenModel, deposited: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = asking.open_artifact

    def slow(library: Library, loaded: FrozenModel, row: Artifact) -> Opened:
        opened = real(library, loaded, row)
        library.revoke(row.digest, reason="wrong", actor="ada")
        return opened

    monkeypatch.setattr(asking, "open_artifact", slow)
    with engine_at(deposited.folder, model) as engine:
        result = asked(engine, PROBLEM, fresh_max_tokens=0)
    assert (result["verdict"], result["answer"]) == (str(Verdict.REFUSE), None)
    assert any("is revoked" in reason["text"] for reason in result["reasons"])


@pytest.mark.parametrize("state", ["revoked", "quarantined", "imported", "evicted"])
def test_what_is_out_of_use_is_neither_chatted_with_nor_compared(deposited: Deposit, state: str) -> None:
    with engine_at(deposited.folder) as engine:
        with engine.library._write() as change:
            change.execute("UPDATE artifact SET state = ? WHERE digest = ?", (state, deposited.artifact))
        with pytest.raises(Conflict, match=state):
            engine.submit_chat(deposited.artifact, "And then?", by="ada")
        with pytest.raises(Conflict, match=state):
            engine.submit_compare(deposited.artifact, OTHER, by="ada")
        with pytest.raises(Conflict, match=state):
            check_usable(engine.library, deposited.artifact)
        assert [job.kind for job in engine.jobs()] == ["solve"]  # that of the deposit
