"""The one seam to the disk: every file of a library except SQLite's own is touched through a `FileSystem`.

Knows paths below one root, durability and locks. Knows nothing of blobs, digests or rows. A fault-injecting
twin with a volatile and a durable view stands in for it in tests.

Paths are relative texts such as `blobs/ab/cdef`. Each folder on the way is opened without following links, so a
folder or file that is swapped for a symbolic link is refused, not followed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat as stat_module
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from library.errors import CorruptError, LibraryBusy, NotWritable, StorageFull, StoreError
from library.memory import room_for

Buffer = bytes | bytearray | memoryview
Kind = Literal["file", "folder", "link", "other"]
Watch = Callable[[memoryview], None]

_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)  # macOS: fsync alone stops at the drive's cache
_POLL_SECONDS = 0.02
_READ_CHUNK = 4 << 20  # large enough for several threads to hash, small enough for hashing to begin early


@dataclass(frozen=True)
class Stat:
    """`size` in bytes, `modified` in seconds since the epoch; a link is described, not followed."""

    kind: Kind
    size: int
    modified: float


class FileSystem(Protocol):
    """Raises plain `OSError`s; callers turn them into the project's errors with `translated`."""

    def create(self, path: str) -> int:
        """A new file, mode 0600, opened for writing; fails if the name exists. Returns a handle."""

    def write(self, handle: int, data: Buffer) -> None:
        """Writes all of `data`."""

    def fsync(self, handle: int) -> None:
        """The file's bytes are on the medium. After a failure the file must be thrown away, never synced again:
        the kernel may have dropped the dirty pages and would report success."""

    def close(self, handle: int) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def unlink(self, path: str) -> None: ...

    def fsync_dir(self, path: str) -> None:
        """The folder's entries are on the medium."""

    def mkdir(self, path: str) -> None:
        """A new folder, mode 0700, and its parent synced; nothing if it exists already as a folder."""

    def read(self, path: str, watch: Watch | None = None) -> memoryview:
        """All bytes of a regular file, in one pass, into memory of our own. `watch` is given each piece of that very
        memory, in order, as soon as it is there."""

    def listdir(self, path: str) -> list[str]:
        """Sorted names; empty if there is no such folder."""

    def stat(self, path: str) -> Stat | None:
        """None if there is nothing of that name."""

    def barrier(self, name: str) -> None:
        """Marks a step that is not file work, such as a commit; a place where a test can stop or fail."""

    @contextmanager
    def lock(self, path: str, *, exclusive: bool, timeout: float) -> Iterator[None]:
        """A lock that dies with its process. `LibraryBusy` after `timeout` seconds."""


class RealFileSystem:
    """The disk below `root`, which must exist. Safe for use by several threads."""

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    @contextmanager
    def _folder(self, path: str) -> Iterator[tuple[int, str]]:
        """The open parent folder of `path` and the last name, having followed no link on the way."""
        parts = path.split("/")
        if any(part in ("", ".", "..") or "\0" in part for part in parts):
            raise OSError(errno.EINVAL, "not a plain relative path", path)
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        folder = os.open(self.root, flags)
        try:
            for part in parts[:-1]:
                inner = os.open(part, flags | os.O_NOFOLLOW, dir_fd=folder)
                os.close(folder)
                folder = inner
            yield folder, parts[-1]
        finally:
            os.close(folder)

    def create(self, path: str) -> int:
        with self._folder(path) as (folder, name):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            return os.open(name, flags, 0o600, dir_fd=folder)

    def write(self, handle: int, data: Buffer) -> None:
        view = memoryview(data).cast("B")
        while view.nbytes:
            view = view[os.write(handle, view) :]

    def fsync(self, handle: int) -> None:
        if _FULL_SYNC is not None:
            fcntl.fcntl(handle, _FULL_SYNC)
        else:
            os.fsync(handle)

    def close(self, handle: int) -> None:
        os.close(handle)

    def rename(self, source: str, target: str) -> None:
        with self._folder(source) as (source_folder, old), self._folder(target) as (target_folder, new):
            os.rename(old, new, src_dir_fd=source_folder, dst_dir_fd=target_folder)

    def unlink(self, path: str) -> None:
        with self._folder(path) as (folder, name):
            os.unlink(name, dir_fd=folder)

    def fsync_dir(self, path: str) -> None:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        if path == "":
            handle = os.open(self.root, flags)
        else:
            with self._folder(path) as (folder, name):
                handle = os.open(name, flags | os.O_NOFOLLOW, dir_fd=folder)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def mkdir(self, path: str) -> None:
        with self._folder(path) as (folder, name):
            try:
                os.mkdir(name, 0o700, dir_fd=folder)
            except FileExistsError:
                if not stat_module.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
                    raise
            os.fsync(folder)  # also when it exists: its maker may have stopped before syncing

    def read(self, path: str, watch: Watch | None = None) -> memoryview:
        with self._folder(path) as (folder, name):
            # O_NONBLOCK: opening a pipe that stands in a blob's place must not wait for its other end
            handle = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            found = os.fstat(handle)
            if not stat_module.S_ISREG(found.st_mode):
                raise OSError(errno.ELOOP, "not a regular file", path)
            data, filled = room_for(found.st_size), 0
            while filled < len(data):
                count = os.readv(handle, [data[filled : filled + _READ_CHUNK]])
                if count == 0:
                    break
                if watch is not None:
                    watch(data[filled : filled + count])
                filled += count
            return data[:filled]  # shorter if the file was shortened since fstat: the digest will tell
        finally:
            os.close(handle)

    def listdir(self, path: str) -> list[str]:
        try:
            with self._folder(path) as (folder, name):
                handle = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        except FileNotFoundError:
            return []
        try:
            return sorted(os.listdir(handle))
        finally:
            os.close(handle)

    def stat(self, path: str) -> Stat | None:
        try:
            with self._folder(path) as (folder, name):
                found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None
        kind: Kind = "other"
        if stat_module.S_ISREG(found.st_mode):
            kind = "file"
        elif stat_module.S_ISDIR(found.st_mode):
            kind = "folder"
        elif stat_module.S_ISLNK(found.st_mode):
            kind = "link"
        return Stat(kind, found.st_size, found.st_mtime)

    def barrier(self, name: str) -> None:
        return None

    @contextmanager
    def lock(self, path: str, *, exclusive: bool, timeout: float) -> Iterator[None]:
        with self._folder(path) as (folder, name):
            handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=folder)
        try:
            deadline = time.monotonic() + timeout
            wanted = (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB
            while True:
                try:
                    fcntl.flock(handle, wanted)
                    break
                except BlockingIOError:
                    if time.monotonic() >= deadline:
                        raise LibraryBusy(
                            f"another process is at work on the library ({self.root / path}); try again when it is done"
                        ) from None
                    time.sleep(_POLL_SECONDS)
            yield
        finally:
            os.close(handle)  # closing lets go of the lock; so does the end of the process


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """Turns an `OSError` inside into the project's error, its text starting with `doing`."""
    try:
        yield
    except OSError as error:
        name = f" ({error.filename})" if error.filename else ""
        text = f"{doing}{name}: {os.strerror(error.errno) if error.errno else error}"
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise StorageFull(f"{text}; free some space, or evict or collect states that are not needed") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise NotWritable(f"{text}; check the owner and mode of the library's folder") from error
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.EINVAL):
            raise CorruptError(f"{text}: something else stands where a plain file or folder belongs") from error
        raise StoreError(text) from error


def write_durably(fs: FileSystem, temporary: str, target: str, chunks: Iterable[Buffer]) -> None:
    """Temp file in the same folder, write, fsync, rename, fsync the folder. Raises plain `OSError`s.

    After an error neither name is left behind: a failed sync is not something to build on.
    """
    folder = target.rpartition("/")[0]
    handle = fs.create(temporary)
    placed = temporary
    try:
        try:
            for chunk in chunks:
                fs.write(handle, chunk)
            fs.fsync(handle)
        finally:
            fs.close(handle)
        fs.rename(temporary, target)
        placed = target
        fs.fsync_dir(folder)
    except BaseException:
        discard(fs, placed)
        raise


def discard(fs: FileSystem, path: str) -> None:
    """Removes a file that nobody may build on; best effort, since this runs while another error is under way."""
    try:
        fs.unlink(path)
    except OSError:
        return
