from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from library.blobs import blob_path, staged_path
from library.check import check
from library.sqlite import DATABASE, connect
from library.store import Library
from tests.library.stores import approved, attempt_of, deposit, key_of, state_of


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        for text in ("one", "two", "three"):
            deposit(opened, text)
        yield opened


def _digest(text: str) -> str:
    return str(state_of(text).digest)


def _path(library: Library, text: str) -> Path:
    return library.root / blob_path(state_of(text).digest)


def _found(library: Library, **how: bool) -> list[tuple[str, str]]:
    return sorted((finding.kind, finding.subject) for finding in check(library, grace=0, **how).findings)


def test_whole_library_is_clean(library: Library) -> None:
    approved(library, "four")
    report = check(library, read_data=True, grace=0)
    assert (report.findings, report.exit_code, report.records, report.files) == ((), 0, 4, 4)
    assert report.bytes_read == 4 * 300


def _missing(library: Library) -> None:
    _path(library, "one").unlink()


def _shorter(library: Library) -> None:
    _path(library, "one").write_bytes(b"short")


def _flipped(library: Library) -> None:
    data = bytearray(_path(library, "one").read_bytes())
    data[100] ^= 4
    _path(library, "one").write_bytes(data)


def _swapped(library: Library) -> None:
    _path(library, "one").write_bytes(state_of("two").data)


def _linked(library: Library) -> None:
    _path(library, "one").unlink()
    _path(library, "one").symlink_to(_path(library, "two"))


def _foldered(library: Library) -> None:
    _path(library, "one").unlink()
    _path(library, "one").mkdir()


def _piped(library: Library) -> None:
    _path(library, "one").unlink()
    os.mkfifo(_path(library, "one"))


DAMAGES = {
    "missing": (_missing, "missing", False),
    "shorter": (_shorter, "corrupt", False),
    "flipped": (_flipped, "corrupt", True),
    "swapped": (_swapped, "swapped", True),
    "linked": (_linked, "wrong-type", False),
    "foldered": (_foldered, "wrong-type", False),
    "piped": (_piped, "wrong-type", False),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_seeded_damage_is_found_and_repaired(library: Library, name: str) -> None:
    damage, kind, only_by_reading = DAMAGES[name]
    damage(library)
    files_before = sum(1 for path in library.root.rglob("*") if not path.is_dir())
    assert _found(library) == ([] if only_by_reading else [(kind, _digest("one"))])
    report = check(library, read_data=True)
    assert [(finding.kind, finding.subject) for finding in report.findings] == [(kind, _digest("one"))]
    assert report.exit_code == 3
    assert library.artifact(_digest("one")).state == "published", "looking changes nothing"
    repaired = check(library, read_data=True, repair=True)
    assert repaired.exit_code == 3
    assert repaired.findings[0].repaired.startswith("record quarantined")
    assert library.artifact(_digest("one")).state == "quarantined"
    assert library.find_exact(key_of("one")) == []
    assert sum(1 for path in library.root.rglob("*") if not path.is_dir()) == files_before, "a repair deletes nothing"
    assert check(library, read_data=True, grace=0).findings == ()
    assert library.log(1)[0].action == "artifact.quarantined"


def test_extra_files_are_notes_and_set_aside(library: Library) -> None:
    orphan = state_of("orphan")
    library.blobs.put(orphan.digest, orphan.parts())
    library.stage(state_of("left"))
    (library.root / "blobs" / "readme.txt").write_text("hello")
    (library.root / "blobs" / "ab").mkdir(exist_ok=True)
    (library.root / "blobs" / "ab" / ".tmp-1").write_bytes(b"x")
    wanted = [
        ("extra", f"blobs: {orphan.digest}"),
        ("extra", "blobs/readme.txt"),
        ("leftover", staged_path(state_of("left").digest)),
        ("temporary", "blobs/ab/.tmp-1"),
    ]
    assert _found(library) == sorted(wanted)
    assert check(library, repair=True).exit_code == 0
    assert _found(library) == sorted(wanted), "young files may be another process's work"
    assert _found(library, repair=True) == sorted(wanted)
    assert _found(library) == []
    assert len(list((library.root / "quarantine").iterdir())) == 4


def test_staged_state_that_is_gone(library: Library) -> None:
    attempt = approved(library, "four")
    (library.root / staged_path(state_of("staged four").digest)).unlink()
    assert _found(library) == [("missing", attempt)]
    check(library, repair=True)
    assert library.attempt(attempt).staged is None
    assert _found(library) == []


def _raw(library: Library, *statements: str) -> None:
    """What somebody with the file in hand can do: the triggers are dropped first."""
    with closing(connect(library.root / DATABASE)) as connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
        for statement in statements:
            connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("UPDATE audit SET actor = 'eve' WHERE seq = 3", "entry 3"),
        ("DELETE FROM audit WHERE seq = 4", "entry 4"),
        ("UPDATE audit SET seq = 1000 WHERE seq = 5; UPDATE audit SET seq = 5 WHERE seq = 6", "entry 5"),
    ],
)
def test_tampered_log_is_found(library: Library, statement: str, reason: str) -> None:
    _raw(library, *statement.split(";"))
    assert _found(library) == [("audit", reason)]


def test_rows_that_refer_to_nothing(library: Library) -> None:
    _raw(library, "DELETE FROM attempt WHERE id = (SELECT attempt_id FROM artifact LIMIT 1)")
    kinds = {kind for kind, _ in _found(library)}
    assert kinds == {"dangling"}


def test_published_without_approval_is_found(library: Library) -> None:
    attempt = attempt_of(library, "four")
    _raw(library, f"UPDATE artifact SET attempt_id = '{attempt}' WHERE digest = '{_digest('one')}'")
    assert _found(library) == [("unapproved", _digest("one"))]


def test_stale_text_index_is_found_and_rebuilt(library: Library) -> None:
    with closing(connect(library.root / DATABASE)) as connection:
        connection.execute("DELETE FROM problemdoc WHERE docid = 1")
    assert [kind for kind, _ in _found(library)] == ["index"]
    check(library, repair=True)
    assert _found(library) == []
    assert [found.record.problem_text for found in library.candidates("one", 1)] == ["one"]


def test_damaged_database_is_reported(library: Library) -> None:
    library.close()
    path = library.root / DATABASE
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'artifact_created'").fetchone()[0]
        size = connection.execute("PRAGMA page_size").fetchone()[0]
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * 200)
    with Library.open(library.root) as again:
        report = check(again)
    assert report.exit_code == 3
    assert {finding.kind for finding in report.findings} == {"database"}
