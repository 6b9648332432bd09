from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch

from core.graft import Continuation, Exactness, check_identity, closing_brace, compare, grafted, logits_digest, replay
from core.model import FrozenModel, fingerprint
from library.artifact import Artifact, decode
from library.digest import Digest, digest_bytes
from library.errors import FormatError, IdentityMismatch, UnsupportedState
from library.manifest import Certificate
from tests.conftest import ANSWER, Deposit


@pytest.fixture(scope="module")
def artifact(golden: Deposit) -> Artifact:
    return decode(golden.blob().read_bytes(), Digest.parse(golden.artifact))


def altered(artifact: Artifact, **changes: Any) -> Artifact:
    return replace(artifact, manifest=artifact.manifest.model_copy(update=changes))


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("7}", 1),
        ("}", 0),
        ("\\frac{1}{2}} and so on", 11),
        ("{}{}", None),
        ("7", None),
        ("", None),
        ("{{a}}} }", 5),
    ],
)
def test_where_the_cues_brace_closes(text: str, place: int | None) -> None:
    assert closing_brace(text) == place


DIGESTS = tuple(str(digest_bytes(text)) for text in (b"one", b"two"))


@pytest.mark.parametrize(
    ("ids", "digests", "found"),
    [
        ((1, 2), DIGESTS, Exactness.EXACT),
        ((1, 2), DIGESTS[::-1], Exactness.ARGMAX),
        ((1, 3), DIGESTS, Exactness.DIVERGENT),
        ((1,), DIGESTS[:1], Exactness.DIVERGENT),
        ((1, 2, 3), (*DIGESTS, DIGESTS[0]), Exactness.DIVERGENT),
    ],
)
def test_bits_then_tokens_are_compared(ids: tuple[int, ...], digests: tuple[str, ...], found: Exactness) -> None:
    certificate = Certificate(cue_ids=(9,), answer_ids=(1, 2), step_digests=DIGESTS, answer="x")
    assert compare(certificate, Continuation((9,), ids, digests, "x", True, 0.0, 0.0)) is found


def test_a_logits_digest_is_of_float32_bytes_and_of_every_bit() -> None:
    logits = torch.arange(8, dtype=torch.float32).reshape(1, 8)
    assert logits_digest(logits) == str(digest_bytes(logits.numpy().tobytes()))
    assert logits_digest(logits.bfloat16()) == logits_digest(logits)  # small whole numbers, so widening gives the same
    other = logits.clone()
    other.view(torch.int32)[0, 3] ^= 1
    assert logits_digest(other) != logits_digest(logits)


def test_a_replay_is_exact_and_repeats(model: FrozenModel, artifact: Artifact) -> None:
    before = {name: digest_bytes(tensor.data) for name, tensor in artifact.tensors.items()}
    first, second = replay(model, artifact), replay(model, artifact)
    for found in (first, second):
        assert (found.exactness, found.measured) == (Exactness.EXACT, Exactness.EXACT)
        assert (found.continuation.answer, found.continuation.closed) == (ANSWER, True)
    assert first.continuation.step_digests == second.continuation.step_digests
    assert {name: digest_bytes(tensor.data) for name, tensor in artifact.tensors.items()} == before


def test_another_environment_makes_no_claim_but_is_measured(model: FrozenModel, artifact: Artifact) -> None:
    environment = fingerprint({**artifact.manifest.environment.fields, "torch": "9.9"})
    found = replay(model, altered(artifact, environment=environment))
    assert (found.exactness, found.measured) == (Exactness.UNCERTIFIED, Exactness.EXACT)


def test_a_certificate_that_does_not_hold_is_divergent(model: FrozenModel, artifact: Artifact) -> None:
    certificate = artifact.manifest.certificate
    assert certificate is not None
    other = certificate.model_copy(update={"answer_ids": (certificate.answer_ids[0] + 1, *certificate.answer_ids[1:])})
    assert replay(model, altered(artifact, certificate=other)).exactness is Exactness.DIVERGENT


def test_a_changed_state_shows_in_the_bits(model: FrozenModel, artifact: Artifact) -> None:
    """A single value of one layer's state, which no digest of the file was asked about here."""
    name = next(iter(artifact.tensors))
    tensor = artifact.tensors[name]
    data = bytearray(tensor.data)
    data[3] ^= 0x40  # the exponent of the first value
    forged = replace(artifact, tensors={**artifact.tensors, name: replace(tensor, data=memoryview(data))})
    assert replay(model, forged).exactness is not Exactness.EXACT


FIELDS = ("weights", "tokenizer", "chat_template", "dtype", "rope", "adapter", "sliding_window")


@pytest.mark.parametrize("field", FIELDS)
def test_each_identity_field_refuses_and_is_named(model: FrozenModel, artifact: Artifact, field: str) -> None:
    other = replace(model, identity=fingerprint({**model.identity.fields, field: "another"}))
    with pytest.raises(IdentityMismatch, match=field) as caught:
        grafted(other, artifact, room=8)
    assert caught.value.fields == {field: (model.identity.fields[field], "another")}
    check_identity(model, artifact.manifest.identity)


def test_a_graft_point_that_is_not_the_states_length_is_refused(model: FrozenModel, artifact: Artifact) -> None:
    with pytest.raises(FormatError, match="graft point"):
        grafted(model, altered(artifact, graft_point=artifact.manifest.graft_point + 1), room=8)


def test_a_state_without_a_certificate_cannot_be_replayed(model: FrozenModel, artifact: Artifact) -> None:
    with pytest.raises(FormatError, match="no certificate"):
        replay(model, altered(artifact, certificate=None))


def test_an_unknown_layer_kind_is_refused(model: FrozenModel, artifact: Artifact) -> None:
    layers = artifact.manifest.layers
    odd = (layers[0].model_copy(update={"kind": "no-such-kind"}), *layers[1:])
    with pytest.raises((UnsupportedState, FormatError), match="no-such-kind"):
        grafted(model, altered(artifact, layers=odd), room=8)
