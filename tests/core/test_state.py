"""State capture: what a live cache holds comes back, bit for bit, or is refused by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from transformers import T5Config
from transformers import cache_utils as cu

from core.cache import keep_rows, new_cache
from core.state import State, bulk, capture, layer_kinds, restore, select_row, state_tensors, tensors_from_artifact
from core.state.dtypes import DTYPES
from library import memory
from library.artifact import TensorData
from library.errors import FormatError, UnsupportedState
from tests.core.tiny import WINDOW, feed, greedy, tiny_config, tiny_ids, tiny_model

CPU = torch.device("cpu")


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny models lose more by waiting for each other's threads than they win
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def gemmas() -> Mapping[torch.dtype, Any]:
    return {dtype: tiny_model("gemma3_text", dtype) for dtype in (torch.float32, torch.bfloat16)}


@pytest.fixture(scope="module")
def gemma(gemmas: Mapping[torch.dtype, Any]) -> Any:
    return gemmas[torch.float32]


@pytest.fixture(scope="module")
def llama() -> Any:
    return tiny_model("llama")


def through_bytes(state: State) -> tuple[Mapping[str, torch.Tensor], bytes]:
    """The state's tensors as views on one read-only buffer, as an artifact's reader gives them."""
    parts = state_tensors(state)
    blob = b"".join(bytes(part.data) for part in parts)
    view, start, found = memoryview(blob), 0, {}
    for part in parts:
        end = start + part.data.nbytes
        found[part.name] = TensorData(part.name, part.dtype, part.shape, view[start:end])
        start = end
    return tensors_from_artifact(found), blob


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW, 10 * WINDOW])
@pytest.mark.parametrize("prefill", ["whole", "stepwise"])
@pytest.mark.parametrize("make", [new_cache, lambda config, room: cu.DynamicCache(config=config)])
def test_the_continuation_of_a_restored_state_is_that_of_the_live_one(
    gemmas: Mapping[torch.dtype, Any], make: Any, prefill: str, length: int, dtype: torch.dtype
) -> None:
    model = gemmas[dtype]
    live, ids = make(model.config, room=8), tiny_ids(length)
    for piece in [ids] if prefill == "whole" else ids.split(1, dim=1):
        feed(model, live, piece)
    state = capture(live, length=length)
    tensors, blob = through_bytes(state)
    before = bytes(blob)
    restored = restore(state.layers, tensors, model.config, device="cpu", room=40)
    suffix = tiny_ids(length + 5)[:, length:]
    assert torch.equal(greedy(model, restored, suffix, 8), greedy(model, live, suffix, 8))
    assert blob == before
    assert restored.get_seq_length() == live.get_seq_length() == length + 5 + 8


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("length", [WINDOW + 1, 3 * WINDOW])
def test_layers_that_are_filled_together_are_those_filled_one_by_one(
    gemmas: Mapping[torch.dtype, Any], length: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = gemmas[dtype]  # rows of 64 bytes in float32; in bfloat16 they are not aligned, and there are no buffers
    live = new_cache(model.config, room=8)
    feed(model, live, tiny_ids(length))
    state = capture(live, length=length)
    tensors, blob = through_bytes(state)
    before = bytes(blob)
    for module in (bulk, memory):  # small memory is not aligned
        monkeypatch.setattr(module, "LARGE", 1)
    restored = restore(state.layers, tensors, model.config, device="cpu", room=40)
    again = capture(restored, length=length)
    assert all(torch.equal(again.tensors[name], tensor) for name, tensor in state.tensors.items())
    suffix = tiny_ids(length + 5)[:, length:]
    assert torch.equal(greedy(model, restored, suffix, 8), greedy(model, live, suffix, 8))
    assert blob == before
    addresses = {layer.keys.untyped_storage().data_ptr() for layer in restored.layers}
    assert len(addresses) == (1 if dtype == torch.float32 else len(restored.layers))
    assert all(layer.keys.data_ptr() % 64 == 0 for layer in restored.layers if dtype == torch.float32)


def test_kinds_do_not_depend_on_the_cache_class(gemma: Any) -> None:
    states = []
    for cache in (new_cache(gemma.config, room=64), cu.DynamicCache(config=gemma.config)):
        feed(gemma, cache, tiny_ids(3 * WINDOW))
        states.append(capture(cache, length=3 * WINDOW))
    assert states[0].layers == states[1].layers
    assert all(torch.equal(states[0].tensors[name], states[1].tensors[name]) for name in states[1].tensors)
    assert [layer.kind for layer in states[0].layers] == ["sliding", "full", "sliding"]
    assert states[0].layers[0].attributes == {"sliding_window": WINDOW, "cumulative_length": 3 * WINDOW}
    assert states[0].tensors["layers.00.keys"].shape == (1, 2, WINDOW - 1, 16)


def test_a_captured_state_is_a_copy(llama: Any) -> None:
    cache = new_cache(llama.config, room=64)
    feed(llama, cache, tiny_ids(9))
    state = capture(cache, length=9)
    before = {name: tensor.clone() for name, tensor in state.tensors.items()}
    greedy(llama, cache, tiny_ids(3), 4)
    with torch.inference_mode():
        cache.layers[0].keys.zero_()
    assert all(torch.equal(state.tensors[name], tensor) for name, tensor in before.items())
    assert all(tensor.is_contiguous() and tensor.device == CPU for tensor in state.tensors.values())
    assert state.nbytes == sum(tensor.nbytes for tensor in before.values())


def test_two_graftings_of_one_state_do_not_meet(llama: Any) -> None:
    cache = new_cache(llama.config, room=64)
    feed(llama, cache, tiny_ids(9))
    state = capture(cache, length=9)
    first = restore(state.layers, state.tensors, llama.config, device="cpu")
    one = greedy(llama, first, tiny_ids(4), 6)
    second = restore(state.layers, state.tensors, llama.config, device="cpu", room=100)
    assert torch.equal(greedy(llama, second, tiny_ids(4), 6), one)


def test_one_bit_of_the_state_changes_the_continuation(llama: Any) -> None:
    cache = new_cache(llama.config, room=64)
    feed(llama, cache, tiny_ids(9))
    state = capture(cache, length=9)
    logits = []
    for flip in (0, 1):
        tensors = {name: tensor.clone() for name, tensor in state.tensors.items()}
        tensors["layers.00.values"].view(torch.int32)[0, 0, 0, 0] ^= flip << 20
        logits.append(feed(llama, restore(state.layers, tensors, llama.config, device="cpu"), tiny_ids(1)))
    assert not torch.equal(*logits)


# ---- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", [0, 2])
def test_one_row_of_a_batch(gemma: Any, row: int) -> None:
    cache = new_cache(gemma.config, room=64, batch=3)
    greedy(gemma, cache, tiny_ids(20, rows=3), 4)
    state = capture(cache, length=24, row=row, batch=3)
    for index, layer in enumerate(cache.layers):
        assert torch.equal(state.tensors[f"layers.{index:02d}.keys"], layer.keys[row : row + 1])
    restored = restore(state.layers, state.tensors, gemma.config, device="cpu")
    selected = select_row(cache, row, length=24, batch=3, room=10)
    live = greedy(gemma, selected, tiny_ids(3), 4)
    assert torch.equal(greedy(gemma, restored, tiny_ids(3), 4), live)
    assert torch.equal(greedy(gemma, keep_rows(cache, [row]), tiny_ids(3), 4), live)


def test_the_live_batch_goes_on_after_a_row_was_selected(llama: Any) -> None:
    caches = [new_cache(llama.config, room=64, batch=2) for _ in range(2)]
    for cache in caches:
        feed(llama, cache, tiny_ids(12, rows=2))
    greedy(llama, select_row(caches[0], 1, length=12, batch=2), tiny_ids(2), 3)
    assert torch.equal(*(greedy(llama, cache, tiny_ids(2, rows=2), 3) for cache in caches))


@pytest.mark.parametrize(("row", "batch", "names"), [(1, 1, "row 1"), (-1, 1, "row -1"), (0, 2, "1 rows, not 2")])
def test_a_row_that_is_not_there(llama: Any, row: int, batch: int, names: str) -> None:
    cache = new_cache(llama.config, room=8)
    feed(llama, cache, tiny_ids(5))
    with pytest.raises(UnsupportedState, match=names):
        capture(cache, length=5, row=row, batch=batch)


# ---- what a config asks for, and bytes -------------------------------------------------------------------------------


def test_layer_kinds_of_a_config() -> None:
    assert [kind.as_json() for kind in layer_kinds(tiny_config("gemma4_text"))] == [
        {"kind": "sliding", "heads": 2, "head_dim": 16, "window": WINDOW},
        {"kind": "full", "heads": 2, "head_dim": 32, "window": None},
        {"kind": "none", "heads": None, "head_dim": None, "window": None},
        {"kind": "none", "heads": None, "head_dim": None, "window": None},
    ]
    assert [kind.kind for kind in layer_kinds(tiny_config("qwen3_next"))] == ["linear", "full"] * 2


@pytest.mark.parametrize(
    ("config", "names"),
    [
        (T5Config(), "t5: encoder-decoder"),
        (
            tiny_config("llama", rope_parameters={"rope_type": "dynamic", "factor": 2.0, "rope_theta": 1e4}),
            "llama: dynamic RoPE keeps a state outside",
        ),
        (tiny_config("llama", layer_types=["heavily_compressed_attention"] * 3), "heavily_compressed_attention"),
    ],
)
def test_a_config_whose_state_cannot_be_stored(config: Any, names: str) -> None:
    with pytest.raises(UnsupportedState, match=names):
        layer_kinds(config)


@pytest.mark.parametrize("dtype", sorted(DTYPES))
def test_bytes_and_back_without_a_copy(dtype: str) -> None:
    raw = torch.arange(48, dtype=torch.uint8) % (2 if dtype == "BOOL" else 251)
    for tensor in (
        raw.view(DTYPES[dtype]).reshape(1, 2, -1),
        raw[:0].view(DTYPES[dtype]),
        raw[:8].view(DTYPES[dtype])[0],
    ):
        (data,) = state_tensors(State((), {"t": tensor}, 0))
        assert (data.dtype, data.shape, data.data.nbytes) == (dtype, tuple(tensor.shape), tensor.nbytes)
        for buffer in (memoryview(bytes(data.data)), memoryview(bytearray(data.data))):
            again = tensors_from_artifact({"t": dataclasses.replace(data, data=buffer)})["t"]
            assert (again.dtype, again.shape) == (tensor.dtype, tensor.shape)
            assert bytes(again.reshape(-1).view(torch.uint8).numpy()) == bytes(data.data)
            if tensor.nbytes:
                assert again.data_ptr() == np.frombuffer(buffer, dtype=np.uint8).ctypes.data


@pytest.mark.parametrize("dtype", [torch.complex64, torch.uint16])
def test_a_dtype_that_an_artifact_cannot_hold(dtype: torch.dtype) -> None:
    with pytest.raises(UnsupportedState, match="cannot be stored"):
        state_tensors(State((), {"t": torch.zeros(3, dtype=dtype)}, 0))


def test_a_dtype_that_torch_cannot_hold() -> None:
    with pytest.raises(FormatError, match="'F8_E8M0'"):
        tensors_from_artifact({"t": TensorData("t", "F8_E8M0", (1,), memoryview(b"1"))})
