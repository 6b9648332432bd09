"""Every cache kind of the installed transformers comes back bit for bit in a new process, or is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from core.evaluate import cache_kinds
from core.evaluate.cache_kinds import CASES, Case, KindRow, measure_cache_kinds, refused_kinds, table
from core.evaluate.tiny_models import ARCHITECTURES
from core.state import State
from core.state.kinds import KINDS, REFUSED
from library.errors import ScionError, UnsupportedState


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def rows() -> tuple[KindRow, ...]:
    return measure_cache_kinds()  # one new process for all


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.architecture}-{case.cache}-{case.dtype}")
def test_exact_in_a_new_process(rows: tuple[KindRow, ...], case: Case) -> None:
    wanted = (case.architecture, case.cache, case.dtype)
    row = next(row for row in rows if (row.architecture, row.cache, row.dtype) == wanted)
    assert (row.outcome, row.reason, row.steps) == ("exact", "", 32)


def test_every_kind_and_architecture_is_measured_in_both_dtypes(rows: tuple[KindRow, ...]) -> None:
    for dtype in ("float32", "bfloat16"):
        assert {kind for row in rows if row.dtype == dtype for kind in row.kinds} == {kind.name for kind in KINDS}
        assert {row.architecture for row in rows if row.dtype == dtype} == set(ARCHITECTURES)


def test_every_refused_class_is_in_the_table(rows: tuple[KindRow, ...]) -> None:
    refused = [row for row in rows if row.outcome == "refused"]
    assert {row.cache for row in refused} >= {cls.__name__ for cls in REFUSED}
    assert all(row.reason and not row.kinds for row in refused)


def test_a_changed_bit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*args: Any, **kwargs: Any) -> State:
        state = capture(*args, **kwargs)
        tensors = {name: tensor.clone() for name, tensor in state.tensors.items()}
        tensors["layers.01.keys"].view(torch.int32)[0, 0, 0, 0] ^= 1 << 20
        return State(state.layers, tensors, state.length)

    capture = cache_kinds.capture
    monkeypatch.setattr(cache_kinds, "capture", damaged)
    monkeypatch.setattr(cache_kinds, "refused_kinds", lambda: ())
    (row,) = measure_cache_kinds([Case("llama", "in place", "float32")], steps=4)
    assert (row.outcome, row.reason, row.steps) == ("divergent", "the logits differ from step 0 on", 0)


def test_a_case_that_cannot_be_captured_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> State:
        raise UnsupportedState("not today")

    monkeypatch.setattr(cache_kinds, "capture", refuse)
    monkeypatch.setattr(cache_kinds, "refused_kinds", lambda: ())
    (row,) = measure_cache_kinds([Case("llama", "in place", "float32")], steps=4)
    assert row == KindRow("llama", "in place", (), "float32", "refused", "not today", 0)


def test_a_kind_that_is_no_longer_refused_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_kinds, "layer_kinds", lambda config: ())
    with pytest.raises(ScionError, match="dynamic RoPE of llama should be refused"):
        refused_kinds()


def test_the_table() -> None:
    text = table(
        [
            KindRow("llama", "in place", ("full", "full"), "float32", "exact", "", 32),
            KindRow("any", "MtpCache", (), "any", "refused", "why", 0),
        ]
    )
    assert text.splitlines()[2:] == [
        "| llama | in place | full | float32 | exact | 32 |",
        "| any | MtpCache | - | any | refused: why | - |",
    ]


def test_the_documented_table_is_the_measured_one(rows: tuple[KindRow, ...]) -> None:
    page = (Path(__file__).parents[2] / "docs" / "cache-kinds.md").read_text(encoding="utf-8")
    assert table(rows) in page
