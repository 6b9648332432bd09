"""Packed weights and grouped attention compute what transformers' own layers do, in every architecture we know."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedModel, Qwen2Config

from core import attention, packing
from core.attention import use_grouped
from core.cache import new_cache
from core.evaluate.memory import Peak
from core.model import differing, environment_fields
from core.packing import PackedLinear, blocks, pack
from tests.core.readers import tiny_reader
from tests.core.tiny import ARCHITECTURES, VOCABULARY, feed, tiny_ids, tiny_model

GROUPED = ["llama", "mistral", "qwen3", "gemma3_text"]  # head dimension 16, two query heads to a key head


def tiny_qwen2() -> PreTrainedModel:
    """Not one of the cache kinds' architectures: it is a Llama whose queries, keys and values have a bias."""
    sizes = {"vocab_size": VOCABULARY, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3}
    config = Qwen2Config(**sizes, num_attention_heads=4, num_key_value_heads=2, tie_word_embeddings=True)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        model = AutoModelForCausalLM.from_config(config).eval().requires_grad_(False)
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_()
    return model  # type: ignore[no-any-return]


@pytest.mark.parametrize("architecture", [*sorted(ARCHITECTURES), "qwen2"])
def test_the_logits_are_those_of_the_plain_layers(architecture: str) -> None:
    plain, packed = (
        tiny_qwen2() if architecture == "qwen2" else tiny_model(architecture, tie_word_embeddings=True)
        for _ in range(2)
    )
    assert pack(packed)
    use_grouped(packed)
    ids = tiny_ids(60)
    caches = [new_cache(model.config, room=60) for model in (plain, packed)]
    for begin, end in ((0, 33), (33, 41), (41, 42), (42, 60)):  # a prefill, a cue, a step, a further turn
        want, got = (
            feed(model, cache, ids[:, begin:end]) for model, cache in zip((plain, packed), caches, strict=True)
        )
        torch.testing.assert_close(got, want, rtol=2e-4, atol=2e-4)


@pytest.mark.parametrize("architecture", GROUPED)
def test_grouped_attention_copies_no_cache(architecture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_model(architecture)
    use_grouped(model)
    assert model.config._attn_implementation == attention.NAME
    seen: list[int] = []
    real = torch.nn.functional.scaled_dot_product_attention

    def spy(query: torch.Tensor, key: torch.Tensor, *args: object, **kwargs: object) -> torch.Tensor:
        seen.append(key.shape[1])
        return real(query, key, *args, **kwargs)  # type: ignore[arg-type]

    cache = new_cache(model.config, room=40)
    feed(model, cache, tiny_ids(24))
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", spy)
    feed(model, cache, tiny_ids(8))
    assert seen == [2, 2, 2]  # the two heads of the keys, not the four of the queries


def test_rows_of_a_batch_attend_behind_their_own_masks() -> None:
    plain, grouped = (tiny_model("llama") for _ in range(2))
    use_grouped(grouped)
    ids, mask = tiny_ids(20, rows=2), torch.ones(2, 20, dtype=torch.long)
    mask[1, :7] = 0  # the second row is padded on the left
    out = []
    for model in (plain, grouped):
        cache = new_cache(model.config, room=30, batch=2)
        with torch.inference_mode():
            model(input_ids=ids[:, :12], attention_mask=mask[:, :12], cache=cache, use_cache=True)
            out.append(model(input_ids=ids[:, 12:], attention_mask=mask, cache=cache, use_cache=True).logits)
    torch.testing.assert_close(out[1], out[0], rtol=2e-4, atol=2e-4)


def test_packing_keeps_every_weight_bit_for_bit() -> None:
    plain, packed = (tiny_model("qwen3", tie_word_embeddings=True) for _ in range(2))
    assert pack(packed)
    want, got = plain.state_dict(), packed.state_dict()
    assert sorted(want) == sorted(got)
    for name, tensor in want.items():
        assert torch.equal(got[name], tensor), name
    head = packed.get_output_embeddings()
    assert type(head) is PackedLinear
    assert torch.equal(head.weight, packed.get_input_embeddings().weight)


def test_the_environment_says_how_a_network_computes() -> None:
    network, cpu = tiny_model("llama"), torch.device("cpu")
    plain = environment_fields(network, cpu)
    assert pack(network)
    use_grouped(network)
    assert differing(plain, environment_fields(network, cpu)) == {
        "attention": ("sdpa", attention.NAME),
        "packed": (False, packing.VERSION),
    }


def test_a_bias_is_added_and_other_classes_are_left_alone() -> None:
    class Other(nn.Linear):
        pass

    torch.manual_seed(3)
    network = nn.ModuleList([nn.Linear(24, 40), Other(24, 40), nn.Linear(24, 40, dtype=torch.float64)])
    given = torch.randn(5, 24)
    want = network[0](given)
    with torch.no_grad():
        assert pack(network)
        torch.testing.assert_close(network[0](given), want, rtol=1e-5, atol=1e-5)
    assert [type(module) for module in network] == [PackedLinear, Other, nn.Linear]
    assert not pack(nn.ModuleList([Other(3, 3)]))


def test_every_row_is_in_one_block_and_few_sizes_of_block_occur() -> None:
    sizes = set()
    for rows in range(1, 1500):
        parts = list(blocks(rows))
        assert sum(held for held, _ in parts) == rows
        assert all(held == size for held, size in parts[:-1])
        assert rows == 1 or all(size > 1 for _, size in parts)
        sizes |= {size for _, size in parts}
    assert sizes == {*packing.WHOLE, *packing.PADDED}


@pytest.mark.parametrize("shape", [(0, 24), (3, 24), (129, 24), (2, 37, 24), (700, 24)])
def test_a_product_in_blocks_is_that_of_all_rows(shape: tuple[int, ...]) -> None:
    torch.manual_seed(3)
    network = nn.ModuleList([nn.Linear(24, 40)])
    given = torch.randn(shape)
    want = network[0](given)
    with torch.no_grad():
        assert pack(network)
        got = network[0](given)
    assert got.shape == want.shape
    torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)
    assert not torch.isnan(got).any()


def test_texts_of_many_lengths_leave_no_more_memory_behind_than_few() -> None:
    """oneDNN keeps what it compiles for a number of rows: 2.8 MB each for five layers, 280 MB for all of these."""
    network = nn.ModuleList([nn.Linear(72, out, bias=False) for out in (72, 40, 104, 264, 88)]).requires_grad_(False)
    assert pack(network)
    peak = Peak(torch.device("cpu"))

    def held_after(lengths: Iterable[int]) -> int:
        for rows in lengths:
            for layer in network:
                layer(torch.ones(rows, 72))
        return peak.restart()

    with torch.inference_mode():
        few = held_after([1, *packing.PADDED, *packing.WHOLE])
        many = held_after(range(1, 512, 5))
    assert many - few < 64 << 20


@pytest.mark.skipif(sys.platform != "linux", reason="a process's mappings are read from /proc")
def test_a_packed_model_leaves_its_file(tmp_path: Path) -> None:
    """Pages of a mapped checkpoint count as memory as long as one tensor lies in it, beside the packed ones."""
    network = tiny_reader(tmp_path / "tiny").network
    assert any(type(module) is PackedLinear for module in network.modules())
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8")
    assert str((tmp_path / "tiny" / "model.safetensors").resolve()) not in mapped
