from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

from library.blobs import blob_path, staged_path
from library.digest import Digest
from library.errors import (
    Conflict,
    DigestMismatch,
    FormatError,
    LibraryBusy,
    MissingBlob,
    NotFound,
    NotWritable,
    ScionError,
    StaleVersion,
    StorageFull,
    UsageError,
)
from library.sqlite import DATABASE, connect
from library.store import Library
from library.tables import Evidence, Measurement, Outcome, PairLabel
from tests.library.stores import (
    ENVIRONMENT,
    IDENTITY,
    approved,
    attempt_of,
    deposit,
    key_of,
    record_of,
    state_of,
)


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        yield opened


def _blob(library: Library, digest: str) -> Path:
    return library.root / blob_path(Digest.parse(digest))


def _actions(library: Library) -> list[str]:
    return [entry.action for entry in reversed(library.log(1000))]


# opening


def test_open_makes_a_private_folder(tmp_path: Path) -> None:
    Library.open(tmp_path / "deep" / "lib").close()
    assert (tmp_path / "deep" / "lib").stat().st_mode & 0o777 == 0o700


def test_open_without_create_finds_nothing(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no library at"):
        Library.open(tmp_path / "none", create=False)
    assert not (tmp_path / "none").exists()


def test_open_refuses_where_writing_is_not_allowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Library.open(tmp_path / "lib").close()
    monkeypatch.setattr("os.access", lambda *_args, **_more: False)  # the tests may run as root
    with pytest.raises(NotWritable, match="--library"):
        Library.open(tmp_path / "lib")


def test_open_waits_for_no_maintenance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("library.database.LOCK_SECONDS", 0.05)
    with Library.open(tmp_path / "lib") as library, library._locked(exclusive=True), Library.open(tmp_path / "lib"):
        pass
    (tmp_path / "fresh").mkdir()
    from library.fsio import RealFileSystem

    with (
        RealFileSystem(tmp_path / "fresh").lock("lock", exclusive=True, timeout=0),
        pytest.raises(LibraryBusy, match="another process"),
    ):
        Library.open(tmp_path / "fresh")


# problems and jobs


def test_problem_is_reused_only_with_the_same_reference(library: Library) -> None:
    def add(text: str, reference: str | None) -> str:
        return library.add_problem(text, canonical_key=key_of(text), canonical_version=1, reference=reference, by="ada")

    assert add("2+2", "4") == add("2+2", "4")
    assert add("2+2", "4") != add("2+2", None)
    assert library.problem(add("2+2", "4")).reference == "4"
    with pytest.raises(UsageError, match="empty"):
        add("  \n", None)
    with pytest.raises(NotFound):
        library.problem("p404")


def test_job_runs_through_its_states(library: Library) -> None:
    job = library.create_job("solve", {"problem": "p1"}, "ada")
    library.update_job(job, state="running", progress={"tokens": 3})
    library.update_job(job, state="done", result={"attempt": "a1"})
    row = library.job(job)
    assert (row.state, row.progress, row.result) == ("done", '{"tokens":3}', '{"attempt":"a1"}')
    assert row.started is not None
    assert row.finished is not None
    with pytest.raises(Conflict, match="is done"):
        library.update_job(job, state="running")
    with pytest.raises(UsageError):
        library.update_job(library.create_job("solve", {}, "ada"), state="imaginary")
    assert [found.id for found in library.jobs(owner="ada", states=["done"])] == [job]


def test_only_jobs_of_dead_processes_are_interrupted(tmp_path: Path) -> None:
    page, command = Library.open(tmp_path), Library.open(tmp_path)
    running, queued = page.create_job("solve", {}, "ada"), command.create_job("solve", {}, "ada")
    page.update_job(running, state="running")
    assert command.interrupt_jobs() == 0
    page.close()
    assert command.interrupt_jobs() == 1
    assert (command.job(running).state, command.job(queued).state) == ("interrupted", "queued")
    command.update_job(running, state="queued")
    assert command.interrupt_jobs() == 0
    command.close()


# review


def test_decision_lifecycle(library: Library) -> None:
    attempt = attempt_of(library, "a problem")
    library.decide(attempt, version=1, reviewer="bob", action="flag")
    with pytest.raises(StaleVersion, match="version 2, you saw 1"):
        library.decide(attempt, version=1, reviewer="eve", action="approve")
    library.decide(attempt, version=2, reviewer="bob", action="approve", reason="checked by hand")
    with pytest.raises(Conflict, match="not open"):
        library.decide(attempt, version=3, reviewer="eve", action="reject", reason="no")
    library.decide(attempt, version=3, reviewer="eve", action="note", reason="why?")
    assert [decision.action for decision in library.decisions(attempt)] == ["flag", "approve", "note"]
    assert library.attempt(attempt).version == 4
    assert _actions(library)[-3:] == ["review.flag", "review.approve", "review.note"]
    assert library.review_counts().approved == 1


@pytest.mark.parametrize(
    ("action", "reviewer", "reason"), [("reject", "bob", " "), ("bless", "bob", "x"), ("approve", "", "x")]
)
def test_decision_that_says_too_little_is_refused(library: Library, action: str, reviewer: str, reason: str) -> None:
    attempt = attempt_of(library, "a problem")
    with pytest.raises(UsageError):
        library.decide(attempt, version=1, reviewer=reviewer, action=action, reason=reason)
    assert library.decisions(attempt) == []


def test_undo_before_publication_only(library: Library) -> None:
    attempt = approved(library, "one")
    library.decide(attempt, version=2, reviewer="ada", action="undo")
    assert library.attempt(attempt).review == "pending"
    published = deposit(library, "two").attempt_id
    assert published is not None
    with pytest.raises(Conflict, match="revoke the artifact"):
        library.decide(published, version=2, reviewer="ada", action="undo")
    rejected = attempt_of(library, "three", library.stage(state_of("three")))
    library.decide(rejected, version=1, reviewer="ada", action="reject", reason="wrong")
    library.discard_staged(str(state_of("three").digest))
    with pytest.raises(Conflict, match="was discarded"):
        library.decide(rejected, version=2, reviewer="ada", action="undo")


def test_new_evidence_makes_older_views_stale(library: Library) -> None:
    attempt = attempt_of(library, "one")
    row = Evidence(attempt_id="", check_name="loop", outcome="fail", summary="repeats", verifier="v", created="")
    library.add_evidence(attempt, [row])
    assert [item.check_name for item in library.evidence(attempt)] == ["agreement", "loop"]
    with pytest.raises(StaleVersion):
        library.decide(attempt, version=1, reviewer="ada", action="approve")


def test_leases_keep_two_reviewers_apart(library: Library) -> None:
    attempt = attempt_of(library, "one")
    library.lease(attempt, "ada", 60)
    with pytest.raises(Conflict, match="is before ada"):
        library.lease(attempt, "bob", 60)
    assert (library.leased_by_others("bob"), library.leased_by_others("ada")) == (1, 0)
    library.release(attempt, "bob")
    assert library.review_counts().leased == 1
    library.release(attempt, "ada")
    library.lease(attempt, "bob", -1)
    library.lease(attempt, "ada", 60)


def test_attempts_are_found_by_state_and_text(library: Library) -> None:
    first, second = attempt_of(library, "apples 100%"), attempt_of(library, "pears")
    library.decide(second, version=1, reviewer="ada", action="reject", reason="no")
    assert [row.id for row in library.attempts(review="pending")] == [first]
    assert [row.id for row in library.attempts(text="0%")] == [first]
    assert library.attempts(text="%") == library.attempts(text="0%")
    assert [row.id for row in library.attempts(limit=1, offset=1)] == [first]


# deposit


def test_deposit_publishes_once(library: Library) -> None:
    row = deposit(library, "What is 6 times 7?")
    assert (row.state, row.size_bytes, row.stored_bytes) == ("published", 300, 300)
    assert [found.digest for found in library.find_exact(key_of("What is 6 times 7?"), IDENTITY)] == [row.digest]
    assert library.find_exact(key_of("What is 6 times 7?"), ENVIRONMENT) == []
    assert bytes(library.read_blob(row.digest)) == state_of("What is 6 times 7?").data
    assert not (library.root / staged_path(state_of("staged What is 6 times 7?").digest)).exists()
    assert library.unpublished() == []
    again = library.publish(row.attempt_id, state_of("What is 6 times 7?"), record_of("What is 6 times 7?"))
    assert again.created == row.created
    assert _actions(library).count("artifact.publish") == 1


@pytest.mark.parametrize("action", [None, "reject", "flag"])
def test_nothing_unapproved_is_published(library: Library, action: str | None) -> None:
    attempt = attempt_of(library, "one", library.stage(state_of("one")))
    if action:
        library.decide(attempt, version=1, reviewer="ada", action=action, reason="x")
    with pytest.raises(Conflict, match="only an approved one"):
        library.publish(attempt, state_of("one"), record_of("one"))
    assert list((library.root / "blobs").iterdir()) == []
    with pytest.raises(UsageError, match="needs the attempt"):
        library.publish(None, state_of("one"), record_of("one"))


def test_interrupted_deposit_is_listed(library: Library) -> None:
    attempt = approved(library, "one")
    assert [row.id for row in library.unpublished()] == [attempt]
    assert bytes(library.read_staged(str(state_of("staged one").digest))) == state_of("staged one").data


def test_deposit_over_a_damaged_blob_heals_it(library: Library) -> None:
    row = deposit(library, "one")
    _blob(library, row.digest).write_bytes(b"damaged")
    library.publish(row.attempt_id, state_of("one"), record_of("one"))
    assert bytes(library.read_blob(row.digest)) == state_of("one").data
    assert [path.read_bytes() for path in (library.root / "quarantine").iterdir()] == [b"damaged"]


def test_newest_artifact_comes_first(library: Library) -> None:
    first = deposit(library, "one").digest
    attempt = approved(library, "one")
    second = library.publish(attempt, state_of("one again"), record_of("one")).digest
    assert [row.digest for row in library.find_exact(key_of("one"))] == [second, first]


# reading


@pytest.mark.parametrize("damage", [b"", b"other bytes", "flip", "link", "folder"])
def test_damaged_blob_is_quarantined_and_refused(library: Library, damage: bytes | str, tmp_path: Path) -> None:
    row = deposit(library, "one")
    path = _blob(library, row.digest)
    good = path.read_bytes()
    path.unlink()
    if isinstance(damage, bytes):
        path.write_bytes(damage)
    elif damage == "flip":
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(good)  # even the right bytes: a link can change after the check
        path.symlink_to(tmp_path / "elsewhere")
    else:
        path.mkdir()
    with pytest.raises(DigestMismatch):
        library.read_blob(row.digest)
    assert library.artifact(row.digest).state == "quarantined"
    assert library.find_exact(key_of("one")) == []
    assert not path.exists()
    assert len(list((library.root / "quarantine").iterdir())) == 1
    assert _actions(library)[-1] == "artifact.quarantined"
    with pytest.raises(MissingBlob):
        library.read_blob(row.digest)
    with pytest.raises(Conflict, match="does not come back"):
        library.publish(row.attempt_id, state_of("one"), record_of("one"))


def test_folder_swapped_for_a_link_is_refused(library: Library, tmp_path: Path) -> None:
    row = deposit(library, "one")
    shard = _blob(library, row.digest).parent
    shard.rename(tmp_path / "moved")
    shard.symlink_to(tmp_path / "moved", target_is_directory=True)
    with pytest.raises(ScionError):
        library.read_blob(row.digest)
    assert (tmp_path / "moved" / _blob(library, row.digest).name).exists(), "nothing outside may be touched"


def test_bytes_read_do_not_change_with_the_file(library: Library) -> None:
    row = deposit(library, "one")
    data = library.read_blob(row.digest)
    _blob(library, row.digest).write_bytes(b"")
    assert bytes(data) == state_of("one").data


def test_missing_blob_is_named(library: Library) -> None:
    row = deposit(library, "one")
    _blob(library, row.digest).unlink()
    with pytest.raises(MissingBlob, match=row.digest):
        library.read_blob(row.digest)


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "blake3:" + "A" * 64, "blake3:" + "a" * 63, "a" * 64 + "\n", "a\0" + "b" * 62, "a" * 5000, ""],
)
def test_digest_as_path_is_refused_before_the_disk(
    library: Library, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def touched(*_args: object) -> None:
        raise AssertionError("the disk was touched")

    for method in ("read", "stat", "unlink", "rename", "create"):
        monkeypatch.setattr(library.fs, method, touched)
    for call in (library.read_blob, library.read_staged, library.discard_staged):
        with pytest.raises(FormatError):
            call(name)
    with pytest.raises((UsageError, NotFound)):
        library.artifact(name)


def test_artifact_by_beginning(library: Library) -> None:
    digest = deposit(library, "one").digest
    for name in (digest, digest[7:], digest[7:13], digest[:20]):
        assert library.artifact(name).digest == digest
    with pytest.raises(UsageError, match="6 to 64"):
        library.artifact(digest[7:12])
    with pytest.raises(NotFound):
        library.artifact("f" * 64)


# states


def test_revoked_never_returns(library: Library) -> None:
    row = deposit(library, "one")
    assert library.revoke(row.digest[7:20], reason="wrong proof", actor="bob") == [row.digest]
    assert library.find_exact(key_of("one")) == []
    assert library.revoke(row.digest, reason="again", actor="bob") == []
    with pytest.raises(Conflict, match="is revoked"):
        library.set_artifact_state(row.digest, "published", "please", "bob")
    with pytest.raises(Conflict):
        library.publish(row.attempt_id, state_of("one"), record_of("one"))
    assert library.log(1)[0].actor == "bob"


@pytest.mark.parametrize(
    ("condition", "hit"),
    [
        ({"verifier": "v1"}, {"a", "b"}),
        ({"model": "m2"}, {"b", "c"}),
        ({"reviewer": "eve"}, {"c"}),
        ({"verifier": "v1", "model": "m2"}, {"b"}),
    ],
)
def test_revoke_all_that_somebody_stands_behind(library: Library, condition: dict[str, str], hit: set[str]) -> None:
    made = {
        "a": deposit(library, "a", verifier="v1", model="m1").digest,
        "b": deposit(library, "b", verifier="v1", model="m2").digest,
        "c": deposit(library, "c", verifier="v2", model="m2", reviewer="eve").digest,
    }
    revoked = library.revoke(**condition, reason="bad", actor="bob")
    assert set(revoked) == {made[name] for name in hit}
    assert {name for name, digest in made.items() if library.artifact(digest).state == "revoked"} == hit


def test_revoke_needs_a_condition_and_a_reason(library: Library) -> None:
    with pytest.raises(UsageError):
        library.revoke(reason="all", actor="bob")
    with pytest.raises(UsageError):
        library.revoke(model="m", reason=" ", actor="bob")


def test_hold_and_release(library: Library) -> None:
    row = deposit(library, "one")
    library.hold(row.digest, "answer did not repeat", "gate")
    assert library.find_exact(key_of("one")) == []
    library.release_hold(row.digest, "looked at it", "ada")
    assert len(library.find_exact(key_of("one"))) == 1
    with pytest.raises(Conflict):
        library.release_hold(row.digest, "twice", "ada")


# the quota


def test_quota_evicts_the_least_recently_used(tmp_path: Path) -> None:
    with Library.open(tmp_path, quota_bytes=10_000) as library:
        old, pinned, used = (deposit(library, name, 2500).digest for name in ("old", "pinned", "used"))
        library.pin(pinned, "ada")
        outcome = Outcome(
            id="", query="q", artifact=used, policy="strict", verdict="GRAFT", model="m", identity=IDENTITY,
            created="", created_by="ada",
        )  # fmt: skip
        library.record_outcome(outcome)
        new = deposit(library, "new", 2500).digest
        states = [library.artifact(digest).state for digest in (old, pinned, used, new)]
        assert states == ["evicted", "published", "published", "published"]
        assert library.artifact(old).answer == "42"
        assert not _blob(library, old).exists()
        assert library.find_exact(key_of("old")) == []
        on_disk = sum(path.stat().st_size for path in (tmp_path / "blobs").rglob("*") if path.is_file())
        assert on_disk == library.used_bytes() <= 10_000
        again = library.publish(library.artifact(old).attempt_id, state_of("old", 2500), record_of("old"))
        assert again.state == "published"
        assert library.used_bytes() <= 10_000


def test_quota_that_cannot_hold_it_changes_nothing(tmp_path: Path) -> None:
    with Library.open(tmp_path, quota_bytes=5000) as library:
        kept = deposit(library, "kept", 1500).digest
        attempt = approved(library, "huge", 10)
        with pytest.raises(StorageFull, match="quota of 5000 bytes"):
            library.publish(attempt, state_of("huge", 6000), record_of("huge"))
        assert library.artifact(kept).state == "published"
        assert len(library.read_blob(kept)) == 1500
        assert library.attempt(attempt).staged is not None


# what only grows


@pytest.mark.parametrize("table", ["decision", "evidence", "outcome", "pairlabel", "audit", "measurement"])
def test_append_only_tables(library: Library, table: str) -> None:
    digest = deposit(library, "one").digest
    common = {"id": "", "created": "", "created_by": "ada"}
    library.record_outcome(Outcome(query="q", policy="p", verdict="REFUSE", model="m", identity=IDENTITY, **common))
    library.add_label(PairLabel(stored="a", query="b", label="safe", source="lab", **common))
    library.add_measurement(
        Measurement(id="", artifact=digest, kind="audit", environment=ENVIRONMENT, finding="equal", created="")
    )
    with closing(connect(library.root / DATABASE)) as connection:
        assert connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] > 0
        for statement in (
            f"DELETE FROM {table}",
            f"UPDATE {table} SET rowid = rowid",
            f"UPDATE {table} SET created = ''",
        ):
            with pytest.raises(sqlite3.IntegrityError, match="only grows"):
                connection.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE artifact SET answer = '43'",
        "UPDATE artifact SET problem_text = 'another'",
        "UPDATE artifact SET identity = 'blake3:0'",
        "DELETE FROM artifact",
        "DELETE FROM attempt",
        "UPDATE artifact SET state = 'imaginary'",
        "UPDATE attempt SET review = 'imaginary'",
        "INSERT INTO artifact SELECT '../x', kind, state, '', '', NULL, '', '', 1, '', '', '', '', '', '', 1, 1, '',"
        " 1, 1, 1, 1, NULL, 0, 0, NULL, NULL, '', '' FROM artifact",
    ],
)
def test_database_itself_refuses(library: Library, statement: str) -> None:
    deposit(library, "one")
    with closing(connect(library.root / DATABASE)) as connection, pytest.raises(sqlite3.IntegrityError):
        connection.execute(statement)


def test_threads_share_a_library(library: Library) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for item in range(4):
                text = f"problem {number} {item}"
                row = deposit(library, text)
                assert bytes(library.read_blob(row.digest)) == state_of(text).data
                assert library.find_exact(key_of(text))[0].digest == row.digest
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert _actions(library).count("artifact.publish") == 24
    assert library.verify_log() is None


def test_reading_while_the_same_artifact_is_deposited_again(library: Library) -> None:
    """Each read gives whole canary bytes, also while its file is being replaced."""
    texts = ["canary one", "canary two"]
    rows = [deposit(library, text, 50_000) for text in texts]
    stop, failures = threading.Event(), []

    def redeposit() -> None:
        while not stop.is_set():
            for text, row in zip(texts, rows, strict=True):
                library.publish(row.attempt_id, state_of(text, 50_000), record_of(text))

    def read() -> None:
        try:
            for _ in range(60):
                for text, row in zip(texts, rows, strict=True):
                    assert bytes(library.read_blob(row.digest)) == state_of(text, 50_000).data
        except BaseException as error:
            failures.append(error)

    writer, readers = threading.Thread(target=redeposit), [threading.Thread(target=read) for _ in range(2)]
    for thread in [writer, *readers]:
        thread.start()
    for thread in readers:
        thread.join()
    stop.set()
    writer.join()
    assert failures == []
    assert [library.artifact(row.digest).state for row in rows] == ["published", "published"]
