"""The library: one folder with a database and its blobs. `Library` is the facade that everything above uses.

Knows how to open a library safely. Its parts know the rest: problems.py (problems, jobs), reviews.py (attempts,
decisions), artifacts.py (deposits, states), outcomes.py (asks, labels, measurements), people.py (users, keys),
books.py (books, segments).
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from library import audit, migrations
from library.books import Books
from library.database import meaningful_errors
from library.errors import NotFound, NotWritable
from library.fsio import FileSystem, RealFileSystem, translated
from library.sqlite import DATABASE
from library.statistics import Statistics, statistics


class Library(Books):
    """One library on disk; `open` it, then `close` it or use it as a context manager.

    Synchronous and safe for several threads; several processes may have the same library open.
    """

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        actor: str = "local",
        create: bool = True,
        quota_bytes: int | None = None,
        fs: FileSystem | None = None,
    ) -> Library:
        """Opens the library at `path`, making or migrating it where needed.

        `NotFound` (nothing there and not `create`), `NotWritable`, `LibraryTooNew`, `LibraryBusy` (another process
        migrates it), `CorruptError` (the database is damaged or another program's).
        """
        root = path.expanduser()
        if not (root / DATABASE).exists() and not create:
            raise NotFound(f"there is no library at {root}; make one by solving a problem, or name another")
        with translated(f"making the library's folder {root}"):
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not os.access(root, os.W_OK | os.X_OK):
            raise NotWritable(f"no permission to write to the library at {root}; choose another with --library")
        disk = fs or RealFileSystem(root)
        library = cls(root, disk, actor)
        library.quota_bytes = quota_bytes
        try:
            with meaningful_errors():
                if migrations.needs_migration(root):
                    library.blobs.prepare()
                    with library._locked(exclusive=True):
                        migrations.migrate(root, disk, actor=actor)
        except BaseException:
            library.close()
            raise
        return library

    def close(self) -> None:
        """Lets go of connections and of this process's mark. Safe to call twice."""
        self._end_life()
        self._dispose()

    def __enter__(self) -> Library:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def statistics(self, since: str = "", until: str = "9999") -> Statistics:
        """The dashboard's numbers for [since, until), times as RFC 3339 text."""
        return statistics(self.index, since, until)

    # the audit log

    def log(self, limit: int = 100, offset: int = 0) -> list[audit.Entry]:
        """Entries of the audit log, newest first."""
        with self._read() as session:
            execute = session.connection().exec_driver_sql
            return list(audit.read(execute, limit=limit, offset=offset, newest_first=True))

    def verify_log(self) -> audit.Finding | None:
        """Walks the whole chain; the first bad entry, or None."""
        with self._read() as session:
            return audit.verify(audit.read(session.connection().exec_driver_sql))

    def checkpoint(self, origin: str) -> str:
        """The body of a C2SP tlog-checkpoint note of the log as it stands; unsigned."""
        with self._read() as session:
            return audit.checkpoint(session.connection().exec_driver_sql, origin).body()

    def check_against(self, checkpoint_text: str) -> audit.Finding | None:
        """Whether the log has only grown since the checkpoint: None, or where it was rolled back or rewritten."""
        kept = audit.parse_checkpoint(checkpoint_text)
        with self._read() as session:
            return audit.against(session.connection().exec_driver_sql, kept)
