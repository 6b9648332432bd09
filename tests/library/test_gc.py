from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from library.blobs import blob_path, staged_path
from library.check import check
from library.errors import LibraryBusy
from library.gc import collect
from library.store import Library
from tests.library.stores import Payload, approved, attempt_of, deposit, key_of, record_of, state_of


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        yield opened


def _age(path: Path, seconds: float) -> None:
    os.utime(path, (time.time() - seconds,) * 2)


def _orphan(library: Library, text: str, age: float) -> str:
    library.blobs.put(state_of(text).digest, state_of(text).parts())
    path = blob_path(state_of(text).digest)
    _age(library.root / path, age)
    return path


def test_only_old_unreferenced_files_go(library: Library) -> None:
    kept = deposit(library, "kept")
    pending = attempt_of(library, "pending", library.stage(state_of("pending")))
    old, young = _orphan(library, "old", 7200), _orphan(library, "young", 10)
    library.stage(state_of("left"))
    left = staged_path(state_of("left").digest)
    (library.root / "blobs" / state_of("old").digest.hex[:2] / ".tmp-1").write_bytes(b"x")
    half = f"blobs/{state_of('old').digest.hex[:2]}/.tmp-1"
    for path in (left, half, staged_path(state_of("pending").digest), blob_path(state_of("kept").digest)):
        _age(library.root / path, 7200)
    (library.root / "blobs" / "readme.txt").write_text("not ours")
    _age(library.root / "blobs" / "readme.txt", 7200)
    planned = collect(library, dry_run=True)
    assert set(planned.removed) == {old, left, half}
    assert (library.root / old).exists()
    done = collect(library)
    assert done == planned
    assert not any((library.root / path).exists() for path in done.removed)
    assert (library.root / young).exists()
    assert (library.root / "blobs" / "readme.txt").exists()
    assert len(library.read_blob(kept.digest)) == 300
    assert len(library.read_staged(library.attempt(pending).staged or "")) == 300
    entry = library.log(1)[0]
    assert entry.action == "gc.collect"
    assert old in entry.detail
    assert collect(library).removed == ()
    assert library.log(1)[0] == entry


def test_revoked_bytes_stay_for_a_while(library: Library) -> None:
    digest = deposit(library, "one").digest
    _age(library.root / blob_path(state_of("one").digest), 10**7)
    library.revoke(digest, reason="wrong", actor="ada")
    assert collect(library).removed == ()
    assert collect(library, revoked_grace=0).removed == (blob_path(state_of("one").digest),)
    assert library.artifact(digest).answer == "42"
    assert check(library, read_data=True, grace=0).findings == ()


def test_quarantine_is_not_collected(library: Library) -> None:
    row = deposit(library, "one")
    (library.root / blob_path(state_of("one").digest)).write_bytes(b"damaged")
    with pytest.raises(Exception, match="other bytes"):
        library.read_blob(row.digest)
    assert collect(library, grace=0, revoked_grace=0).removed == ()
    assert len(list((library.root / "quarantine").iterdir())) == 1


def test_gc_waits_for_deposits_and_gives_up_by_name(library: Library) -> None:
    with library._locked(exclusive=False), pytest.raises(LibraryBusy, match="another process"):
        collect(library, timeout=0.05)


class _Slow(Payload):
    """Bytes whose second part comes only when told."""

    def __init__(self, data: bytes, started: threading.Event, go_on: threading.Event) -> None:
        super().__init__(data)
        object.__setattr__(self, "events", (started, go_on))

    def parts(self):
        started, go_on = self.events  # type: ignore[attr-defined]
        first, second = super().parts()
        yield first
        started.set()
        assert go_on.wait(20)
        yield second


def test_gc_during_a_deposit_loses_nothing(library: Library) -> None:
    """The blob is old and unreferenced when the deposit finds it: only the lock keeps gc away from it."""
    attempt = approved(library, "one")
    started, go_on = threading.Event(), threading.Event()
    slow = _Slow(state_of("one").data, started, go_on)
    deposit_thread = threading.Thread(target=library.publish, args=(attempt, slow, record_of("one")))
    deposit_thread.start()
    assert started.wait(20)
    _age(next(library.root.glob("blobs/*/.tmp-*")), 10**6)
    with pytest.raises(LibraryBusy):
        collect(library, grace=0, timeout=0.05)
    go_on.set()
    deposit_thread.join()
    collect(library, grace=0)
    (row,) = library.find_exact(key_of("one"))
    assert bytes(library.read_blob(row.digest)) == state_of("one").data


def test_gc_races_deposits_from_another_process_view(library: Library) -> None:
    other = Library.open(library.root)
    stop, failures = threading.Event(), []

    def sweep() -> None:
        while not stop.is_set():
            try:
                collect(other, grace=0.5)
                time.sleep(0.01)
            except LibraryBusy:
                continue
            except BaseException as error:
                failures.append(error)
                return

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    for number in range(12):
        _orphan(library, f"text {number}", 100)  # an old file that gc would take and the deposit will find
        deposit(library, f"text {number}")
    stop.set()
    sweeper.join()
    other.close()
    assert failures == []
    for number in range(12):
        (row,) = library.find_exact(key_of(f"text {number}"))
        assert bytes(library.read_blob(row.digest)) == state_of(f"text {number}").data
