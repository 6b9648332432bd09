"""The database's schema, version by version: ordered steps, a backup before the first of them.

Knows SQL. Knows nothing of SQLModel, so that an old step never changes because a class did.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

from library import audit
from library.errors import LibraryTooNew
from library.fsio import FileSystem, translated
from library.sqlite import APPLICATION_ID, DATABASE, connect, version_of

LOCK = "lock"
Step = Callable[[sqlite3.Connection], None]


def _first(connection: sqlite3.Connection) -> None:
    for statement in statements(Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")):
        connection.execute(statement)


def _campaigns(connection: sqlite3.Connection) -> None:
    """Jobs are found by the campaign in their payload (campaigns.py); few have one."""
    connection.execute(
        "CREATE INDEX job_campaign ON job (json_extract(payload, '$.campaign')) "
        "WHERE json_extract(payload, '$.campaign') IS NOT NULL"
    )


def _old_keys(connection: sqlite3.Connection) -> None:
    """Records with keys of an older canonical version are found without a walk (rekeying.py)."""
    connection.execute("CREATE INDEX artifact_version ON artifact (canonical_version) WHERE kind = 'solution'")
    connection.execute("CREATE INDEX problem_version ON problem (canonical_version)")


STEPS: tuple[Step, ...] = (_first, _campaigns, _old_keys)
SCHEMA_VERSION = len(STEPS)


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: `executescript` would commit the transaction around it."""
    pending = ""
    for line in script.splitlines(keepends=True):
        if not pending and (not line.strip() or line.startswith("--")):
            continue
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending.strip()
            pending = ""


def needs_migration(root: Path, steps: Sequence[Step] = STEPS) -> bool:
    """Whether the library below `root` has an older schema. `LibraryTooNew` if it has a newer one."""
    with closing(connect(root / DATABASE)) as connection:
        version = version_of(connection)
    _refuse_newer(root, version, len(steps))
    return version < len(steps)


def migrate(root: Path, fs: FileSystem, *, actor: str, steps: Sequence[Step] = STEPS) -> None:
    """Brings the database to `len(steps)`, each step in one transaction with its audit entry.

    The caller holds the library's lock exclusively. A database with content is copied to backups/ first.
    """
    with closing(connect(root / DATABASE)) as connection:
        version = version_of(connection)
        _refuse_newer(root, version, len(steps))
        connection.execute("PRAGMA journal_mode = WAL")
        if 0 < version < len(steps):
            backup(connection, root, fs, f"before-v{len(steps)}")
        for number in range(version + 1, len(steps) + 1):
            connection.execute("BEGIN IMMEDIATE")
            try:
                steps[number - 1](connection)
                connection.execute(f"PRAGMA user_version = {number}")
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
                detail = {"version": number}
                audit.append(connection.execute, actor=actor, action="schema.migrate", subject=DATABASE, detail=detail)
                fs.barrier("commit")
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            fs.barrier("committed")


def backup(connection: sqlite3.Connection, root: Path, fs: FileSystem, label: str) -> str:
    """A consistent copy of the database in backups/; returns its path below the root."""
    stamp = audit.now().replace(":", "").replace(".", "-")
    name = f"backups/{label}-{stamp}.db"
    with closing(sqlite3.connect(root / name)) as copy:
        copy.execute("PRAGMA synchronous = FULL")
        connection.backup(copy)
    with translated("writing a backup"):
        fs.fsync_dir("backups")
    return name


def _refuse_newer(root: Path, version: int, known: int) -> None:
    if version > known:
        raise LibraryTooNew(
            f"the library at {root} has schema version {version}, this program knows up to {known}; "
            "update the program, or choose another library"
        )
