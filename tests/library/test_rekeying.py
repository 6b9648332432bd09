from __future__ import annotations

import pytest

from core.engine import Engine
from core.gate import CANONICAL_VERSION, canonical_key
from core.settings import load_settings
from library.errors import StorageFull
from library.rekeying import BATCH, rekey, stale
from library.search import Index
from library.store import Library
from tests.library.stores import deposit


def _new_key(text: str) -> str:
    return canonical_key(text + " (new rules)")


def test_old_keys_are_replaced_and_new_ones_kept(library: Library) -> None:
    for text in ("one", "two", "three"):
        deposit(library, text)
    library.add_problem("four", canonical_key="k", canonical_version=1, by="ada")
    old = stale(library, 2)
    assert old >= 4
    assert library.find_exact(_new_key("two")) == []
    assert rekey(library, _new_key, 2, limit=2) == 2
    assert stale(library, 2) == old - 2
    assert rekey(library, _new_key, 2) == old - 2
    assert [row.problem_text for row in library.find_exact(_new_key("two"))] == ["two"]
    assert rekey(library, _new_key, 2) == 0, "a second run finds nothing to do"
    assert rekey(library, lambda text: "older", 1) == 0, "keys of a newer version stay"
    assert library.verify_log() is None
    entries = [entry for entry in library.log() if entry.action == "library.rekey"]
    assert len(entries) == 2


def test_more_than_a_batch(library: Library) -> None:
    for number in range(BATCH + 5):
        library.add_problem(f"problem {number}", canonical_key=str(number), canonical_version=1, by="ada")
    assert rekey(library, _new_key, 2) == BATCH + 5
    assert stale(library, 2) == 0


def test_the_count_walks_no_table(library: Library) -> None:
    plan = Index(library.root).query(
        "EXPLAIN QUERY PLAN SELECT count(*) FROM artifact WHERE kind = 'solution' AND canonical_version < 2"
    )
    assert "artifact_version" in str(plan)


def test_a_failed_commit_changes_nothing(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    deposit(library, "one")
    before = stale(library, 2)

    def full(point: str) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(library.fs, "barrier", full)
        with pytest.raises(StorageFull):
            rekey(library, _new_key, 2)
    assert stale(library, 2) == before


def test_starting_the_engine_brings_old_keys_up_to_date(library: Library) -> None:
    deposit(library, "How many is $1+1$?")
    assert library.find_exact(canonical_key("How many is $1+1$?")) == []
    Engine(load_settings(library=library.root), library).close()
    assert len(library.find_exact(canonical_key("How many is \\(1+1\\)?"))) == 1
    assert stale(library, CANONICAL_VERSION) == 0


def test_a_start_with_nothing_to_do_takes_no_write_lock(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    deposit(library, "one")
    rekey(library, _new_key, 2)

    def write(*arguments: object) -> None:
        raise AssertionError("a write transaction was begun")

    monkeypatch.setattr(library, "_write", write)
    assert rekey(library, _new_key, 2, limit=10) == 0
