"""Replays that are interrupted: they go on from a proven checkpoint, and find what an uninterrupted one finds."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from core.engine import Engine
from core.graft import check_ids
from core.jobs import Context
from core.model import FrozenModel, fingerprint
from core.rebuilding import rebuild_artifact
from core.replay import AuditReport, audit, rebuild
from core.resuming import Kept, beginning
from core.settings import load_settings
from core.solve import Plan, captured, solve
from core.state import State, state_tensors, tensors_from_artifact
from library import tables
from library.artifact import Artifact, Encoded, decode, encode, tensor_digests
from library.blobs import staged_path
from library.check import check
from library.digest import Digest
from library.errors import Cancelled, Conflict, FormatError
from library.gc import collect
from library.manifest import Manifest, Run
from library.store import Library
from tests.core.engines import result_of
from tests.core.readers import prose, tiny_reader
from tests.library.artifacts import manifest

Seen = list[int]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    """Tiny, with sliding-window layers: what is replayed goes past their window of 512."""
    return tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def made(model: FrozenModel) -> Encoded:
    """The middle one of three attempts that were decoded as one batch after a prompt of two prefill calls."""
    prompt = model.prompt_ids(" ".join(prose(7, 5)))[:600]
    found: list[Any] = []

    def on_finish(attempt: Any, live: Any) -> bool:
        if attempt.number == 1:
            found.extend([attempt, captured(live(), attempt, len(prompt))])
        return False

    solve(model, prompt, Plan(max_tokens=14, temperature=1.0, seed=2, attempts=3, batch=3), on_finish=on_finish)
    attempt, state = found
    parts = state_tensors(state)
    written = manifest(
        list(parts),
        prompt_ids=tuple(prompt),
        attempt_ids=attempt.ids,
        graft_point=len(prompt) + len(attempt.ids),
        schedule=attempt.schedule,
        layers=state.layers,
        identity=model.identity,
        environment=model.environment,
        certificate=None,
    )
    assert (written.schedule[0].length, written.schedule[-1].batch, written.schedule[-1].row) == (512, 3, 1)
    return encode(written, parts)


@pytest.fixture
def shelf(model: FrozenModel, made: Encoded, tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", actor="tester") as library:
        written = decode(made.to_bytes()).manifest
        row = as_record(made, written)
        library.land_import(made, row, origin="bundle", actor="tester")
        library.accept_import([row.digest], "ada")
        yield library


def as_record(made: Encoded, written: Manifest) -> tables.Artifact:
    return tables.Artifact(
        digest=str(made.digest),
        kind="solution",
        problem_text=written.problem,
        canonical_key="blake3:" + "0" * 64,
        canonical_version=1,
        answer=written.answer,
        model="tiny",
        identity=written.identity.digest,
        environment=written.environment.digest,
        size_bytes=made.size,
        stored_bytes=made.size,
        graft_point=written.graft_point,
        solve_tokens=1,
        solve_seconds=1.0,
        created="",
    )


@pytest.fixture
def opened(shelf: Library, made: Encoded) -> Artifact:
    return decode(shelf.read_blob(str(made.digest)), made.digest)


class OnStop(Kept):
    """Only when it is stopped, however short the work was."""

    def due(self, *, stopping: bool) -> bool:
        return stopping


def kept(shelf: Library, model: FrozenModel, artifact: Artifact) -> Kept:
    return OnStop(shelf, model, str(artifact.digest), artifact.manifest)


def interrupted(shelf: Library, model: FrozenModel, artifact: Artifact, at: int) -> str:
    """An audit that is stopped once `at` positions are rebuilt; its checkpoint's digest."""
    stop = threading.Event()

    def progress(done: int, total: int) -> None:
        if done >= at:
            stop.set()

    checkpoints = kept(shelf, model, artifact)
    with pytest.raises(Cancelled, match="goes on from its last checkpoint"):
        audit(model, artifact, on_progress=progress, cancelled=stop, checkpoints=checkpoints)
    found = shelf.replay_checkpoint(str(artifact.digest), model.environment.digest)
    assert found is not None
    return found


def again(shelf: Library, model: FrozenModel, artifact: Artifact) -> tuple[AuditReport, Seen]:
    seen: Seen = []
    report = audit(
        model, artifact, on_progress=lambda done, total: seen.append(done), checkpoints=kept(shelf, model, artifact)
    )
    return report, seen


def flipped(artifact: Artifact) -> Artifact:
    """One bit of the first position's key changed, all digests of the manifest recomputed.

    In a layer of full attention: out of a sliding one, the position would be gone before the end.
    """
    full = next(layer for layer in artifact.manifest.layers if layer.kind == "full")
    name = full.tensors["keys"]
    data = bytearray(artifact.tensors[name].data)
    data[1] ^= 1
    tensors = {**artifact.tensors, name: replace(artifact.tensors[name], data=memoryview(data))}
    digests = tensor_digests(list(tensors.values()))
    return replace(artifact, tensors=tensors, manifest=artifact.manifest.model_copy(update={"tensors": digests}))


def test_an_interrupted_audit_goes_on_and_leaves_nothing_behind(
    model: FrozenModel, shelf: Library, opened: Artifact
) -> None:
    length = opened.manifest.graft_point
    at = len(opened.manifest.prompt_ids) + 5  # in the middle of a batch run
    interrupted(shelf, model, opened, at)
    assert check(shelf, grace=0).findings == ()  # a checkpoint is no stray
    assert collect(shelf, grace=0).removed == ()
    report, seen = again(shelf, model, opened)
    assert (report.finding, report.resumed) == ("reproduced", at)
    assert (seen[0], seen[-1]) == (at + 1, length)
    assert shelf.replay_checkpoint(str(opened.digest), model.environment.digest) is None
    assert list((shelf.root / "staging").iterdir()) == []
    assert shelf.verify_log() is None
    assert again(shelf, model, opened)[0].resumed == 0


def test_it_may_be_interrupted_again_and_again(model: FrozenModel, shelf: Library, opened: Artifact) -> None:
    prompt = len(opened.manifest.prompt_ids)
    digests = [interrupted(shelf, model, opened, at) for at in (prompt, prompt + 3, prompt + 9)]
    assert len(set(digests)) == 3
    assert len(list((shelf.root / "staging").iterdir())) == 1  # only the newest is kept
    assert (
        again(shelf, model, opened)[0] == audit(model, opened) == replace(again(shelf, model, opened)[0], resumed=0)
        or again(shelf, model, opened)[0].finding == "reproduced"
    )


@pytest.mark.parametrize("damage", ["flip", "truncate", "delete", "another state", "digest"])
def test_a_checkpoint_that_was_tampered_with_is_not_gone_on_from(
    model: FrozenModel, shelf: Library, opened: Artifact, damage: str
) -> None:
    digest = interrupted(shelf, model, opened, len(opened.manifest.prompt_ids) + 4)
    path = shelf.root / staged_path(Digest.parse(digest))
    data = bytearray(path.read_bytes())
    if damage == "flip":
        data[-9] ^= 4
        path.write_bytes(data)
    elif damage == "truncate":
        path.write_bytes(data[:-100])
    elif damage == "delete":
        path.unlink()
    else:  # a whole and canonical file with other tensors, under the old name or recorded under its own
        part = decode(data)
        other = flipped(part)
        forged = encode(other.manifest, list(other.tensors.values()))
        path.write_bytes(forged.to_bytes())
        if damage == "digest":
            wrong = forged.digest
            path.rename(shelf.root / staged_path(wrong))
            with shelf._write() as change:
                change.execute("UPDATE meta SET value = replace(value, ?, ?)", (digest, str(wrong)))
    report, seen = again(shelf, model, opened)
    assert report.finding == "reproduced"
    assert seen[-1] == opened.manifest.graft_point
    assert report.resumed == 0  # with the record forged too, what differed was rebuilt from the start
    if damage != "digest":
        assert seen[0] == 512  # the first call of the prefill
    assert list((shelf.root / "staging").iterdir()) == []


@pytest.mark.parametrize("change", ["tokens", "schedule", "environment", "artifact", "all positions"])
def test_a_checkpoint_of_something_else_is_not_gone_on_from(
    model: FrozenModel, shelf: Library, opened: Artifact, change: str
) -> None:
    """Recorded digests alone do not do: tokens, schedule, environment and artifact must be those of the replay."""
    digest = interrupted(shelf, model, opened, len(opened.manifest.prompt_ids) + 4)
    part = decode(shelf.read_staged(digest))
    written = part.manifest
    elsewhere = fingerprint({**model.environment.fields, "torch": "9.9"})
    changes: dict[str, dict[str, Any]] = {
        "tokens": {"attempt_ids": (written.attempt_ids[0] + 1, *written.attempt_ids[1:])},
        "schedule": {"schedule": (Run(length=written.graft_point, count=1),)},
        "environment": {"environment": elsewhere},
        "artifact": {"parent": "blake3:" + "1" * 64},
    }
    if change == "all positions":
        changed = encode(
            opened.manifest.model_copy(update={"parent": str(opened.digest)}), list(opened.tensors.values())
        )
    else:
        changed = encode(written.model_copy(update=changes[change]), list(part.tensors.values()))
    shelf.keep_checkpoint(str(opened.digest), model.environment.digest, changed, written.graft_point)
    assert kept(shelf, model, opened).load() is None
    assert shelf.replay_checkpoint(str(opened.digest), model.environment.digest) is None


def test_a_forged_artifact_is_found_after_an_interruption_too(
    model: FrozenModel, shelf: Library, opened: Artifact
) -> None:
    forged = flipped(opened)
    interrupted(shelf, model, forged, len(opened.manifest.prompt_ids) + 4)
    report, seen = again(shelf, model, forged)
    assert (report.finding, report.resumed, len(report.mismatches)) == ("differs", 0, 1)
    assert seen.count(forged.manifest.graft_point) == 2  # an accusation rests on a rebuild from the start
    uninterrupted = audit(model, forged)
    assert uninterrupted.mismatches == report.mismatches


def test_a_job_goes_on_after_a_cancel(
    model: FrozenModel, shelf: Library, opened: Artifact, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.resuming.STOPPING_SECONDS", 0.0)
    engine = Engine(load_settings(library=shelf.root), shelf)
    engine._model = model
    digest, prompt = str(opened.digest), len(opened.manifest.prompt_ids)
    context = Context("", {"digest": digest}, "ada", threading.Event())
    context.on_progress = lambda progress: context.cancelled.set() if progress.tokens > prompt else None
    with pytest.raises(Cancelled):
        engine._audit(context)
    result = result_of(engine, engine.submit_audit(digest, by="ada"))
    engine.close()
    assert (result["finding"], result["resumed"]) == ("reproduced", prompt + 1)
    assert [m.finding for m in shelf.measurements(digest)] == ["reproduced"]


def test_checkpoints_cost_little_and_come_at_intervals(model: FrozenModel, shelf: Library, opened: Artifact) -> None:
    now = [0.0]
    checkpoints = Kept(shelf, model, str(opened.digest), opened.manifest, every=30.0, clock=lambda: now[0])
    real = shelf.keep_checkpoint

    def slow(*arguments: Any) -> None:
        real(*arguments)
        now[0] += 2.0

    shelf.keep_checkpoint = slow  # type: ignore[method-assign]

    def due(at: float, *, stopping: bool = False) -> bool:
        now[0] = at
        return checkpoints.due(stopping=stopping)

    assert [due(29.0), due(30.0), due(4.0, stopping=True), due(5.0, stopping=True)] == [False, True, False, True]
    now[0] = 30.0
    state = State(opened.manifest.layers, tensors_from_artifact(opened.tensors), opened.manifest.graft_point)
    checkpoints.save(opened.manifest.graft_point - 1, state)  # takes two seconds: at most 5% of the time
    assert [due(62.0), due(71.9), due(72.0)] == [False, False, True]


def test_old_checkpoints_are_collected_and_an_eviction_takes_them_first(
    model: FrozenModel, shelf: Library, opened: Artifact
) -> None:
    at = len(opened.manifest.prompt_ids) + 4
    digest = interrupted(shelf, model, opened, at)
    staged = shelf.root / staged_path(Digest.parse(digest))
    shelf.evict(quota_bytes=shelf.used_bytes() - 1)
    assert not staged.exists()
    assert shelf.artifact(str(opened.digest)).state == "published"  # the checkpoint was room enough
    digest = interrupted(shelf, model, opened, at)
    old = (datetime.now(UTC) - timedelta(days=8)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    with shelf._write() as change:
        change.execute("UPDATE meta SET value = json_set(value, '$.created', ?) WHERE key LIKE 'replay %'", (old,))
    assert collect(shelf, grace=0, dry_run=True).removed == ()  # a dry run forgets nothing
    assert collect(shelf, grace=0).removed == (staged_path(Digest.parse(digest)),)
    assert check(shelf, read_data=True, grace=0).findings == ()


def test_without_room_there_is_no_checkpoint_and_the_audit_goes_on(
    model: FrozenModel, shelf: Library, opened: Artifact
) -> None:
    shelf.quota_bytes = shelf.used_bytes()
    report, _ = again(shelf, model, opened)
    assert report.finding == "reproduced"
    assert shelf.artifact(str(opened.digest)).state == "published"


def test_the_beginning_of_a_schedule() -> None:
    whole = (Run(length=4, count=2), Run(length=3, count=1), Run(length=1, count=5, batch=3, row=1))
    assert beginning(whole, 4) == (Run(length=4, count=1),)
    assert beginning(whole, 11) == whole[:2]
    assert beginning(whole, 13) == (*whole[:2], Run(length=1, count=2, batch=3, row=1))
    assert [beginning(whole, at) for at in (3, 9, 17)] == [None] * 3


def test_an_evicted_state_comes_back_by_replay(model: FrozenModel, shelf: Library, opened: Artifact) -> None:
    digest = str(opened.digest)
    engine = Engine(load_settings(library=shelf.root), shelf)
    engine._model = model
    before = bytes(shelf.read_blob(digest))
    assert shelf.drop([digest], actor="ada") == [digest]
    assert (shelf.artifact(digest).state, shelf.used_bytes()) == ("evicted", 0)
    assert shelf.drop([digest]) == []
    with pytest.raises(Conflict, match="evicted"):
        engine.submit_chat(digest, "And then?", by="ada")
    for _ in range(2):  # again: nothing to do
        result = result_of(engine, engine.submit_rebuild(digest, by="ada"))
        assert (result["state"], result["bytes"]) == ("published", len(before))
    engine.close()
    assert bytes(shelf.read_blob(digest)) == before
    assert check(shelf, read_data=True, grace=0).findings == ()
    assert shelf.measurements(digest) == []  # the kept manifest is no measurement
    actions = [entry.action for entry in shelf.log(40)]
    assert actions.count("artifact.put_back") == 1


def test_a_rebuild_goes_on_where_it_was_stopped(model: FrozenModel, shelf: Library, opened: Artifact) -> None:
    digest, prompt = str(opened.digest), len(opened.manifest.prompt_ids)
    interrupted(shelf, model, opened, prompt + 4)
    shelf.drop([digest])
    seen: Seen = []
    row = rebuild_artifact(model, shelf, digest, by="ada", on_progress=lambda done, total: seen.append(done))
    assert (row.state, seen[0]) == ("published", prompt + 5)
    assert list((shelf.root / "staging").iterdir()) == []


@pytest.mark.parametrize(
    ("why", "message"),
    [
        ("tensors", "1 of .* tensors differ"),
        ("manifest", "its manifest is not the one"),
        ("no manifest", "no manifest"),
        ("revoked", "is revoked"),
    ],
)
def test_what_cannot_be_rebuilt_to_the_byte_is_not_put_back(
    model: FrozenModel, shelf: Library, opened: Artifact, monkeypatch: pytest.MonkeyPatch, why: str, message: str
) -> None:
    digest = str(opened.digest)
    shelf.drop([digest])
    written = shelf.kept_manifest(digest)
    assert written == opened.manifest
    name = next(iter(opened.tensors))
    kept_ones = {
        "tensors": opened.manifest.model_copy(
            update={"tensors": {**opened.manifest.tensors, name: "blake3:" + "2" * 64}}
        ),  # as another environment would round
        "manifest": opened.manifest.model_copy(update={"created": "2020"}),
        "no manifest": None,
    }
    if why == "revoked":
        shelf.revoke(digest, reason="wrong", actor="ada")
    else:
        monkeypatch.setattr(shelf, "kept_manifest", lambda name: kept_ones[why])
    with pytest.raises(Conflict, match=message):
        rebuild_artifact(model, shelf, digest, by="ada")
    assert shelf.artifact(digest).state == ("revoked" if why == "revoked" else "evicted")
    assert not shelf.blobs.has(opened.digest)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: {"prompt_ids": (10**9, *w.prompt_ids[1:])}, "the token 1000000000"),
        (lambda w: {"schedule": (*w.schedule[:-1], w.schedule[-1].model_copy(update={"batch": 10**6}))}, "a batch of"),
        (lambda w: {"prompt_ids": w.prompt_ids * 3, "graft_point": 3 * len(w.prompt_ids)}, "the model's window is"),
    ],
    ids=["token", "batch", "window"],
)
def test_a_foreign_manifest_does_not_fell_the_model(
    model: FrozenModel, shelf: Library, opened: Artifact, change: Any, message: str
) -> None:
    """It would be an index error deep in a kernel, or all of the machine's memory."""
    forged = opened.manifest.model_copy(update=change(opened.manifest))
    with pytest.raises(FormatError, match=message):
        check_ids(model, forged)
    with pytest.raises(FormatError):
        rebuild(model, forged)
