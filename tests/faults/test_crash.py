"""Rows 3, 4, 14 of the fault list: the process stops, or the power goes, at every single operation."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from library.errors import DigestMismatch
from library.migrations import SCHEMA_VERSION
from library.store import Library
from tests.faults.disk import MODES, Crash, FaultFileSystem
from tests.faults.scenarios import SCENARIOS, Promises, finish, hold
from tests.library.stores import key_of


def _copies(template: Path, tmp_path: Path) -> Iterator[Path]:
    number = 0
    while True:
        number += 1
        root = tmp_path / f"run{number}"
        shutil.copytree(template, root)
        yield root
        shutil.rmtree(root)


@pytest.mark.parametrize("name", SCENARIOS)
def test_crash_at_every_operation(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prepare, work = SCENARIOS[name]
    template, made = tmp_path / "template", Promises()
    with Library.open(template) as library:
        prepare(library, made)
    damaged = name in ("heal", "quarantine")
    copies = _copies(template, tmp_path)
    points = losses = 0
    stop_at, finished = 1, False
    while not finished:
        for mode in MODES:
            root, promises = next(copies), Promises(list(made.kept), list(made.gone))
            disk = FaultFileSystem(root, stop_at=stop_at)
            library = None
            try:
                library = Library.open(root, fs=disk)
                work(library, promises)
                finished = True
            except Crash:
                points += 1
            finally:
                disk.dead = True
                if library is not None:
                    library._dispose()
            disk.power_loss(mode, seed=stop_at)
            losses += 1
            with Library.open(root) as after:
                try:
                    hold(after, promises, damaged=damaged)
                except DigestMismatch as error:
                    pytest.fail(f"{name}: after operation {disk.trace[-1]!r} and {mode}: {error}")
                except AssertionError as error:
                    raise AssertionError(f"{name}: after operation {disk.trace[-1]!r} and {mode}: {error}") from error
                finish(after)
                assert after.verify_log() is None
        stop_at += 1
    assert points >= 4 * len(MODES), "the scenario did next to nothing"
    with capsys.disabled():
        print(f"\n{name}: {stop_at - 2} operations, {losses} power losses: 0 acknowledged lost, 0 dangling rows")


def test_creation_of_a_library_can_stop_anywhere(tmp_path: Path) -> None:
    for stop_at in range(1, 200):
        root = tmp_path / f"lib{stop_at}"
        root.mkdir()
        disk = FaultFileSystem(root, stop_at=stop_at)
        try:
            Library.open(root, fs=disk)._dispose()
        except Crash:
            disk.power_loss("drop")
            with Library.open(root) as library:
                assert library.find_exact(key_of("x")) == []
                assert [entry.action for entry in library.log()] == ["schema.migrate"] * SCHEMA_VERSION
            continue
        assert stop_at > 10
        return
    pytest.fail("opening a library never came to its end")
