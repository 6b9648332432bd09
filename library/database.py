"""Connections, transactions and locks of one library. Every change is one transaction with its audit entries.

Knows SQLite and SQLModel's sessions. Knows no table's meaning.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlmodel import Session

from library import audit, migrations
from library.blobs import BlobStore
from library.fsio import FileSystem, translated
from library.search import Index
from library.sqlite import BUSY_SECONDS, DATABASE, configure, database_error
from library.sqlite import meaningful_errors as sqlite_errors

LOCK_SECONDS = 30.0


class Change:
    """One write transaction: `session` for rows, `log` for the entries that go with them."""

    def __init__(self, session: Session, actor: str) -> None:
        self.session = session
        self._actor = actor

    def execute(self, sql: str, parameters: tuple[Any, ...] = ()) -> Any:
        return self.session.connection().exec_driver_sql(sql, parameters)

    def log(self, action: str, subject: str, *, actor: str | None = None, **detail: Any) -> None:
        """An audit entry in this transaction. No floats in `detail`: they have no canonical text."""
        self.session.flush()
        audit.append(self.execute, actor=actor or self._actor, action=action, subject=subject, detail=detail)


class Database:
    """What all parts of a library share. Safe for several threads; several processes may each have one."""

    def __init__(self, root: Path, fs: FileSystem, actor: str) -> None:
        self.root, self.fs, self.actor = root, fs, actor
        self.blobs = BlobStore(fs)
        self.index = Index(root)
        self._writing = threading.Lock()  # SQLite's own waiting is unfair between threads
        self._engine = _engine(root / DATABASE)
        self._immediate = self._engine.execution_options(immediate=True)

    def _dispose(self) -> None:
        self.index.close()
        self._engine.dispose()

    def _locked(self, *, exclusive: bool, timeout: float | None = None) -> AbstractContextManager[None]:
        """The maintenance lock: shared by deposits, exclusive for what removes files."""
        return self.fs.lock(migrations.LOCK, exclusive=exclusive, timeout=LOCK_SECONDS if timeout is None else timeout)

    @contextmanager
    def _read(self) -> Iterator[Session]:
        with meaningful_errors(), Session(self._engine, expire_on_commit=False) as session:
            yield session

    @contextmanager
    def _write(self, actor: str | None = None) -> Iterator[Change]:
        """A transaction that holds SQLite's write lock from its start; commits at the end, or changes nothing."""
        with meaningful_errors(), self._writing, Session(self._immediate, expire_on_commit=False) as session:
            yield Change(session, actor or self.actor)
            session.flush()
            with translated("committing to the library"):
                self.fs.barrier("commit")
            session.commit()
            self.fs.barrier("committed")


def new_id(prefix: str) -> str:
    return prefix + secrets.token_hex(8)


def _engine(path: Path) -> Engine:
    engine = create_engine(f"sqlite:///{path}", connect_args={"timeout": BUSY_SECONDS}, pool_size=8)

    @event.listens_for(engine, "connect")
    def on_connect(connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # the driver must not open transactions of its own
        configure(connection)

    @event.listens_for(engine, "begin")
    def on_begin(connection: Any) -> None:
        immediate = connection.get_execution_options().get("immediate", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine


@contextmanager
def meaningful_errors() -> Iterator[None]:
    """Turns an error of SQLite or SQLAlchemy inside into the project's error."""
    with sqlite_errors():
        try:
            yield
        except DBAPIError as error:
            if isinstance(error.orig, sqlite3.Error):
                raise database_error(error.orig) from error
            raise
