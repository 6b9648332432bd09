"""State capture: what cannot be stored, or contradicts itself, is refused and named."""

from __future__ import annotations

import ast
import inspect
import textwrap
from abc import ABC
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from transformers import cache_utils as cu

from core.cache import new_cache
from core.state import State, capture, restore
from core.state.kinds import BY_CLASS, REFUSED
from library.errors import ContextOverflow, FormatError, IdentityMismatch, UnsupportedState
from library.manifest import LayerSpec
from tests.core.tiny import WINDOW, feed, tiny_config, tiny_ids, tiny_model


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # tiny models lose more by waiting for each other's threads than they win
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def gemma() -> Any:
    return tiny_model("gemma3_text")


@pytest.fixture(scope="module")
def llama() -> Any:
    return tiny_model("llama")


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
def stored(gemma: Any) -> State:
    cache = new_cache(gemma.config, room=32)
    feed(gemma, cache, tiny_ids(20))
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
