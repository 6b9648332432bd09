from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest

from core.model import FrozenModel, fingerprint
from core.replay import Mismatch, audit, describe, rebuild
from core.solve import Plan, captured, solve
from core.state import state_tensors
from library.artifact import Artifact, encode, tensor_digests
from library.artifact import decode as decoded
from library.errors import Cancelled, FormatError, IdentityMismatch
from library.manifest import Run
from tests.library.artifacts import manifest

PROMPT = "Once upon a time there was a little girl who lived in a"


@pytest.fixture(scope="module")
def short(model: FrozenModel) -> Artifact:
    """The state of the middle one of three attempts that were decoded as one batch, a dozen tokens long."""
    prompt = model.tokenizer.encode(PROMPT, add_special_tokens=False)
    kept: list[Any] = []

    def on_finish(attempt: Any, live: Any) -> bool:
        if attempt.number == 1:
            kept.extend([attempt, captured(live(), attempt, len(prompt))])
        return False

    solve(model, prompt, Plan(max_tokens=7, temperature=1.0, seed=2, attempts=3, batch=3), on_finish=on_finish)
    attempt, state = kept
    parts = state_tensors(state)
    written = manifest(
        parts,
        prompt_ids=tuple(prompt),
        attempt_ids=attempt.ids,
        graft_point=len(prompt) + len(attempt.ids),
        schedule=attempt.schedule,
        layers=state.layers,
        identity=model.identity,
        environment=model.environment,
        certificate=None,
    )
    encoded = encode(written, parts)
    return decoded(encoded.to_bytes(), encoded.digest)


def altered(artifact: Artifact, **changes: Any) -> Artifact:
    return replace(artifact, manifest=artifact.manifest.model_copy(update=changes))


def flipped(artifact: Artifact) -> Artifact:
    """One bit of one value changed, its digest recomputed."""
    name = list(artifact.tensors)[5]
    data = bytearray(artifact.tensors[name].data)
    data[-4] ^= 1
    tensors = {**artifact.tensors, name: replace(artifact.tensors[name], data=memoryview(data))}
    return replace(altered(artifact, tensors=tensor_digests(list(tensors.values()))), tensors=tensors)


def test_a_row_of_a_batch_is_rebuilt(model: FrozenModel, short: Artifact) -> None:
    assert {(run.batch, run.row) for run in short.manifest.schedule} >= {(1, 0), (3, 1)}
    seen: list[tuple[int, int]] = []
    report = audit(model, short, on_progress=lambda done, total: seen.append((done, total)))
    assert report.reproduced
    assert (report.finding, report.mismatches, report.tensors) == ("reproduced", (), len(short.tensors))
    assert seen[-1] == (short.manifest.graft_point, short.manifest.graft_point)


def test_one_changed_bit_is_found_and_measured(model: FrozenModel, short: Artifact) -> None:
    report = audit(model, flipped(short))
    assert (report.finding, report.reproduced) == ("differs", False)
    (mismatch,) = report.mismatches
    assert mismatch.name == list(short.tensors)[5]
    assert 0 < mismatch.largest < 1e-3
    assert 0 < mismatch.share < 0.01


def test_another_environment_is_no_accusation(model: FrozenModel, short: Artifact) -> None:
    elsewhere = fingerprint({**model.environment.fields, "torch": "9.9"})
    assert audit(model, altered(flipped(short), environment=elsewhere)).finding == "other-environment"
    assert audit(model, altered(short, environment=elsewhere)).finding == "reproduced"


@pytest.mark.parametrize("what", ["token", "schedule"])
def test_a_state_of_other_tokens_or_another_schedule_differs(model: FrozenModel, short: Artifact, what: str) -> None:
    written = short.manifest
    if what == "token":
        forged = altered(short, attempt_ids=(written.attempt_ids[0] + 1, *written.attempt_ids[1:]))
    else:  # one prefill of everything: the same tokens, other rounding
        forged = altered(short, schedule=(Run(length=written.graft_point, count=1),))
    assert audit(model, forged).finding == "differs"


def test_another_model_is_refused_before_anything_runs(model: FrozenModel, short: Artifact) -> None:
    other = replace(model, identity=fingerprint({**model.identity.fields, "weights": "other"}))
    with pytest.raises(IdentityMismatch, match="weights"):
        audit(other, short, on_progress=lambda done, total: pytest.fail("the model ran"))


def test_a_schedule_that_does_not_fit_is_refused(model: FrozenModel, short: Artifact) -> None:
    with pytest.raises(FormatError, match="schedule"):
        audit(model, altered(short, schedule=short.manifest.schedule[:-1]))
    length = short.manifest.graft_point
    with pytest.raises(FormatError, match="batch of one"):
        audit(model, altered(short, schedule=(Run(length=length, count=1, batch=2),)))


def test_a_rebuild_can_be_stopped(model: FrozenModel, short: Artifact) -> None:
    cancelled = threading.Event()
    with pytest.raises(Cancelled):
        rebuild(model, short.manifest, on_progress=lambda done, total: cancelled.set(), cancelled=cancelled)


def test_mismatches_in_words() -> None:
    found = [Mismatch(f"layer.{n}.key", 0.25, 0.5) for n in range(5)]
    assert (
        describe(found) == ", ".join(f"layer.{n}.key (up to 0.25, 50.0% of elements)" for n in range(3)) + " and 2 more"
    )
    assert describe(()) == ""
