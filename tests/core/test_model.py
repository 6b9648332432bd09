from __future__ import annotations

import copy
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from core import model as module
from core.cache import new_cache
from core.model import FrozenModel, choose_device, choose_dtype, differing, environment_fields, identity_fields, load
from core.settings import load_settings
from library.digest import digest_json
from library.errors import ModelError, ScionError, UnknownModel, UsageError
from tests.core.tiny import tiny_model


def test_the_model_is_frozen(model: FrozenModel) -> None:
    assert not model.network.training
    assert not any(parameter.requires_grad for parameter in model.network.parameters())
    assert (model.window, model.profile.name, model.dtype) == (8192, "smollm2", torch.float32)
    assert 130_000_000 < model.parameters < 140_000_000


def test_digests_commit_to_their_fields(model: FrozenModel) -> None:
    for fingerprint in (model.identity, model.environment):
        assert fingerprint.digest == str(digest_json(fingerprint.fields))
    assert set(model.identity.fields) == {
        *("architecture", "weights", "config", "tokenizer", "chat_template", "adapter", "dtype", "layers", "rope"),
        "sliding_window",
    }
    assert {"torch", "transformers", "device", "attention", "threads"} <= set(model.environment.fields)
    assert model.environment.fields["threads"] == 2


def test_a_forward_runs_with_the_threads_of_its_environment(model: FrozenModel) -> None:
    """Another model loaded with other threads, or a library that sets them, must not change this one's rounding."""
    ids = torch.tensor([model.prompt_ids("What is 2 + 2?")])
    with torch.inference_mode():
        before = model.forward(ids, new_cache(model.config, room=ids.shape[1]))
        torch.set_num_threads(1)
        after = model.forward(ids, new_cache(model.config, room=ids.shape[1]))
    assert torch.get_num_threads() == model.environment.fields["threads"]
    assert torch.equal(before, after)


def test_running_leaves_the_weights_as_they_were(model: FrozenModel) -> None:
    before = model.weights_digest()
    with torch.inference_mode():
        logits = model.forward(torch.tensor([[1, 2, 3]]), new_cache(model.config, room=8))
    assert logits.shape == (1, model.config.vocab_size)
    assert model.weights_digest() == before
    assert str(before) == model.identity.fields["weights"]


def test_a_second_load_is_the_same_model(tmp_path: Path, tokenizer: Any) -> None:
    first, second = (load(load_settings(model=str(saved(tmp_path, tokenizer)))) for _ in range(2))
    assert first.identity == second.identity
    assert first.environment == second.environment


@pytest.fixture(scope="module")
def tokenizer(model: FrozenModel) -> Any:
    return model.tokenizer


def saved(folder: Path, tokenizer: Any) -> Path:
    """A tiny model's folder, as a user would give it."""
    tiny_model("llama").save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def changed(what: str, tokenizer: Any) -> tuple[Any, Any, torch.dtype]:
    """A tiny model of which one thing is another than usual."""
    network = tiny_model("mistral", **({"sliding_window": 8} if what == "sliding_window" else {}))
    words = copy.deepcopy(tokenizer)
    dtype = torch.float32
    if what == "weights":
        with torch.no_grad():
            next(iter(network.parameters())).view(torch.int32)[0, 0] ^= 1  # the last bit of one weight
    elif what == "rope":
        network.config.rope_parameters = {**network.config.rope_parameters, "rope_theta": 12345.0}
    elif what == "chat_template":
        words.chat_template += " "
    elif what == "tokenizer":
        words.add_tokens(["<extra>"])
    elif what == "dtype":
        dtype = torch.bfloat16
    elif what == "adapter":
        network.peft_config = {"lora": None}
    return network, words, dtype


@pytest.mark.parametrize(
    "what", ["weights", "rope", "chat_template", "tokenizer", "dtype", "adapter", "sliding_window"]
)
def test_a_change_shows_in_its_own_field(tokenizer: Any, what: str) -> None:
    usual, other = (identity_fields(*changed(name, tokenizer)) for name in ("", what))
    fields = set(differing(usual, other))
    assert what in fields
    assert fields <= {what, "config", "layers"}  # the configuration repeats some of them


def test_names_and_versions_are_no_part_of_the_identity(tokenizer: Any) -> None:
    usual, network = tiny_model("llama"), tiny_model("llama")
    network.config._name_or_path = "/somewhere/else"
    network.config.transformers_version = "0.0"
    float32 = torch.float32
    assert identity_fields(usual, tokenizer, float32) == identity_fields(network, tokenizer, float32)


def test_the_environment_names_what_changes_rounding() -> None:
    network = tiny_model("llama")
    before = torch.get_num_threads()
    two = environment_fields(network, torch.device("cpu"))
    torch.set_num_threads(1)
    try:
        one = environment_fields(network, torch.device("cpu"))
    finally:
        torch.set_num_threads(before)
    assert set(differing(one, two)) == ({"threads"} if before != 1 else set())


@pytest.mark.parametrize("wanted", ["tpu:9", "", "gpu", "meta", "cuda:99"])
def test_an_unknown_device_is_a_usage_error(wanted: str) -> None:
    with pytest.raises(UsageError, match=r"auto"):
        choose_device(wanted)


@pytest.mark.parametrize(
    ("wanted", "kind", "native", "dtype"),
    [
        ("auto", "cpu", False, torch.float32),
        ("auto", "cuda", True, torch.bfloat16),
        ("auto", "cuda", False, torch.float16),
        ("auto", "mps", False, torch.float16),
        ("float16", "cpu", False, torch.float16),
        ("float32", "cuda", True, torch.float32),
    ],
)
def test_the_dtype_rule(
    monkeypatch: pytest.MonkeyPatch, wanted: str, kind: str, native: bool, dtype: torch.dtype
) -> None:
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation: native)
    assert choose_dtype(wanted, torch.device(kind)) is dtype


def test_differing_names_both_sides() -> None:
    assert differing({"a": 1, "b": 2, "c": 3}, {"a": 1, "b": 5, "d": 4}) == {
        "b": (2, 5),
        "c": (3, None),
        "d": (None, 4),
    }


def damage(folder: Path, how: str) -> None:
    weights = folder / "model.safetensors"
    if how == "no weights":
        weights.unlink()
    elif how == "cut weights":
        weights.write_bytes(weights.read_bytes()[:-100])
    elif how == "garbage":
        weights.write_bytes(b"garbage" * 100)
    elif how in ("missing tensor", "other shape"):
        tensors = load_file(weights)
        name = "model.layers.1.mlp.down_proj.weight"
        if how == "missing tensor":
            del tensors[name]
        else:
            tensors[name] = torch.zeros(3, 3)
        save_file(tensors, weights, metadata={"format": "pt"})
    elif how == "no tokenizer":
        for path in folder.glob("token*"):
            path.unlink()
    elif how == "no config":
        (folder / "config.json").write_text("{")
    elif how == "other type":
        (folder / "config.json").write_text('{"model_type": "no_such_model"}')


@pytest.mark.parametrize(
    "how",
    [
        "no weights",
        "cut weights",
        "garbage",
        "missing tensor",
        "other shape",
        "no tokenizer",
        "no config",
        "other type",
    ],
)
def test_a_damaged_folder_is_an_error_that_names_the_model(tmp_path: Path, tokenizer: Any, how: str) -> None:
    """Above all never a model with made-up weights: transformers fills missing tensors with random numbers."""
    damage(saved(tmp_path, tokenizer), how)
    with pytest.raises(ModelError, match=tmp_path.name):
        load(load_settings(model=str(tmp_path)))


def test_pickled_weights_are_never_opened(tmp_path: Path, tokenizer: Any) -> None:
    folder = saved(tmp_path / "model", tokenizer)
    mark = tmp_path / "executed"
    (folder / "model.safetensors").unlink()
    code = f"cbuiltins\nexec\n(S'open({str(mark)!r}, \"w\")'\ntR.".encode()
    (folder / "pytorch_model.bin").write_bytes(code)
    with pytest.raises(ModelError):
        load(load_settings(model=str(folder)))
    assert not mark.exists()


@pytest.mark.parametrize("where", ["config.json", "tokenizer_config.json"])
def test_code_beside_a_model_is_never_imported(tmp_path: Path, tokenizer: Any, where: str) -> None:
    folder = saved(tmp_path / "model", tokenizer)
    mark = tmp_path / "executed"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\nclass Evil:\n    pass\n")
    path = folder / where
    names = ("AutoConfig", "AutoModelForCausalLM") if where == "config.json" else ("AutoTokenizer",)
    auto: dict[str, Any] = dict.fromkeys(names, "evil.Evil")
    if where != "config.json":
        auto = {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}
    path.write_text(json.dumps({**json.loads(path.read_text()), "auto_map": auto, "model_type": "evil"}))
    with pytest.raises(ScionError) if where == "config.json" else pytest.MonkeyPatch.context():
        load(load_settings(model=str(folder)))
    assert not mark.exists()


def test_a_hub_model_without_a_network_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnknownModel, match="hub id"):
        load(load_settings(model="nobody-at-all/no-such-model", revision="abc"))


def test_stop_ids_come_as_a_number_a_list_or_not_at_all() -> None:
    for given, ids in ((None, []), (3, [3]), ([3, 4], [3, 4])):
        network = SimpleNamespace(generation_config=SimpleNamespace(eos_token_id=given))
        assert module._configured_stops(network) == ids
