from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from library.errors import CorruptError, LibraryBusy, NotWritable, StorageFull, StoreError
from library.fsio import RealFileSystem, translated, write_durably
from library.memory import ALIGNMENT, LARGE
from tests.faults.disk import FaultFileSystem


@pytest.fixture
def fs(tmp_path: Path) -> RealFileSystem:
    (tmp_path / "root").mkdir()
    made = RealFileSystem(tmp_path / "root")
    made.mkdir("folder")
    return made


def test_durable_write_in_its_order(tmp_path: Path) -> None:
    disk = FaultFileSystem(tmp_path)
    disk.mkdir("folder")
    disk.trace.clear()
    write_durably(disk, "folder/t", "folder/f", [b"ab", bytearray(b"c"), memoryview(b"d")])
    assert disk.trace == [
        "create folder/t", "write folder/t", "write folder/t", "write folder/t", "fsync folder/t",
        "rename folder/t folder/f", "fsync_dir folder",
    ]  # fmt: skip
    assert bytes(disk.read("folder/f")) == b"abcd"


@pytest.mark.parametrize("number", range(1, 7))
def test_durable_write_leaves_nothing_after_an_error(tmp_path: Path, number: int) -> None:
    (tmp_path / "folder").mkdir()
    disk = FaultFileSystem(tmp_path, fail_at=(number, errno.EIO))
    with pytest.raises(OSError, match="Input/output"):
        write_durably(disk, "folder/t", "folder/f", [b"ab", b"cd"])
    assert list((tmp_path / "folder").iterdir()) == []


@pytest.mark.parametrize("size", [0, 1, LARGE - 1, LARGE, 2 * LARGE + 12_345])
def test_a_reader_is_watched_in_the_memory_that_it_returns(fs: RealFileSystem, size: int) -> None:
    data = os.urandom(size)
    (fs.root / "folder" / "f").write_bytes(data)
    pieces: list[memoryview] = []
    held = fs.read("folder/f", pieces.append)
    assert held == data
    assert b"".join(pieces) == data
    assert all(piece.obj is held.obj for piece in pieces)
    if size >= LARGE:
        assert np.frombuffer(held, dtype=np.uint8).ctypes.data % ALIGNMENT == 0
        assert len(pieces) >= size // LARGE


@pytest.mark.parametrize("path", ["../x", "/etc/passwd", "a/../b", "", ".", "folder//f", "folder/", "folder/\0", "./f"])
def test_paths_are_plain(fs: RealFileSystem, path: str) -> None:
    for call in (fs.read, fs.create, fs.unlink, fs.stat, fs.mkdir):
        with pytest.raises(OSError, match=r"plain relative|null byte"):
            call(path)


@pytest.mark.parametrize("what", ["file", "folder"])
def test_links_are_not_followed(fs: RealFileSystem, tmp_path: Path, what: str) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "f").write_bytes(b"secret")
    if what == "file":
        (fs.root / "folder" / "f").symlink_to(outside / "f")
    else:
        (fs.root / "folder").rmdir()
        (fs.root / "folder").symlink_to(outside)
    with pytest.raises(CorruptError), translated("reading"):
        fs.read("folder/f")
    with pytest.raises(OSError):  # noqa: PT011  (EEXIST or ELOOP, as the case may be)
        fs.create("folder/f")
    if what == "folder":
        for call in (fs.unlink, fs.stat):
            with pytest.raises(OSError, match=r"Not a directory|symbolic"):
                call("folder/f")
    assert (outside / "f").read_bytes() == b"secret"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("kind", ["pipe", "folder"])
def test_only_regular_files_are_read(fs: RealFileSystem, kind: str) -> None:
    path = fs.root / "folder" / "f"
    os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(CorruptError), translated("reading"):
        fs.read("folder/f")


def test_read_gives_memory_of_its_own(fs: RealFileSystem) -> None:
    write_durably(fs, "folder/t", "folder/f", [b"x" * 1000])
    data = fs.read("folder/f")
    (fs.root / "folder" / "f").write_bytes(b"")
    data[0] = 1
    assert len(data) == 1000


def test_modes_are_private(fs: RealFileSystem) -> None:
    write_durably(fs, "folder/t", "folder/f", [b"x"])
    assert (fs.root / "folder").stat().st_mode & 0o777 == 0o700
    assert (fs.root / "folder" / "f").stat().st_mode & 0o777 == 0o600


def test_create_does_not_overwrite(fs: RealFileSystem) -> None:
    fs.close(fs.create("folder/f"))
    with pytest.raises(FileExistsError):
        fs.create("folder/f")


def test_what_is_not_there(fs: RealFileSystem) -> None:
    assert fs.stat("folder/none") is None
    assert fs.stat("none/none") is None
    assert fs.listdir("none") == []
    with pytest.raises(FileNotFoundError):
        fs.read("folder/none")


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOSPC, StorageFull),
        (errno.EDQUOT, StorageFull),
        (errno.EACCES, NotWritable),
        (errno.EROFS, NotWritable),
        (errno.ELOOP, CorruptError),
        (errno.EIO, StoreError),
    ],
)
def test_errors_are_translated(number: int, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"^doing it \(there\)"), translated("doing it"):
        raise OSError(number, "text", "there")


def _is_free(fs: RealFileSystem, *, exclusive: bool) -> bool:
    try:
        with fs.lock("lock", exclusive=exclusive, timeout=0.02):
            return True
    except LibraryBusy:
        return False


def test_lock_excludes_and_shares(fs: RealFileSystem) -> None:
    with fs.lock("lock", exclusive=False, timeout=0):
        assert _is_free(fs, exclusive=False)
        assert not _is_free(fs, exclusive=True)
    with fs.lock("lock", exclusive=True, timeout=0):
        assert not _is_free(fs, exclusive=False)
    assert _is_free(fs, exclusive=True)


def test_lock_is_waited_for(fs: RealFileSystem) -> None:
    held, order = threading.Event(), []

    def hold() -> None:
        with fs.lock("lock", exclusive=True, timeout=0):
            held.set()
            time.sleep(0.1)
            order.append("first")

    thread = threading.Thread(target=hold)
    thread.start()
    assert held.wait(10)
    with fs.lock("lock", exclusive=True, timeout=10):
        order.append("second")
    thread.join()
    assert order == ["first", "second"]
