"""Plain SQLite for this project: connections, their settings, the meaning of its errors. Knows no table."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from library.errors import (
    Conflict,
    CorruptError,
    LibraryBusy,
    NotWritable,
    ScionError,
    StorageFull,
    StoreError,
    UsageError,
)

DATABASE = "library.db"
APPLICATION_ID = 0x5C10_11B1
BUSY_SECONDS = 15.0


def connect(path: Path) -> sqlite3.Connection:
    """A connection in autocommit mode with this project's settings."""
    connection = sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    configure(connection)
    return connection


def configure(connection: sqlite3.Connection) -> None:
    """Settings that hold for each connection: full syncs (an acknowledged commit survives power loss)."""
    connection.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA foreign_keys = ON")


def connect_read_only(path: Path) -> sqlite3.Connection:
    uri = f"{path.resolve().as_uri()}?mode=ro"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute("PRAGMA query_only = ON")
    return connection


def version_of(connection: sqlite3.Connection) -> int:
    """The schema version of a database; 0 for an empty one. `CorruptError` if another program made it."""
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    identifier = int(connection.execute("PRAGMA application_id").fetchone()[0])
    tables = int(connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])
    if version == 0 and tables == 0:
        return 0
    if identifier != APPLICATION_ID:
        raise CorruptError(f"{DATABASE} was not made by this program; choose another folder for the library")
    return version


def database_error(error: sqlite3.Error) -> ScionError:
    """The project's error for one of SQLite's."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_FULL:
            return StorageFull(f"the library's database cannot grow: {error}; free some space")
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return LibraryBusy(f"another process is writing to the library: {error}; try again")
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return NotWritable(f"the library's database cannot be opened for this: {error}; check its owner and mode")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return CorruptError(f"the library's database is damaged: {error}; restore one from backups/")
        case sqlite3.SQLITE_CONSTRAINT:
            if getattr(error, "sqlite_errorname", "") == "SQLITE_CONSTRAINT_TRIGGER":
                return Conflict(str(error))
            return UsageError(f"the library does not accept this record: {error}")
    return StoreError(f"the library's database failed: {error}")


@contextmanager
def meaningful_errors() -> Iterator[None]:
    """Turns a `sqlite3.Error` inside, or text that SQLite cannot hold, into the project's error."""
    try:
        yield
    except sqlite3.Error as error:
        raise database_error(error) from error
    except UnicodeEncodeError as error:  # half of a surrogate pair: no UTF-8
        raise UsageError(f"the text is not valid Unicode: {error.reason}") from error
