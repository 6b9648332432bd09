"""The bench: what it reports, not how fast it is."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from core.evaluate import llama_slots
from core.evaluate.bench import report, steps, write_figures
from core.evaluate.bench_states import Sized, measure_size, solve_seconds
from core.evaluate.scale import Scale, grow_and_measure, p95
from core.model import FrozenModel
from library.store import Library


def sized(tokens: int, step: float = 0.5) -> Sized:
    return Sized(
        tokens=tokens,
        bytes=1000 * tokens,
        step=step,
        reprefill=tokens / 10,
        text_prefix=tokens / 9,
        graft_first_token=2.0,
        restore=0.6,
        read=0.3,
        plain_read_and_copy=0.4,
        torch_save=0.1,
        safetensors_save=0.1,
        unverified_load=0.1,
    )


SCALES = [Scale(1000, 0.1, 0.2, 0.3, 0.4, 50.0, 1.0), Scale(50_000, 0.2, 3.0, 0.4, 0.5, 60.0, 50.0)]
RATIOS = {"decode_ratio": 1.5, "best_of_8_ratio": 6.0}


def test_the_report_has_its_headline_by_name_and_size(model: FrozenModel) -> None:
    found = report(model, True, [sized(100), sized(200)], RATIOS, SCALES)
    assert found["first_token_ratio"] == {"100": pytest.approx(5), "200": pytest.approx(10)}
    assert found["restore_ratio"] == pytest.approx(1.5)
    assert (found["decode_ratio"], found["best_of_8_ratio"]) == (1.5, 6.0)
    assert found["lookup_p95_ms"] == {"1000": 0.1, "50000": 0.2}
    assert found["candidates_p95_ms"] == {"1000": 0.2, "50000": 3.0}
    assert found["machine"]["energy"]
    json.dumps(found)


@pytest.mark.parametrize("slots", [[], [{"tokens": 100, "first_token": 0.1}, {"tokens": 200, "first_token": 0.2}]])
def test_two_growth_curves_are_written(model: FrozenModel, tmp_path: Path, slots: list[dict[str, float]]) -> None:
    found = report(model, True, [sized(100), sized(200)], RATIOS, SCALES) | {"llama_cpp_slots": slots}
    paths = write_figures(tmp_path / "figures", found)
    assert [path.name for path in paths] == ["bench-tokens.html", "bench-library.html"]
    assert ("llama.cpp" in paths[0].read_text()) is bool(slots)


def test_solving_is_the_sum_of_its_steps() -> None:
    found = solve_seconds([sized(100, step=1.0), sized(200, step=3.0)])
    assert found == {100: pytest.approx(100.0), 200: pytest.approx(100.0 + 200.0)}


def test_a_percentile_is_a_value_that_occurred() -> None:
    assert p95(range(1, 101)) == 95
    assert p95([3.0]) == 3.0
    with pytest.raises(ValueError, match="no values"):
        p95([])


@pytest.mark.parametrize(
    ("records", "sizes"),
    [(500, [500]), (1000, [1000]), (50_000, [1000, 10_000, 50_000]), (10_000, [1000, 10_000])],
)
def test_library_sizes_grow_by_tens(records: int, sizes: list[int]) -> None:
    assert steps(records) == sizes


def test_a_grown_library_is_measured_by_another_process(tmp_path: Path) -> None:
    said: list[str] = []
    found = grow_and_measure(tmp_path / "many", [40, 300], said.append)
    assert [one.records for one in found] == [40, 300]
    assert all(min(vars(one).values()) > 0 for one in found)
    assert len(said) == 2
    with Library.open(tmp_path / "many") as library:
        assert library.count_artifacts() == 300


def test_a_length_is_measured_on_a_real_state(model: FrozenModel, tmp_path: Path) -> None:
    with Library.open(tmp_path) as library:
        found = measure_size(model, library, 40, rounds=1)
        assert (found.tokens, library.count_artifacts()) == (40, 0)
    assert min(vars(found).values()) > 0
    assert found.bytes > 40 * 2 * 30 * 3 * 64 * 4  # keys and values of 30 layers, 3 heads of 64 float32
    assert not [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()]


def test_llama_cpp_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "llama_cpp", None)
    found, reason = llama_slots.measure(tmp_path / "model.gguf", [4], lambda n: list(range(n)), [1], 1)
    assert (found, reason) == ([], "llama-cpp-python is not installed")
    monkeypatch.setitem(sys.modules, "llama_cpp", sys)
    assert llama_slots.measure(None, [4], lambda n: list(range(n)), [1], 1)[1].startswith("the model does not come")
