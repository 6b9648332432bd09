"""Row 15: no space and I/O errors at every operation. The error is clear, nothing is left, and a retry is honest."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from library.check import check
from library.errors import NotWritable, ScionError, StorageFull, StoreError
from library.store import Library
from tests.faults.disk import FaultFileSystem
from tests.faults.scenarios import SCENARIOS, Promises, Work, finish, hold
from tests.library.stores import approved, deposit, key_of, record_of, state_of


def _error_of(work: Work, library: Library, promises: Promises) -> Exception | None:
    try:
        work(library, promises)
    except (ScionError, OSError) as error:
        return error
    return None


EXPECTED = {errno.ENOSPC: StorageFull, errno.EIO: StoreError, errno.EACCES: NotWritable}


@pytest.mark.parametrize("code", EXPECTED, ids=lambda code: errno.errorcode[code])
@pytest.mark.parametrize("name", ["deposit", "heal", "import", "evict"])
def test_error_at_every_operation(name: str, code: int, tmp_path: Path) -> None:
    prepare, work = SCENARIOS[name]
    template, made = tmp_path / "template", Promises()
    with Library.open(template) as library:
        prepare(library, made)
    errors = 0
    for number in range(1, 200):
        root, promises = tmp_path / "run", Promises(list(made.kept), list(made.gone))
        shutil.copytree(template, root)
        disk = FaultFileSystem(root, fail_at=(number, code))
        with Library.open(root, fs=disk) as library:
            raised = _error_of(work, library, promises)
            failed = disk.count >= number
            at = disk.trace[number - 1] if failed else ""
        errors += raised is not None
        if raised is not None and at != "committed":  # the barrier after a commit is no operation that can fail
            assert isinstance(raised, EXPECTED[code]), f"{at}: {raised!r}"
        # Only the removal of what was written can itself have failed; no other temporary file may be left.
        if not at.startswith("unlink"):
            assert list(root.rglob(".tmp-*")) == [], f"a temporary file is left after {at}"
        disk.fail_at = None
        disk.power_loss("drop")
        with Library.open(root) as after:
            hold(after, promises, damaged=name == "heal")
            finish(after)
            hold(after, promises, damaged=name == "heal")
        shutil.rmtree(root)
        if not failed:
            assert errors >= 8
            return
    pytest.fail("the work never came to its end")


def test_failed_sync_is_not_taken_for_success_by_a_retry(tmp_path: Path) -> None:
    """The first deposit fails at its sync, the second is acknowledged; then the power goes."""
    with Library.open(tmp_path / "template") as library:
        approved(library, "one")
    tried = 0
    for number in range(1, 60):
        root = tmp_path / f"run{number}"
        shutil.copytree(tmp_path / "template", root)
        disk = FaultFileSystem(root, fail_at=(number, errno.EIO))
        library = Library.open(root, fs=disk)
        attempt = library.attempts()[0].id
        try:
            library.publish(attempt, state_of("one"), record_of("one"))
            library.close()
            break
        except StoreError:
            if "fsync" in disk.trace[number - 1]:
                tried += 1
        except OSError:
            pass  # the barrier after a commit, which is no operation that can fail
        library.publish(attempt, state_of("one"), record_of("one"))
        library.close()
        disk.power_loss("drop")
        with Library.open(root) as after:
            (row,) = after.find_exact(key_of("one"))
            assert bytes(after.read_blob(row.digest)) == state_of("one").data
    assert tried >= 3


def test_read_error_is_an_error_and_no_quarantine(tmp_path: Path) -> None:
    with Library.open(tmp_path) as library:
        digest = deposit(library, "one").digest
    disk = FaultFileSystem(tmp_path, count_looks=True, fail_at=(1, errno.EIO))
    with Library.open(tmp_path, fs=disk) as library:
        with pytest.raises(StoreError, match="Input/output error"):
            library.read_blob(digest)
        assert library.artifact(digest).state == "published"
        assert bytes(library.read_blob(digest)) == state_of("one").data
        assert check(library, read_data=True).exit_code == 0
