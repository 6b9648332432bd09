"""Bug reports of other caches, as tests: what is stored must be used, must change nothing, and must be one's own.

Rows that are tested elsewhere: windows and layer kinds (test_state, test_cache_kinds), other weights or templates
(test_graft, test_end_to_end), kill while writing and quota (tests/faults, tests/library).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from core.books import prompt
from core.books.deposit import PROBE_TOKENS, deposit
from core.cache import new_cache
from core.graft import Continuation, follow_cue, grafted, replay
from core.model import FrozenModel
from core.opening import open_artifact
from core.solve import prefill
from core.state import capture, state_tensors
from library.artifact import tensor_digests
from library.digest import digest_bytes
from library.errors import MissingBlob, StoreError
from library.store import Library
from library.tables import Segment
from tests.core.readers import tiny_reader

ROOT = Path(__file__).resolve().parents[2]
TOKENS = 8000  # of natural text; the tiny reader's tokens are bytes


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> FrozenModel:
    return tiny_reader(tmp_path_factory.mktemp("long"), window=TOKENS + 1000)


@pytest.fixture
def library(tmp_path: Path) -> Iterator[Library]:
    with Library.open(tmp_path / "library", actor="alice") as opened:
        yield opened


class Counted:
    """A model whose forward calls are counted in tokens: what was not reused."""

    def __init__(self, model: FrozenModel, monkeypatch: pytest.MonkeyPatch) -> None:
        self.tokens = 0
        real = FrozenModel.forward

        def forward(this: FrozenModel, ids: torch.Tensor, cache: Any) -> torch.Tensor:
            self.tokens += ids.numel()
            return real(this, ids, cache)

        monkeypatch.setattr(FrozenModel, "forward", forward)

    def take(self) -> int:
        taken, self.tokens = self.tokens, 0
        return taken


def segment(text: str, ordinal: int = 0) -> Segment:
    digest = str(digest_bytes(text.encode()))
    return Segment(
        id=f"s{ordinal}", book_id="b", ordinal=ordinal, file="text.md", file_digest=digest, start=0, end=len(text),
        text=text, tokens=len(text.encode()),
    )  # fmt: skip


def natural(length: int) -> str:
    """Prose and tables that people wrote: this project's own pages."""
    pages = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))]
    text = "\n\n".join(pages).encode("ascii", "ignore").decode()
    assert len(text) >= length
    return text[:length]


def cold(model: FrozenModel, ids: list[int], probe: list[int]) -> Continuation:
    cache = new_cache(model.config, room=len(ids) + len(probe) + PROBE_TOKENS)
    prefill(model, cache, ids)
    return follow_cue(model, cache, probe, limit=PROBE_TOKENS)


def test_cold_cold_warm_on_8000_tokens_of_natural_text(
    model: FrozenModel, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """vllm-project/vllm#40896, sgl-project/sglang#34683, ggml-org/llama.cpp#28194: warm is cold, and is really warm."""
    text = natural(TOKENS - prompt.framing_tokens(model.tokenizer))
    ids, probe = prompt.segment_ids(model.tokenizer, text), prompt.probe_ids(model.tokenizer)
    assert TOKENS - 50 <= len(ids) <= TOKENS
    made = deposit(model, library, "book", segment(text))
    counted = Counted(model, monkeypatch)
    first = cold(model, ids, probe)
    assert counted.take() == len(ids) + len(probe) + len(first.ids) - 1
    second = cold(model, ids, probe)
    assert counted.take() == len(ids) + len(probe) + len(second.ids) - 1
    opened = open_artifact(library, model, library.artifact(made.artifact))
    warm = replay(model, opened).continuation
    assert counted.take() == len(probe) + len(warm.ids) - 1  # not one position of the text
    assert (first.ids, first.step_digests) == (second.ids, second.step_digests) == (warm.ids, warm.step_digests)
    third = cold(model, ids, probe)  # a graft leaves nothing behind
    assert third.step_digests == first.step_digests


def test_grafts_while_others_are_deposited_are_ones_own(model: FrozenModel, library: Library) -> None:
    """LMCache/LMCache#4385, #207: canaries that are deposited all the while never show in a graft."""
    texts = [f"Canary {number} sings of {number * 37} stones." for number in range(6)]
    known = [deposit(model, library, "book", segment(text, n)) for n, text in enumerate(texts[:2])]
    expected = {}
    for made in known:
        opened = open_artifact(library, model, library.artifact(made.artifact))
        expected[made.artifact] = (tensor_digests(list(opened.tensors.values())), opened.manifest.certificate)
    faults: list[str] = []
    over = threading.Event()
    grafts = dict.fromkeys(expected, 0)

    def graft(digest: str) -> None:
        try:
            while not over.is_set() or grafts[digest] < 3:
                opened = open_artifact(library, model, library.artifact(digest))
                with model.lock:
                    cache = grafted(model, opened, room=64)
                    state = capture(cache, length=opened.manifest.graft_point)
                digests, certificate = expected[digest]
                if tensor_digests(state_tensors(state)) != digests:
                    faults.append(f"{digest} holds another state")
                found = replay(model, opened).continuation
                if certificate is None or found.step_digests != certificate.step_digests:
                    faults.append(f"{digest} goes on otherwise")
                grafts[digest] += 1
        except Exception as fault:
            faults.append(repr(fault))

    threads = [threading.Thread(target=graft, args=(digest,)) for digest in expected]
    for thread in threads:
        thread.start()
    try:
        for number, text in enumerate(texts[2:], start=2):
            deposit(model, library, "book", segment(text, number))
            for made in known:  # the same ids again, while they are grafted
                library.publish(None, _encoded(library, made.artifact), library.artifact(made.artifact))
    finally:
        over.set()
        for thread in threads:
            thread.join(120)
    assert faults == []
    assert min(grafts.values()) >= 3
    assert library.count_artifacts(states=["published"]) == len(texts)


def _encoded(library: Library, digest: str) -> Any:
    from library.artifact import decode, encode

    opened = decode(library.read_blob(digest))
    return encode(opened.manifest, list(opened.tensors.values()))


@pytest.mark.parametrize("fault", ["eio", "short", "other bytes"])
def test_a_read_that_fails_never_goes_on_with_what_it_got(
    model: FrozenModel, library: Library, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """vllm-project/vllm#20063: a load that fails is no graft, and a fresh run says what it said before."""
    text = natural(300)
    ids, probe = prompt.segment_ids(model.tokenizer, text), prompt.probe_ids(model.tokenizer)
    before = cold(model, ids, probe)
    made = deposit(model, library, "book", segment(text))
    real = library.fs.read

    def read(path: str, watch: Any = None) -> memoryview:
        if fault == "eio":
            raise OSError(5, "Input/output error")
        data = real(path)
        data = data[:-1] if fault == "short" else memoryview(bytearray(len(data)))
        if watch is not None:
            watch(data)
        return data

    monkeypatch.setattr(library.fs, "read", read)
    with pytest.raises(StoreError if fault == "eio" else Exception, match=r"reading blob|other bytes"):
        open_artifact(library, model, library.artifact(made.artifact))
    monkeypatch.undo()
    state = library.artifact(made.artifact).state
    assert state == ("published" if fault == "eio" else "quarantined")  # a disk's bad moment accuses nobody
    if fault != "eio":
        with pytest.raises(MissingBlob):
            library.read_blob(made.artifact)
    assert cold(model, ids, probe).step_digests == before.step_digests


def test_positions_masks_and_lengths_agree_after_a_graft(model: FrozenModel, library: Library) -> None:
    """huggingface/transformers#36151: every layer of a grafted cache counts the positions that were restored."""
    made = deposit(model, library, "book", segment(natural(700)))  # past the sliding window of 512
    opened = open_artifact(library, model, library.artifact(made.artifact))
    cache = grafted(model, opened, room=16)
    point = opened.manifest.graft_point
    for step in range(3):
        assert {layer.get_seq_length() for layer in cache.layers} == {point + step}
        for layer in cache.layers:
            length, offset = layer.get_mask_sizes(1)
            assert offset + length == point + step + 1
        with torch.inference_mode():
            model.forward(torch.tensor([[5]], device=model.device), cache)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device: copies on a CPU are synchronous")
def test_a_capture_waits_for_the_device(tmp_path: Path) -> None:
    """vllm-project/vllm#45704: 100 captures while the device is still busy have one digest."""
    from core.model import load
    from core.settings import load_settings

    loaded = load(load_settings(model=str(_folder(tmp_path)), device="cuda"))
    ids = prompt.segment_ids(loaded.tokenizer, natural(2000))
    found = set()
    for _ in range(100):
        cache = new_cache(loaded.config, room=len(ids))
        with torch.inference_mode():
            loaded.forward(torch.tensor([ids], device=loaded.device), cache)
        state = capture(cache, length=len(ids))
        found.add(str(sorted(tensor_digests(state_tensors(replace(state))).items())))
    assert len(found) == 1


def _folder(folder: Path) -> Path:
    from core.evaluate.tiny_reader import write_tiny_reader

    return write_tiny_reader(folder / "reader", window=4096)
