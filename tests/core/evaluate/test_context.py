"""The experiment on books, at the size of a test; and that it would notice what it is there to notice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from core.books.record import rows
from core.evaluate.context import Setup, run
from core.evaluate.context_report import write_figures
from core.evaluate.haystack import needles, write_haystack
from core.evaluate.memory import Peak
from core.model import FrozenModel
from library.blobs import blob_path
from library.digest import Digest
from library.errors import UsageError
from library.store import Library
from tests.core.readers import tiny_reader

SETUP = Setup(tokens=12_000, segment_tokens=512, needles=6, synthetic=True)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    return tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experiment")


@pytest.fixture(scope="module")
def report(model: FrozenModel, folder: Path) -> dict[str, Any]:
    return run(model, SETUP, folder)


def test_every_segment_comes_back_bit_for_bit(report: dict[str, Any]) -> None:
    assert report["digest_mismatches"] == 0
    assert report["segments_checked"] == report["segments"] > 20
    assert report["addressable_tokens"] >= SETUP.tokens
    assert 512 >= report["attended_tokens"] - 512 > 0


def test_memory_and_time_are_measured(report: dict[str, Any]) -> None:
    assert 0.5 < report["peak_memory_ratio"] < 1.5
    assert report["peak_bytes"]["ask"] > report["peak_bytes"]["resting"] > 0
    assert 0 < report["first_token_seconds"] <= report["answer_seconds"]
    assert report["bytes_per_token"] > 0


def test_routing_is_measured_and_a_random_models_recall_is_not(report: dict[str, Any]) -> None:
    assert report["routing_recall"] >= 0.8
    assert report["recall"] is None
    assert {row["routed"] for row in report["needles"]} <= {True, False}


def test_a_second_run_goes_on_and_says_the_same(model: FrozenModel, folder: Path, report: dict[str, Any]) -> None:
    again = run(model, SETUP, folder)
    assert again["book_digest"] == report["book_digest"]
    assert again["ingest_tokens_per_second"] is None
    assert again["needles"] == report["needles"]
    with pytest.raises(UsageError, match="other settings"):
        run(model, Setup(**{**SETUP.__dict__, "segments": 5}), folder)


def test_figures_are_written(report: dict[str, Any], tmp_path: Path) -> None:
    write_figures(tmp_path, {**report, "addressable_tokens": 7_654_321})
    write_figures(tmp_path, {**report, "addressable_tokens": 8_765_432, "model": f"{report['model']}-another"})
    written = {path.stem: path.read_text(encoding="utf-8")[-20_000:] for path in write_figures(tmp_path, report)}
    assert len(written) == 4
    for grown in (text for name, text in written.items() if name.endswith(("memory", "first"))):
        assert "7654321" in grown  # an earlier run of the same model
        assert str(report["addressable_tokens"]) in grown
        assert "8765432" not in grown


def test_a_damaged_segment_is_counted(model: FrozenModel, folder: Path, report: dict[str, Any]) -> None:
    with Library.open(folder / "library", actor="alice") as library:
        row = list(rows(library, library.book(SETUP.name).id))[3]
        assert row.artifact is not None
        path = library.root / blob_path(Digest.parse(row.artifact))
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    again = run(model, SETUP, folder)
    assert again["digest_mismatches"] == 1
    assert "segment 3: DigestMismatch" in again["mismatches"][0]


def test_a_haystack_is_the_same_again_and_holds_its_needles_at_their_depths(tmp_path: Path) -> None:
    hidden = needles(9)
    assert len({needle.question for needle in hidden}) == 9
    for name in ("a", "b"):
        assert write_haystack(tmp_path / name, 20_000, hidden, len) >= 20_000
    text = (tmp_path / "a").read_text()
    assert text == (tmp_path / "b").read_text()
    for needle in hidden:
        assert text.count(needle.sentence) == 1
        assert text.count(needle.value) >= 1
        assert abs(text.index(needle.sentence) / len(text) - needle.depth) < 0.06


def test_a_peak_is_seen_after_it_is_over(model: FrozenModel) -> None:
    peak = Peak(model.device)
    before = peak.restart()
    held = bytearray(80 << 20)
    held[::4096] = b"x" * len(held[::4096])
    del held
    assert peak.read() >= before + (70 << 20)
    assert peak.restart() < before + (40 << 20)
