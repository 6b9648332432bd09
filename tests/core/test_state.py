"""State capture: what a live cache holds comes back, bit for bit, or is refused by name."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from abc import ABC
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from transformers import T5Config
from transformers import cache_utils as cu

from core.cache import keep_rows, new_cache
from core.state import State, capture, layer_kinds, restore, select_row, state_tensors, tensors_from_artifact
from core.state.dtypes import DTYPES
from core.state.kinds import BY_CLASS, REFUSED
from library.artifact import TensorData
from library.errors import ContextOverflow, FormatError, IdentityMismatch, UnsupportedState
from library.manifest import LayerSpec
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


# ---- what is refused at capture --------------------------------------------------------------------------------------

by_name = sorted(BY_CLASS, key=lambda cls: cls.__name__)


def make(cls: type, **changes: Any) -> Any:
    arguments = {"max_cache_len": 8, "sliding_window": 8, "room": 8} | changes
    wanted = inspect.signature(cls.__init__).parameters
    return cls(**{name: value for name, value in arguments.items() if name in wanted})


def test_every_layer_class_is_known_or_refused_with_a_reason() -> None:
    found: set[type] = set()
    queue: list[type] = [cu.CacheLayerMixin, cu.LinearAttentionCacheLayerMixin, cu.DummyLayer]
    while queue:
        cls = queue.pop()
        queue += cls.__subclasses__()
        if cls.__module__ in (cu.__name__, "core.cache") and not inspect.isabstract(cls):
            found.add(cls)
    refused = {cls for cls in REFUSED if not issubclass(cls, cu.Cache)}
    assert {cls for cls in found if not cls.__name__.startswith("_")} == set(BY_CLASS) | refused


@pytest.mark.parametrize("cls", by_name)
def test_every_attribute_that_the_source_sets_is_known(cls: type) -> None:
    kind = BY_CLASS[cls]
    known = kind.also_known.union(*(part.known for part in kind.parts))
    sources = [textwrap.dedent(inspect.getsource(base)) for base in cls.__mro__ if base not in (object, ABC)]
    tree = ast.parse("\n".join(sources))
    names = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self"
    }
    assert names >= {"is_initialized"} or cls is cu.LinearAttentionLayer
    guarded = {"cumulative_length"}  # CacheLayerMixin.reset sets it where it exists
    assert names - known <= guarded - set(vars(make(cls)))


@pytest.mark.parametrize("cls", by_name)
def test_an_unknown_attribute_is_refused(cls: type) -> None:
    layer = make(cls)
    layer.drift = 1
    with pytest.raises(UnsupportedState, match=rf"layer 0: {cls.__name__} carries an attribute .*: drift"):
        capture(cu.Cache(layers=[layer]), length=1)


@pytest.mark.parametrize("cls", [cls for cls in by_name if cls is not cu.DummyLayer])
def test_a_layer_that_was_never_written_is_refused(cls: type) -> None:
    with pytest.raises(UnsupportedState, match=f"layer 0: {cls.__name__}: it was never written"):
        capture(cu.Cache(layers=[make(cls)]), length=0)


class Grown(cu.DynamicLayer):
    """Nothing but another name."""


def test_an_unknown_layer_class_is_refused_though_it_inherits_from_a_known_one(llama: Any) -> None:
    cache = cu.Cache(layers=[cu.DynamicLayer(), Grown(), cu.DynamicLayer()])
    feed(llama, cache, tiny_ids(5))
    with pytest.raises(UnsupportedState, match="layer 1: cannot store Grown: an unknown kind"):
        capture(cache, length=5)


@pytest.mark.parametrize("cls", [cls for cls in REFUSED if not issubclass(cls, cu.Cache)])
def test_a_refused_layer_class_says_why(cls: type) -> None:
    layer = cls.__new__(cls)  # their constructors want a package that is not installed
    with pytest.raises(UnsupportedState, match=f"layer 0: cannot store {cls.__name__}: its packed tensors"):
        capture(cu.Cache(layers=[layer]), length=1)


def encoder_decoder() -> Any:
    return cu.EncoderDecoderCache(cu.DynamicCache(), cu.DynamicCache())


@pytest.mark.parametrize(
    ("cache", "names"),
    [
        (encoder_decoder, "EncoderDecoderCache: encoder-decoder models"),
        (cu.MtpCache, "MtpCache: multi-token prediction"),
        (cu.DFlashCache, "DFlashCache: speculative decoding"),
        (cu.DynamicCache, "DynamicCache: it is empty"),
        (dict, "dict: an unknown kind"),
    ],
)
def test_a_refused_cache_says_why(cache: Any, names: str) -> None:
    with pytest.raises(UnsupportedState, match=f"cannot store {names}"):
        capture(cache(), length=1)


def test_an_unknown_attribute_of_the_cache_is_refused(llama: Any) -> None:
    cache: Any = new_cache(llama.config, room=8)
    feed(llama, cache, tiny_ids(5))
    cache.mood = "calm"
    with pytest.raises(UnsupportedState, match=r"DynamicCache carries an attribute .*: mood"):
        capture(cache, length=5)
    del cache.mood
    cache.offloading = True
    with pytest.raises(UnsupportedState, match="it offloads layers"):
        capture(cache, length=5)


@pytest.mark.parametrize("length", [0, 19, 21])
def test_a_length_that_the_layers_do_not_have_is_refused(gemma: Any, length: int) -> None:
    cache = new_cache(gemma.config, room=32)
    feed(gemma, cache, tiny_ids(20))
    with pytest.raises(UnsupportedState, match=rf"layer 0: .* has seen 20 positions, not {length}"):
        capture(cache, length=length)


def test_past_recording_is_refused(gemma: Any) -> None:
    cache = cu.DynamicCache(config=gemma.config)
    cache.activate_past_recording()
    feed(gemma, cache, tiny_ids(20))
    with pytest.raises(UnsupportedState, match="it records past states"):
        capture(cache, length=20)


# ---- what is refused at restore --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stored(gemmas: Mapping[torch.dtype, Any]) -> State:
    model = gemmas[torch.float32]
    cache = new_cache(model.config, room=32)
    feed(model, cache, tiny_ids(20))
    return capture(cache, length=20)


def with_layer(state: State, at: int, **changes: Any) -> list[LayerSpec]:
    layers = list(state.layers)
    layers[at] = layers[at].model_copy(update=changes)
    return layers


def attributes(**changes: Any) -> dict[str, Any]:
    return {"attributes": {"sliding_window": WINDOW, "cumulative_length": 20} | changes}


@pytest.mark.parametrize(
    ("index", "changes", "error", "names"),
    [
        (0, {"kind": "astral"}, UnsupportedState, "kind 'astral'"),
        (0, {"kind": "full"}, IdentityMismatch, "kind of cache layer 0: artifact has 'full', model has 'sliding'"),
        (1, {"index": 2}, FormatError, "not in order"),
        (0, attributes(sliding_window=15), IdentityMismatch, "window of cache layer 0: artifact has 15"),
        (0, attributes(cumulative_length=21), FormatError, r"disagree on the length: \[20, 21\]"),
        (0, attributes(cumulative_length="20"), FormatError, "layer 0 counts '20'"),
        (0, attributes(extra=1), FormatError, "layer 0 .* does not read back"),
        (0, {"attributes": {"cumulative_length": 20}}, FormatError, "layer 0 .* contradicts itself"),
        (0, {"tensors": {"keys": "layers.00.keys"}}, FormatError, "layer 0 .* contradicts itself"),
        (0, {"tensors": {"keys": "layers.00.keys", "values": "nowhere"}}, FormatError, "'nowhere'"),
        (0, {"tensors": {"keys": "layers.00.keys", "values": "layers.01.values"}}, FormatError, "different shapes"),
        (
            1,
            {"tensors": {"keys": "layers.01.keys", "values": "layers.01.values", "more": "layers.00.keys"}},
            FormatError,
            "does not read back",
        ),
    ],
)
def test_a_state_that_contradicts_itself_or_the_model(
    gemma: Any, stored: State, index: int, changes: Any, error: type[Exception], names: str
) -> None:
    with pytest.raises(error, match=names):
        restore(with_layer(stored, index, **changes), stored.tensors, gemma.config, device="cpu")


@pytest.mark.parametrize("shape", [(20,), (2, 2, 20, 16), (1, 2, 20), ()])
def test_a_tensor_of_another_shape(gemma: Any, stored: State, shape: tuple[int, ...]) -> None:
    tensors = dict(stored.tensors) | {"layers.01.keys": torch.zeros(shape)}
    with pytest.raises(FormatError, match=r"layers\.01\.keys"):
        restore(stored.layers, tensors, gemma.config, device="cpu")


def test_a_model_with_another_number_of_layers(llama: Any, stored: State) -> None:
    config = tiny_config("gemma3_text", num_hidden_layers=2, layer_types=["sliding_attention", "full_attention"])
    with pytest.raises(IdentityMismatch, match="number of cache layers: artifact has 3, model has 2"):
        restore(stored.layers, stored.tensors, config, device="cpu")
    with pytest.raises(IdentityMismatch, match="kind of cache layer 0"):
        restore(stored.layers, stored.tensors, llama.config, device="cpu")


def test_a_static_state_without_room(llama: Any) -> None:
    cache = cu.StaticCache(llama.config, max_cache_len=24)
    feed(llama, cache, tiny_ids(20))
    state = capture(cache, length=20)
    restore(state.layers, state.tensors, llama.config, device="cpu", room=4)
    with pytest.raises(ContextOverflow, match="24 positions, not 20 and 5"):
        restore(state.layers, state.tensors, llama.config, device="cpu", room=5)


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
