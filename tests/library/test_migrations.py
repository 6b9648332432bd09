from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine
from sqlmodel import SQLModel

import library.tables  # noqa: F401  (registers the tables)
from library import migrations
from library.errors import CorruptError, LibraryTooNew
from library.fsio import RealFileSystem
from library.sqlite import DATABASE, connect
from library.store import Library
from tests.library.stores import deposit


def _schema(connection: sqlite3.Connection, names: set[str]) -> dict[str, str]:
    rows = connection.execute("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index') AND sql NOT NULL")
    return {name: re.sub(r'\s+|"', "", sql) for name, sql in rows if name in names}


def test_schema_is_that_of_the_tables(tmp_path: Path) -> None:
    names = set(SQLModel.metadata.tables)
    names |= {index.name for table in SQLModel.metadata.tables.values() for index in table.indexes}
    engine = create_engine(f"sqlite:///{tmp_path / 'model.db'}")
    SQLModel.metadata.create_all(engine)
    engine.dispose()
    Library.open(tmp_path / "lib").close()
    with (
        closing(sqlite3.connect(tmp_path / "model.db")) as model,
        closing(connect(tmp_path / "lib" / DATABASE)) as real,
    ):
        wanted, made = _schema(model, names), _schema(real, names)
    assert made == wanted, "library/schema.sql and library/tables.py differ"


def _add_column(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE artifact ADD COLUMN tail VARCHAR NOT NULL DEFAULT 'x'")


def _fail(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE artifact ADD COLUMN half INTEGER")
    raise RuntimeError("stopped half-way")


def _version(root: Path) -> int:
    with closing(connect(root / DATABASE)) as connection:
        return int(connection.execute("PRAGMA user_version").fetchone()[0])


def test_older_library_is_migrated_after_a_backup(tmp_path: Path) -> None:
    with Library.open(tmp_path) as library:
        digest = deposit(library, "one").digest
    steps = (*migrations.STEPS, _add_column)
    assert migrations.needs_migration(tmp_path, steps)
    migrations.migrate(tmp_path, RealFileSystem(tmp_path), actor="ada", steps=steps)
    assert not migrations.needs_migration(tmp_path, steps)
    with closing(connect(tmp_path / DATABASE)) as connection:
        assert connection.execute("SELECT digest, tail FROM artifact").fetchall() == [(digest, "x")]
        last = connection.execute("SELECT action, detail FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
        assert last == ("schema.migrate", f'{{"version":{len(steps)}}}')
    (copy,) = (tmp_path / "backups").iterdir()
    with closing(sqlite3.connect(copy)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (migrations.SCHEMA_VERSION,)
        assert connection.execute("SELECT digest FROM artifact").fetchall() == [(digest,)]


def test_failed_step_leaves_the_old_version(tmp_path: Path) -> None:
    Library.open(tmp_path).close()
    with pytest.raises(RuntimeError):
        migrations.migrate(tmp_path, RealFileSystem(tmp_path), actor="ada", steps=(*migrations.STEPS, _fail))
    assert _version(tmp_path) == migrations.SCHEMA_VERSION
    with closing(connect(tmp_path / DATABASE)) as connection:
        assert "half" not in [row[1] for row in connection.execute("PRAGMA table_info(artifact)")]


def test_newer_library_is_refused_by_name(tmp_path: Path) -> None:
    Library.open(tmp_path).close()
    with closing(connect(tmp_path / DATABASE)) as connection:
        connection.execute("PRAGMA user_version = 99")
    before = (tmp_path / DATABASE).read_bytes()
    with pytest.raises(LibraryTooNew, match=rf"version 99.*up to {migrations.SCHEMA_VERSION}"):
        Library.open(tmp_path)
    assert (tmp_path / DATABASE).read_bytes() == before


@pytest.mark.parametrize("content", [b"not a database at all, but long enough to be looked at" * 40, None])
def test_foreign_database_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is None:
        with closing(sqlite3.connect(tmp_path / DATABASE)) as connection:
            connection.execute("CREATE TABLE theirs (x)")
    else:
        (tmp_path / DATABASE).write_bytes(content)
    before = (tmp_path / DATABASE).read_bytes()
    with pytest.raises(CorruptError):
        Library.open(tmp_path)
    assert (tmp_path / DATABASE).read_bytes() == before


def test_statements_keep_triggers_whole() -> None:
    script = "-- note\nCREATE TABLE a (x);\n\nCREATE TRIGGER t AFTER INSERT ON a BEGIN\n  DELETE FROM a;\nEND;\n"
    assert [text.split()[1] for text in migrations.statements(script)] == ["TABLE", "TRIGGER"]
