"""A disk that fails on demand: a `FileSystem` with a volatile view (the real folder) and a durable one (in memory).

Counts every operation, stops or fails at a chosen one, and after a power loss shows what a disk may show: all
unsynced work dropped, all kept, data torn under names that were kept, or each change kept or lost by chance.
"""

from __future__ import annotations

import errno
import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from library.fsio import Buffer, RealFileSystem, Stat, Watch

MODES = ("drop", "keep", "tear", "chance")
DATABASE_FILES = ("library.db", "library.db-wal", "library.db-shm")


class Crash(BaseException):
    """The process ended here. Not an `Exception`: nothing may handle it as an error."""


@dataclass(eq=False)
class Node:
    """A file, whatever its name: `durable` is what the medium holds, None before the first sync."""

    durable: bytes | None = None
    lost: bool = False  # a sync failed: later ones report success and write nothing, as Linux does


@dataclass(eq=False)
class FaultFileSystem:
    """Wraps the folder `root`; what is there at the start counts as durable. For one thread.

    Looking is counted only with `count_looks`: to stop before a look is to stop before the change after it.
    """

    root: Path
    stop_at: int | None = None
    fail_at: tuple[int, int] | None = None  # operation number, errno
    count_looks: bool = False
    count: int = 0
    trace: list[str] = field(default_factory=list)
    dead: bool = False

    def __post_init__(self) -> None:
        self.real = RealFileSystem(self.root)
        self.names: dict[str, Node] = {}
        self.folders: set[str] = set()
        for path in sorted(self.root.rglob("*")):
            name = path.relative_to(self.root).as_posix()
            if path.is_dir():
                self.folders.add(name)
            elif path.name not in DATABASE_FILES:
                self.names[name] = Node(path.read_bytes())
        self.durable_names = dict(self.names)
        self.durable_folders = set(self.folders)
        self._handles: dict[int, str] = {}

    def _step(self, what: str) -> None:
        if self.dead:
            raise Crash
        self.count += 1
        self.trace.append(what)
        if self.count == self.stop_at:
            self.dead = True
            raise Crash
        if self.fail_at is not None and self.count == self.fail_at[0]:
            raise OSError(self.fail_at[1], os.strerror(self.fail_at[1]), what)

    def _look(self, what: str) -> None:
        if self.dead or self.count_looks:
            self._step(what)

    def create(self, path: str) -> int:
        self._step(f"create {path}")
        handle = self.real.create(path)
        self.names[path] = Node()
        self._handles[handle] = path
        return handle

    def write(self, handle: int, data: Buffer) -> None:
        try:
            self._step(f"write {self._handles[handle]}")
        except (Crash, OSError):
            if self.trace and self.count in (self.stop_at, (self.fail_at or (0,))[0]):
                self.real.write(handle, memoryview(data)[: len(data) // 2])  # stopped in the middle of it
            raise
        self.real.write(handle, data)

    def fsync(self, handle: int) -> None:
        path = self._handles[handle]
        node = self.names[path]
        try:
            self._step(f"fsync {path}")
        except OSError:
            node.lost = True
            raise
        if not node.lost:
            node.durable = (self.root / path).read_bytes()

    def close(self, handle: int) -> None:
        self._handles.pop(handle, None)
        self.real.close(handle)
        if self.dead:
            raise Crash

    def rename(self, source: str, target: str) -> None:
        self._step(f"rename {source} {target}")
        self.real.rename(source, target)
        if source in self.names:
            self.names[target] = self.names.pop(source)

    def unlink(self, path: str) -> None:
        self._step(f"unlink {path}")
        self.real.unlink(path)
        self.names.pop(path, None)

    def fsync_dir(self, path: str) -> None:
        self._step(f"fsync_dir {path}")
        self.real.fsync_dir(path)

        def inside(name: str) -> bool:
            return name.rpartition("/")[0] == path

        for name in [name for name in self.durable_names if inside(name)]:
            del self.durable_names[name]
        self.durable_names.update({name: node for name, node in self.names.items() if inside(name)})
        self.durable_folders |= {name for name in self.folders if inside(name)}

    def mkdir(self, path: str) -> None:
        self._step(f"mkdir {path}")
        if not (self.root / path).is_dir():
            (self.root / path).mkdir()
            self.folders.add(path)
        self.fsync_dir(path.rpartition("/")[0])

    def read(self, path: str, watch: Watch | None = None) -> memoryview:
        self._look(f"read {path}")
        return self.real.read(path, watch)

    def listdir(self, path: str) -> list[str]:
        self._look(f"listdir {path}")
        return self.real.listdir(path)

    def stat(self, path: str) -> Stat | None:
        self._look(f"stat {path}")
        return self.real.stat(path)

    def barrier(self, name: str) -> None:
        self._step(name)

    @contextmanager
    def lock(self, path: str, *, exclusive: bool, timeout: float) -> Iterator[None]:
        with self.real.lock(path, exclusive=exclusive, timeout=timeout):
            self.names.setdefault(path, Node(b""))
            self.durable_names.setdefault(path, self.names[path])
            yield

    # after the end

    def power_loss(self, mode: str, seed: int = 0) -> None:
        """Leaves on the real disk what the medium may hold. The database's files are SQLite's own affair."""
        self.dead = True
        for handle in list(self._handles):
            self.real.close(self._handles.pop(handle) and handle)
        if mode == "keep":
            return
        chance = random.Random(seed)
        volatile = {name: (self.root / name).read_bytes() for name in self.names}
        folders = self.durable_folders if mode == "drop" else self.folders
        names = dict(self.durable_names)
        if mode == "tear":
            names = dict(self.names)
        elif mode == "chance":
            for name in {*self.names, *self.durable_names}:
                if self.names.get(name) is not self.durable_names.get(name) and chance.random() < 0.5:
                    names.pop(name, None)
                    if name in self.names:
                        names[name] = self.names[name]
        latest = {node: volatile[name] for name, node in self.names.items()}
        for name in volatile:
            (self.root / name).unlink()
        for folder in sorted(self.folders - folders, reverse=True):
            shutil.rmtree(self.root / folder, ignore_errors=True)
        for name, node in names.items():
            path = self.root / name
            if not path.parent.is_dir():
                continue
            path.write_bytes(self._content(node, latest.get(node), mode, chance))

    def _content(self, node: Node, latest: bytes | None, mode: str, chance: random.Random) -> bytes:
        if node.durable is not None and not node.lost:
            return node.durable
        if latest is None or mode == "drop":
            return node.durable or b""
        if mode == "tear":
            return latest[: len(latest) // 2] + bytes(len(latest) - len(latest) // 2)
        return latest[: chance.randint(0, len(latest))]


ENOSPC, EIO = errno.ENOSPC, errno.EIO
