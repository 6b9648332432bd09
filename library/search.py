"""Reading a library's table of artifacts with plain SQL: lists, exact lookup, candidates by text.

Imports neither SQLModel nor SQLAlchemy, so that a list answers at once. Reads only; never decides whether a
candidate may be grafted (core/gate).
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from library.digest import Digest
from library.errors import CorruptError, LibraryTooNew, NotFound, UsageError
from library.migrations import SCHEMA_VERSION
from library.sqlite import DATABASE, connect_read_only, meaningful_errors, version_of

PREFIX = re.compile(r"(?:blake3:)?([0-9a-f]{6,64})", re.ASCII)
ORDERS = ("created", "solve_tokens", "size_bytes", "uses", "last_used", "graft_point")


@dataclass(frozen=True)
class Record:
    """A row of the table of artifacts, column by column as in tables.py."""

    digest: str
    kind: str
    state: str
    state_reason: str
    state_since: str
    attempt_id: str | None
    problem_text: str
    canonical_key: str
    canonical_version: int
    answer: str
    model: str
    identity: str
    environment: str
    verifier: str
    reviewer: str
    size_bytes: int
    stored_bytes: int
    compression: str
    graft_point: int
    solve_tokens: int
    solve_seconds: float
    solve_flops: int
    solve_joules: float | None
    pinned: bool
    uses: int
    last_used: str | None
    parent: str | None
    origin: str
    created: str


@dataclass(frozen=True)
class Candidate:
    """A published solution whose problem shares words with the query; a higher `score` is a better match."""

    record: Record
    score: float


COLUMNS = tuple(field.name for field in fields(Record))
_SELECT = "SELECT " + ", ".join(f"artifact.{name}" for name in COLUMNS) + " FROM artifact"


class Index:
    """Read-only connections to one library's database, one a thread."""

    def __init__(self, root: Path) -> None:
        self._path = root / DATABASE
        self._local = threading.local()
        self._open: list[sqlite3.Connection] = []
        self._guard = threading.Lock()

    def close(self) -> None:
        with self._guard:
            for connection in self._open:
                connection.close()
            self._open.clear()
            self._local = threading.local()

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with meaningful_errors():
            return self._connection().execute(sql, parameters).fetchall()

    def exact(self, canonical_key: str, identity: str | None = None, limit: int = 50) -> list[Record]:
        """Published solutions of the problem with this canonical key, newest first."""
        sql = f"{_SELECT} WHERE canonical_key = ? AND state = 'published' AND kind = 'solution'"
        parameters: list[Any] = [canonical_key]
        if identity is not None:
            sql += " AND identity = ?"
            parameters.append(identity)
        return self._records(f"{sql} ORDER BY created DESC LIMIT ?", [*parameters, limit])

    def resolve(self, name: str) -> Record:
        """The artifact with this digest or unique beginning of it (6 hex digits or more)."""
        match = PREFIX.fullmatch(name)
        if match is None:
            raise UsageError(f"not a digest or a beginning of one (6 to 64 hex digits): {name[:80]!r}")
        low = f"blake3:{match.group(1)}"
        found = self._records(f"{_SELECT} WHERE digest >= ? AND digest < ? ORDER BY digest LIMIT 2", [low, low + "g"])
        if not found:
            raise NotFound(f"no artifact {low} in the library")
        if len(found) > 1:
            raise UsageError(f"more than one artifact begins with {low}; give more digits")
        return found[0]

    def _records(self, sql: str, parameters: Sequence[Any]) -> list[Record]:
        return [_record(row) for row in self.query(sql, parameters)]

    def _connection(self) -> sqlite3.Connection:
        held: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if held is None:
            held = _connect(self._path)
            with self._guard:
                self._open.append(held)
            self._local.connection = held
        return held


def _record(row: tuple[Any, ...]) -> Record:
    values = dict(zip(COLUMNS, row, strict=True))
    values["pinned"] = bool(values["pinned"])
    return Record(**values)


def _connect(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise NotFound(f"there is no library at {path.parent}; make one by solving a problem, or name another")
    connection = connect_read_only(path)
    try:
        version = version_of(connection)
    except BaseException:
        connection.close()
        raise
    if version != SCHEMA_VERSION:
        connection.close()
        if version > SCHEMA_VERSION:
            raise LibraryTooNew(
                f"the library at {path.parent} has schema version {version}, this program knows up to "
                f"{SCHEMA_VERSION}; update the program, or choose another library"
            )
        raise CorruptError(f"the library at {path.parent} has an older schema; open it once for writing to migrate it")
    return connection


def parse(name: str) -> Digest:
    """A digest written in full, with or without its algorithm."""
    return Digest.parse(name if name.startswith("blake3:") else f"blake3:{name}")
