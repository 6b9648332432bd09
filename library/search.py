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

from library.candidates import best, tokens
from library.digest import Digest
from library.errors import CorruptError, LibraryTooNew, NotFound, UsageError
from library.migrations import SCHEMA_VERSION
from library.sqlite import DATABASE, connect_read_only, meaningful_errors, version_of

PREFIX = re.compile(r"(?:blake3:)?([0-9a-f]{6,64})", re.ASCII)
STATES = ("published", "held", "evicted", "quarantined", "revoked", "imported")
ORDERS = ("created", "solve_tokens", "size_bytes", "uses")  # each has an index (state, column)
FILTERS = ("kind", "model", "identity", "reviewer", "verifier", "attempt_id", "parent", "origin")
TEXT_HITS = 10_000  # a text filter looks at this many of the newest hits


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
    """A published solution whose problem shares words with the query; `score` in [0, 1], 1 for the same words."""

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
        self._common: dict[str, int] = {}

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
        # The unary plus keeps SQLite on the key's index: it would walk all published rows to spare itself a sort.
        sql = f"{_SELECT} WHERE canonical_key = ? AND +state = 'published' AND kind = 'solution'"
        parameters: list[Any] = [canonical_key]
        if identity is not None:
            sql += " AND identity = ?"
            parameters.append(identity)
        return self._records(f"{sql} ORDER BY created DESC LIMIT ?", [*parameters, limit])

    def artifacts(
        self,
        *,
        states: Sequence[str] | None = None,
        text: str | None = None,
        order: str = "created",
        descending: bool = True,
        limit: int = 50,
        offset: int = 0,
        **filters: str | None,
    ) -> list[Record]:
        """A page of the table. `filters` are columns of `FILTERS` with the value they must have; `text` is looked
        for in the problems, all its words, the last as a beginning (the newest 10,000 hits). `UsageError`."""
        if order not in ORDERS:
            raise UsageError(f"cannot order by {order[:40]!r}; one of {', '.join(ORDERS)}")
        direction = "DESC" if descending else "ASC"
        # One walk along the index of each state, merged: no sort of the whole table, whatever is asked for.
        parts, values = [], []
        for state in STATES if states is None else states:
            source, parameters = _source(state, text, filters)
            parts.append(
                f"SELECT * FROM (SELECT artifact.rowid AS row, {order} AS key {source} ORDER BY 2 {direction} LIMIT ?)"
            )
            values += [*parameters, limit + offset]
        arms = " UNION ALL ".join(parts) or "SELECT NULL AS row, NULL AS key WHERE 0"
        merged = f"SELECT row, key FROM ({arms}) ORDER BY key {direction}, row {direction} LIMIT ? OFFSET ?"
        sql = f"{_SELECT} JOIN ({merged}) AS page ON artifact.rowid = page.row"
        return self._records(f"{sql} ORDER BY page.key {direction}, page.row {direction}", [*values, limit, offset])

    def count(self, *, states: Sequence[str] | None = None, text: str | None = None, **filters: str | None) -> int:
        """How many records `artifacts` would page through."""
        total = 0
        for state in STATES if states is None else states:
            source, parameters = _source(state, text, filters)
            total += int(self.query(f"SELECT count(*) {source}", parameters)[0][0])
        return total

    def candidates(self, query: str, k: int = 5, identity: str | None = None) -> list[Candidate]:
        """Published solutions of similar problems, best first; see candidates.py."""
        return [
            Candidate(record, score)
            for row, score in best(self.query, query, k, identity, self._common)
            for record in self._records(f"{_SELECT} WHERE artifact.rowid = ?", [row])
        ]

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


def _source(state: str, text: str | None, filters: dict[str, str | None]) -> tuple[str, list[str]]:
    """`FROM … WHERE …` of the records in one state that meet the conditions, and its parameters."""
    sql, parameters = "FROM artifact WHERE state = ?", [state]
    words = tokens(text) if text else []
    if text and text.strip() and (state != "published" or not words):
        sql += " AND problem_text LIKE ? ESCAPE '\\'"
        parameters.append("%" + re.sub(r"([\\%_])", r"\\\1", text.strip()) + "%")
    elif words:
        # CROSS JOIN: from the hits to the records, never the other way about
        sql = f"""FROM (SELECT rowid AS hit FROM problemindex WHERE problemindex MATCH ?
                ORDER BY rowid DESC LIMIT {TEXT_HITS}) CROSS JOIN problemdoc ON docid = hit
            CROSS JOIN artifact ON artifact.digest = problemdoc.digest WHERE +state = ?"""
        parameters = [" AND ".join(f'"{word}"' for word in words) + "*", state]
    for name, value in filters.items():
        if name not in FILTERS:
            raise UsageError(f"cannot filter by {name[:40]!r}; one of {', '.join(FILTERS)}")
        if value is not None:
            sql += f" AND {name} = ?"
            parameters.append(value)
    return sql, parameters


def list_artifacts(root: Path, **conditions: Any) -> list[Record]:
    """`Index.artifacts` of the library at `root`, without the rest of the library's code."""
    index = Index(root)
    try:
        return index.artifacts(**conditions)
    finally:
        index.close()


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
