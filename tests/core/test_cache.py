"""Cache layers that write in place: the same bits as transformers' dynamic cache, whatever is done to them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from transformers import cache_utils as cu

from core.cache import SLACK, GrowingLayer, SlidingBufferLayer, expand, keep_rows, new_cache
from library.errors import UnsupportedState, UsageError
from tests.core.tiny import WINDOW, feed, greedy, tiny_config, tiny_ids, tiny_model

FULL_CAPACITY = WINDOW - 1 + 64


@pytest.fixture(autouse=True, scope="module")
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def same(ours: Any, theirs: Any) -> bool:
    return all(
        torch.equal(a.keys, b.keys) and torch.equal(a.values, b.values) and a.get_seq_length() == b.get_seq_length()
        for a, b in zip(ours.layers, theirs.layers, strict=True)
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize(
    ("architecture", "changes"),
    [
        ("llama", {}),  # grouped queries: 4 heads on 2
        ("llama", {"head_dim": 12, "num_key_value_heads": 1}),
        ("llama", {"head_dim": 10, "num_key_value_heads": 4}),  # not aligned, and it shows in float32
        ("llama", {"head_dim": 32}),  # aligned in float32 and bfloat16
        ("mistral", {"head_dim": 32}),
        ("mistral", {"head_dim": 10, "num_key_value_heads": 4}),
        ("gemma3_text", {}),
    ],
)
@pytest.mark.parametrize(("rows", "prefill", "room"), [(1, 5, 200), (3, 40, 1), (1, FULL_CAPACITY + 30, 130)])
def test_logits_are_those_of_the_dynamic_cache(
    architecture: str,
    changes: dict[str, int],
    attention: str,
    dtype: torch.dtype,
    rows: int,
    prefill: int,
    room: int,
) -> None:
    model = tiny_model(architecture, dtype, **changes)
    model.set_attn_implementation(attention)
    ours = new_cache(model.config, room=room, batch=rows)
    theirs = cu.DynamicCache(config=model.config)
    for cache_ids in (tiny_ids(prefill, rows), tiny_ids(7, rows)):
        assert torch.equal(greedy(model, ours, cache_ids, 20), greedy(model, theirs, cache_ids, 20))
    assert same(ours, theirs)


def updates(lengths: list[int], rows: int = 2) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    generator = torch.Generator().manual_seed(3)
    for length in lengths:
        # as a model makes them: heads and positions transposed, keys and values of different width
        keys = torch.randn((rows, length, 3, 48), generator=generator).transpose(1, 2)
        yield keys, torch.randn((rows, length, 3, 16), generator=generator).transpose(1, 2)


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (lambda room: GrowingLayer(room, 2), cu.DynamicLayer),
        (lambda room: SlidingBufferLayer(WINDOW, room, 2), lambda: cu.DynamicSlidingWindowLayer(WINDOW)),
        (lambda room: SlidingBufferLayer(2, room, 2), lambda: cu.DynamicSlidingWindowLayer(2)),
        (lambda room: SlidingBufferLayer(SLACK + 90, room, 2), lambda: cu.DynamicSlidingWindowLayer(SLACK + 90)),
    ],
)
@pytest.mark.parametrize("room", [1, 10, 1000])
@pytest.mark.parametrize(
    "lengths",
    [
        [1] * 200,
        [WINDOW - 1, 1, 1, WINDOW, WINDOW + 1, 3],
        [FULL_CAPACITY, 1, 1],
        [FULL_CAPACITY + 1, 1, FULL_CAPACITY - WINDOW + 1, FULL_CAPACITY - WINDOW + 2, 1],
        [300, 1, 300, 64, 64, 64, 65, 1],
        [5, 0, 5],
    ],
)
def test_every_update_returns_and_keeps_the_same_values(
    ours: Callable[[int], Any], theirs: Callable[[], Any], room: int, lengths: list[int]
) -> None:
    mine, reference = ours(room), theirs()
    for keys, values in updates(lengths):
        assert mine.get_mask_sizes(keys.shape[-2]) == reference.get_mask_sizes(keys.shape[-2])
        for got, want in zip(mine.update(keys, values), reference.update(keys, values), strict=True):
            assert torch.equal(got, want)
            assert got.stride()[2:] == want.stride()[2:]  # the inner strides that kernels and BLAS see
        assert torch.equal(mine.keys, reference.keys)
        assert torch.equal(mine.values, reference.values)
        assert mine.get_seq_length() == reference.get_seq_length()


def test_nothing_is_allocated_within_the_room() -> None:
    layer = GrowingLayer(room=50, batch=2)
    addresses = set()
    for keys, values in updates([10] + [1] * 40):
        layer.update(keys, values)
        addresses.add(layer.keys.data_ptr())
    assert len(addresses) == 1
    assert layer.capacity == 50
    layer.update(*next(updates([1])))
    assert layer.capacity > 51
    assert layer.keys.data_ptr() not in addresses


@pytest.mark.parametrize("make", [lambda: GrowingLayer(50, 1), lambda: SlidingBufferLayer(WINDOW, 50)])
@pytest.mark.parametrize(("keys", "values", "aligned"), [(16, 16, True), (16, 10, False), (12, 16, False)])
def test_buffers_only_where_rows_are_aligned(make: Callable[[], Any], keys: int, values: int, aligned: bool) -> None:
    written, loaded = make(), make()
    pair = torch.zeros(1, 2, 5, keys), torch.zeros(1, 2, 5, values)
    written.update(*pair)
    loaded.load(*pair, torch.device("cpu"))
    for layer in (written, loaded):
        assert (layer.capacity > 0) == aligned
        assert layer.keys.data_ptr() != pair[0].data_ptr()


def test_a_sliding_buffer_stays_small() -> None:
    layer = SlidingBufferLayer(WINDOW, room=100_000, batch=2)
    for keys, values in updates([1] * 500):
        layer.update(keys, values)
    assert layer.capacity == FULL_CAPACITY


# ---- rows ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ["gemma3_text", "qwen3_next", "falcon_h1", "deepseek_v32"])
def test_samples_that_share_one_prefill(architecture: str) -> None:
    model = tiny_model(architecture)
    logits = []
    for cache in (new_cache(model.config, room=64), cu.DynamicCache(config=model.config)):
        feed(model, cache, tiny_ids(20))
        if isinstance(cache.layers[-1], GrowingLayer | SlidingBufferLayer):
            assert expand(cache, 3) is cache
        else:
            cache.reorder_cache(torch.tensor([0, 0, 0]))
        first = greedy(model, cache, tiny_ids(4, rows=3), 4)
        assert not torch.equal(first[:, 0], first[:, 1])
        keep_rows(cache, [2, 0])
        logits += [first, greedy(model, cache, tiny_ids(3, rows=2), 4)]
    assert torch.equal(logits[0], logits[2])
    assert torch.equal(logits[1], logits[3])


@pytest.mark.parametrize("architecture", ["llama", "gemma3_text"])
def test_a_row_does_not_depend_on_what_the_others_say(architecture: str) -> None:
    """What rebuilding one row of a batch relies on. It does not hold for mixtures of experts (docs/cache-kinds.md)."""
    model = tiny_model(architecture)
    ids, logits = tiny_ids(12, rows=4), []
    for batch in (ids, ids[2:3].expand(4, -1)):
        cache = new_cache(model.config, room=64)
        feed(model, cache, tiny_ids(9))
        expand(cache, 4)
        logits.append(torch.stack([feed(model, cache, step)[2] for step in batch.split(1, dim=1)]))
    assert torch.equal(*logits)


def test_rows_that_are_kept_are_the_rows() -> None:
    model = tiny_model("gemma3_text")
    cache = new_cache(model.config, room=64, batch=3)
    feed(model, cache, tiny_ids(20, rows=3))
    before = [layer.keys.clone() for layer in cache.layers]
    keep_rows(cache, [2, 0])
    for layer, keys in zip(cache.layers, before, strict=True):
        assert torch.equal(layer.keys, keys[[2, 0]])
        assert layer.batch == 2


def test_a_static_cache_knows_its_new_rows() -> None:
    model = tiny_model("llama")
    cache = cu.StaticCache(model.config, max_cache_len=32)
    feed(model, cache, tiny_ids(9))
    assert expand(cache, 3).batch_size == 3
    assert feed(model, cache, tiny_ids(2, rows=3)).shape[0] == 3


@pytest.mark.parametrize(
    "call",
    [
        lambda cache: cache.batch_repeat_interleave(2),
        lambda cache: cache.batch_select_indices(torch.tensor([2, 0])),
        lambda cache: cache.batch_select_indices(torch.tensor([True, False, True])),
        lambda cache: cache.reorder_cache(torch.tensor([1, 1, 0])),
        lambda cache: cache.crop(-3),
        lambda cache: cache.crop(-11),
        lambda cache: cache.reset(),
    ],
)
def test_what_transformers_does_to_a_cache(call: Callable[[Any], None]) -> None:
    model = tiny_model("gemma3_text")
    caches = [new_cache(model.config, room=64, batch=3), cu.DynamicCache(config=model.config)]
    for cache in caches:
        feed(model, cache, tiny_ids(11, rows=3))
        call(cache)
    rows = caches[1].layers[0].keys.shape[0] if caches[1].layers[0].is_initialized else 3
    logits = [greedy(model, cache, tiny_ids(6, rows=rows), 20) for cache in caches]
    assert torch.equal(*logits)
    assert same(*caches)


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_the_first_call_has_the_rows_that_were_announced() -> None:
    model = tiny_model("llama")
    with pytest.raises(UsageError, match="made for 1 rows, the call has 2"):
        feed(model, new_cache(model.config, room=8), tiny_ids(5, rows=2))


@pytest.mark.parametrize(("room", "batch"), [(0, 1), (1, 0), (-1, 1)])
def test_a_cache_without_room(room: int, batch: int) -> None:
    with pytest.raises(UsageError, match="a cache needs room"):
        new_cache(tiny_config("llama"), room=room, batch=batch)


@pytest.mark.parametrize("indices", [[], [-1]])
def test_rows_that_cannot_be_kept(indices: list[int]) -> None:
    with pytest.raises(UsageError, match="cannot be kept"):
        keep_rows(new_cache(tiny_config("llama"), room=8), indices)


def test_offloading_and_past_recording_are_refused() -> None:
    cache = new_cache(tiny_config("gemma3_text"), room=8)
    with pytest.raises(UnsupportedState, match="does not record past states"):
        cache.activate_past_recording()
    with pytest.raises(UnsupportedState, match="stays on its device"):
        cache.layers[1].offload()


def test_other_layers_are_transformers_own() -> None:
    layers = new_cache(tiny_config("qwen3_next"), room=8).layers
    assert [type(layer) for layer in layers] == [cu.LinearAttentionLayer, GrowingLayer] * 2
