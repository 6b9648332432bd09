"""Solve, approve, ask: the main job on the real embedded model, across processes, and what happens under damage."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from core import asking, opening
from core.cache import new_cache
from core.graft import grafted
from core.model import FrozenModel, fingerprint, identity_fields
from core.replay import audit
from core.solve import Plan, prefill, prefill_runs, solve
from core.state import capture, state_tensors
from library.artifact import Artifact, TensorData, decode, encode, tensor_digests
from library.digest import Digest, digest_bytes
from library.manifest import Run
from library.store import Library
from tests.conftest import ANSWER, PROBLEM, Deposit
from tests.core.engines import asked, engine_at, result_of
from tests.library.artifacts import manifest, tensors
from tests.library.stores import attempt_of, record_of
from tests.program import python, scion

OTHER = "Carol collects 2 peanuts. Carol's father gives Carol 6 more. How many peanuts does Carol have?"


def opened(deposit: Deposit) -> Artifact:
    return decode(deposit.blob().read_bytes(), Digest.parse(deposit.artifact))


def cue_length(deposit: Deposit) -> int:
    certificate = opened(deposit).manifest.certificate
    assert certificate is not None
    return len(certificate.cue_ids)


def flip(path: Path, place: int) -> None:
    """Change one bit of one byte; `place` counts from the end if negative."""
    raw = bytearray(path.read_bytes())
    raw[place] ^= 1
    path.chmod(0o600)
    path.write_bytes(raw)


def test_the_deposit_came_from_a_batch(golden: Deposit) -> None:
    written = opened(golden).manifest
    assert max(run.batch for run in written.schedule) > 1
    assert written.answer == ANSWER
    assert written.sampling.seed == 0
    assert written.graft_point == len(written.prompt_ids) + len(written.attempt_ids)
    assert [note.reviewer for note in written.decisions] == ["ada"]
    assert {item.check: item.outcome for item in written.evidence}["reference"] == "pass"


def test_a_new_process_grafts_byte_exactly(deposited: Deposit) -> None:
    ran = scion("ask", PROBLEM, library=deposited.folder)
    assert ran.code == 0, ran.err
    result = ran.json
    assert (result["verdict"], result["answer"], result["exactness"]) == ("GRAFT", ANSWER, "byte-exact")
    assert result["artifact"] == deposited.artifact
    assert 1 <= result["decode_tokens"] <= 12
    assert result["prefill_tokens"] == cue_length(deposited)
    assert result["tokens_saved"] == deposited.solve_tokens - result["decode_tokens"] > 0


def test_text_that_prints_the_same_grafts_and_another_number_does_not(model: FrozenModel, deposited: Deposit) -> None:
    with engine_at(deposited.folder, model) as engine:
        same = asked(engine, PROBLEM.replace(" ", "\u00a0 ").replace("2", "\uff12"), fresh_max_tokens=0)
        other = asked(engine, OTHER, fresh_max_tokens=0)
    assert (same["verdict"], same["answer"]) == ("GRAFT", ANSWER)
    assert (other["verdict"], other["answer"], other["decode_tokens"]) == ("REFUSE", None, 0)
    assert other["reasons"]


@pytest.fixture(scope="module")
def cold(model: FrozenModel, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Any]:
    """The answer of a system without a library."""
    with engine_at(tmp_path_factory.mktemp("empty"), model) as engine:
        return asked(engine, PROBLEM, fresh_max_tokens=64)


def test_cold_then_warm_then_warm(model: FrozenModel, cold: Mapping[str, Any], deposited: Deposit) -> None:
    """The state is really used (only the cue is prefilled) and every warm answer is the same bits."""
    weights = model.weights_digest()
    assert (cold["verdict"], cold["prefill_tokens"]) == ("REFUSE", len(model.prompt_ids(PROBLEM)))
    artifact, cue = opened(deposited), cue_length(deposited)
    with engine_at(deposited.folder, model) as engine:
        warm = [asked(engine, PROBLEM) for _ in range(2)]
        kept = engine.library.outcomes(artifact=deposited.artifact, limit=10)
    for result in warm:
        assert (result["verdict"], result["exactness"], result["answer"]) == ("GRAFT", "byte-exact", ANSWER)
        assert result["prefill_tokens"] == cue < cold["prefill_tokens"]
    assert {row.id for row in kept} >= {result["outcome_id"] for result in warm}
    assert artifact.manifest.certificate is not None
    assert {result["decode_tokens"] for result in warm} == {len(artifact.manifest.certificate.answer_ids)}
    assert model.weights_digest() == weights == Digest.parse(str(model.identity.fields["weights"]))


def test_a_restored_cache_holds_the_stored_bytes(model: FrozenModel, golden: Deposit) -> None:
    artifact = opened(golden)
    cache = grafted(model, artifact, room=8)
    state = capture(cache, length=artifact.manifest.graft_point)
    assert {t.name: bytes(t.data) for t in state_tensors(state)} == {
        name: bytes(t.data) for name, t in artifact.tensors.items()
    }


@pytest.mark.parametrize(("place", "budget"), [(200, 0), (-1000, 64)], ids=["manifest", "data"])
def test_a_flipped_byte_refuses_quarantines_and_leaves_the_cold_answer_as_it_was(
    model: FrozenModel, cold: Mapping[str, Any], deposited: Deposit, place: int, budget: int
) -> None:
    flip(deposited.blob(), place)
    with engine_at(deposited.folder, model) as engine:
        after = asked(engine, PROBLEM, fresh_max_tokens=budget)
        row = engine.library.artifact(deposited.artifact)
        again = asked(engine, PROBLEM, fresh_max_tokens=0)
        quarantine = list((deposited.folder / "quarantine").iterdir())
    assert after["verdict"] == "REFUSE"
    assert "DigestMismatch" in {reason["code"] for reason in after["reasons"]}
    if budget:
        assert (after["text"], after["answer"]) == (cold["text"], cold["answer"])
        assert after["decode_tokens"] == cold["decode_tokens"] > 0
    assert row.state == "quarantined"
    assert len(quarantine) == 1
    assert again["verdict"] == "REFUSE"


def test_library_verify_exits_3_and_names_a_flipped_byte(deposited: Deposit) -> None:
    flip(deposited.blob(), -1)
    first, second = (scion("library", "verify", library=deposited.folder) for _ in range(2))
    assert (first.code, second.code) == (3, 3)
    assert [row["digest"] for row in first.json["bad"]] == [deposited.artifact]
    assert second.json["quarantined"] == [deposited.artifact]


def test_a_missing_blob_solves_fresh_and_verify_names_it(model: FrozenModel, deposited: Deposit) -> None:
    deposited.blob().unlink()
    with engine_at(deposited.folder, model) as engine:
        result = asked(engine, PROBLEM, fresh_max_tokens=4)
        found = engine.verify()
    assert result["verdict"] == "REFUSE"
    assert "MissingBlob" in {reason["code"] for reason in result["reasons"]}
    assert result["decode_tokens"] > 0
    assert [(row.digest, row.ok) for row in found] == [(deposited.artifact, False)]
    assert "MissingBlob" in found[0].finding


def test_other_weights_under_the_same_name_are_refused_by_field(model: FrozenModel, deposited: Deposit) -> None:
    """One bit of one weight, changed in place and changed back."""
    weight = model.network.get_input_embeddings().weight.data
    kept = weight[5, 7].clone()
    weight[5, 7] += 1.0
    try:
        other = replace(model, identity=fingerprint(identity_fields(model.network, model.tokenizer, model.dtype)))
    finally:
        weight[5, 7] = kept
    assert other.name == model.name
    assert other.identity.digest != model.identity.digest
    with engine_at(deposited.folder, other) as engine:
        result = asked(engine, PROBLEM, fresh_max_tokens=0)
        with pytest.raises(Exception, match="weights") as caught:
            opening.open_artifact(engine.library, other, engine.library.artifact(deposited.artifact))
    assert type(caught.value).__name__ == "IdentityMismatch"
    assert set(caught.value.fields) == {"weights"}  # type: ignore[attr-defined]
    assert result["verdict"] == "REFUSE"
    told = {reason["code"]: reason["text"] for reason in result["reasons"]}
    assert "weights" in told["IdentityMismatch"]


def test_a_state_read_into_memory_survives_what_happens_to_its_file(model: FrozenModel, deposited: Deposit) -> None:
    with engine_at(deposited.folder, model) as engine:
        row = engine.library.artifact(deposited.artifact)
        held = opening.open_artifact(engine.library, model, row)
        before = {name: digest_bytes(tensor.data) for name, tensor in held.tensors.items()}
        path = deposited.blob()
        path.chmod(0o600)
        path.write_bytes(b"\0" * path.stat().st_size)
        with path.open("r+b") as file:
            file.truncate(1000)
        path.unlink()
        assert {name: digest_bytes(tensor.data) for name, tensor in held.tensors.items()} == before
        assert int(grafted(model, held, room=4).get_seq_length()) == held.manifest.graft_point


def test_colliding_keys_do_not_serve_another_problem(
    model: FrozenModel, deposited: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All texts get the stored problem's key; the gate compares the texts and refuses."""
    key = asking.canonical_key(PROBLEM)
    monkeypatch.setattr(asking, "canonical_key", lambda text: key)
    with engine_at(deposited.folder, model) as engine:
        assert asking.candidates(engine.library, "An unrelated question: what is 3 times 9?", None)
        result = asked(engine, "An unrelated question: what is 3 times 9?", fresh_max_tokens=0)
    assert (result["verdict"], result["answer"]) == ("REFUSE", None)


def test_a_state_of_other_tokens_is_refused_by_the_token_comparison(
    model: FrozenModel, deposited: Deposit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Colliding content digests: the bytes found under the right name hold the state of another prompt."""
    real = opened(deposited)
    ids = list(real.manifest.prompt_ids)
    ids[-20] += 1
    forged = replace(real, manifest=real.manifest.model_copy(update={"prompt_ids": tuple(ids)}))
    monkeypatch.setattr(asking, "open_artifact", lambda library, model, row: forged)
    with engine_at(deposited.folder, model) as engine:
        result = asked(engine, PROBLEM, fresh_max_tokens=0)
    assert result["verdict"] == "REFUSE"
    assert any("prompt tokens" in reason["text"] for reason in result["reasons"])


def test_a_row_of_a_batch_is_rebuilt_bit_for_bit(model: FrozenModel, deposited: Deposit) -> None:
    with engine_at(deposited.folder, model) as engine:
        result = result_of(engine, engine.submit_audit(deposited.artifact, by="tester"))
        kept = engine.library.measurements(deposited.artifact, limit=5)
        state = engine.library.artifact(deposited.artifact).state
    assert (result["finding"], result["differing"]) == ("reproduced", 0)
    assert [(row.kind, row.finding) for row in kept] == [("audit", "reproduced")]
    assert state == "published"


def test_swapped_tensors_with_recomputed_hashes_are_found_by_the_audit(model: FrozenModel, golden: Deposit) -> None:
    """Every digest fits, so only the tokens can tell: two layers' keys changed places."""
    real = opened(golden)
    first, second = (next(iter(real.manifest.layers[index].tensors.values())) for index in (3, 4))
    parts: list[TensorData] = []
    for tensor in real.tensors.values():
        source = {first: second, second: first}.get(tensor.name, tensor.name)
        parts.append(replace(tensor, data=real.tensors[source].data))
    written = real.manifest.model_copy(update={"tensors": tensor_digests(parts)})
    forged = encode(written, parts)
    swapped = decode(forged.to_bytes(), forged.digest)  # a well-formed artifact with true hashes
    report = audit(model, swapped)
    assert report.finding == "differs"
    assert {mismatch.name for mismatch in report.mismatches} == {first, second}


def test_concurrent_deposits_keep_their_own_canaries(library: Library) -> None:
    """Threads deposit and read at once; every artifact read back holds its own text and tensors."""
    count, barrier = 24, threading.Barrier(4)
    failures: list[Exception] = []
    done: dict[int, str] = {}

    def deposit(thread: int) -> None:
        try:
            barrier.wait()
            for number in range(thread, count, 4):
                canary = f"canary {number}"
                done[number] = publish(library, canary)
                back = decode(library.read_blob(done[number]), Digest.parse(done[number]))
                assert back.manifest.problem == canary
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=deposit, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures
    assert len(set(done.values())) == count
    for number, digest in done.items():
        back = decode(library.read_blob(digest), Digest.parse(digest))
        assert back.manifest.problem == f"canary {number}"
        assert bytes(back.tensors["layer.0.key"].data) == canary_bytes(f"canary {number}")


def canary_bytes(text: str) -> bytes:
    return (digest_bytes(text.encode()).hex.encode() * 2)[:72]


def publish(library: Library, problem: str) -> str:
    """A made-up state with a canary in its tensors, through staging, approval and publication."""
    items = [replace(t, data=memoryview(canary_bytes(problem))) if t.name == "layer.0.key" else t for t in tensors(3)]
    encoded = encode(manifest(items, problem=problem), items)
    attempt = attempt_of(library, problem, library.stage(encoded))
    library.decide(attempt, version=1, reviewer="ada", action="approve")
    return library.publish(attempt, encoded, record_of(problem)).digest


def test_cancel_ends_within_two_decode_steps(model: FrozenModel) -> None:
    cancelled = threading.Event()
    steps: list[int] = []

    def on_step(rows: object, decoded: int) -> None:
        steps.append(decoded)
        if len(steps) == 4:
            cancelled.set()

    plan = Plan(max_tokens=64, temperature=0.8, attempts=3, batch=3)
    attempts = solve(model, model.prompt_ids(PROBLEM), plan, on_step=on_step, cancelled=cancelled)
    assert len(steps) <= 4 + 2
    assert {attempt.finish for attempt in attempts} <= {"cancelled", "stop"}
    assert len(attempts) == 3


GEMMA_CHILD = """
import sys
from pathlib import Path
import torch
from core.model import load
from core.settings import load_settings
from core.graft import grafted
from library.artifact import decode
from library.digest import Digest, digest_bytes
model = load(load_settings(model="gemma3-270m", dtype="bfloat16"))
artifact = decode(Path(sys.argv[1]).read_bytes(), Digest.parse(sys.argv[2]))
cache = grafted(model, artifact, room=32)
token = int(sys.argv[3])
with torch.inference_mode():
    for _ in range(16):
        logits = model.forward(torch.tensor([[token]]), cache)
        print(digest_bytes(logits.contiguous().view(torch.uint8).numpy().tobytes()))
        token = int(logits.argmax())
"""


@pytest.mark.gemma
@pytest.mark.timeout(1800)
@pytest.mark.slow
def test_gemma_goes_on_bit_for_bit_past_its_window_in_a_new_process(gemma: FrozenModel, tmp_path: Path) -> None:
    """900 tokens past a window of 512: capture, write, restore elsewhere, 16 steps with equal logits."""
    model = gemma
    assert model.identity.fields["sliding_window"] == 512
    prompt = model.prompt_ids("Tell a long story about a lighthouse.")
    total = len(prompt) + 900
    cache = new_cache(model.config, room=total + 32)
    ids: list[int] = []
    with torch.inference_mode():
        logits = prefill(model, cache, prompt)
        for _ in range(900):  # through any end of turn: the point is the length
            ids.append(int(logits.argmax()))
            logits = model.forward(torch.tensor([[ids[-1]]]), cache)
    state = capture(cache, length=total)
    parts = state_tensors(state)
    written = manifest(
        parts,
        prompt_ids=tuple(prompt),
        attempt_ids=tuple(ids),
        graft_point=total,
        schedule=(*prefill_runs(len(prompt)), Run(length=1, count=900)),
        layers=state.layers,
        identity=model.identity,
        environment=model.environment,
        certificate=None,
    )
    encoded = encode(written, parts)
    path = tmp_path / "artifact"
    path.write_bytes(encoded.to_bytes())
    token = first = int(logits.argmax())
    expected = []
    with torch.inference_mode():
        for _ in range(16):
            logits = model.forward(torch.tensor([[token]]), cache)
            expected.append(str(digest_bytes(logits.contiguous().view(torch.uint8).numpy().tobytes())))
            token = int(logits.argmax())
    ran = python(GEMMA_CHILD, str(path), str(encoded.digest), str(first))
    assert ran.code == 0, ran.err
    assert ran.out.split() == expected
