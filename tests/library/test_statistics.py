from __future__ import annotations

from pathlib import Path

import pytest

from library.store import Library
from library.tables import Outcome
from tests.library.stores import IDENTITY, attempt_of, deposit


@pytest.fixture
def library(tmp_path: Path):
    with Library.open(tmp_path / "lib", actor="ada") as opened:
        yield opened


def _outcome(library: Library, day: int, verdict: str, **columns: object) -> None:
    values: dict[str, object] = {
        "id": "", "query": "q", "policy": "strict", "verdict": verdict, "model": "m", "identity": IDENTITY,
        "created": f"2026-05-{day:02d}T12:00:00.000000Z", "created_by": "ada",
    }  # fmt: skip
    library.record_outcome(Outcome(**{**values, **columns}))


def test_empty_library_has_zeros(library: Library) -> None:
    found = library.statistics()
    assert (found.asks, found.artifacts, found.days, found.joules, found.hit_rate) == (0, (), (), None, None)
    assert (found.tokens_saved, found.seconds_saved, found.stored_bytes) == (0, 0.0, 0)


def test_numbers_of_asks(library: Library) -> None:
    digest = deposit(library, "one").digest
    graft = {"artifact": digest, "exactness": "byte-exact", "tokens_saved": 90, "seconds_saved": 1.5}
    _outcome(library, 1, "GRAFT", **graft, decode_tokens=5, prefill_tokens=2)
    _outcome(library, 1, "REFUSE", decode_tokens=100, joules=2.5)
    _outcome(library, 2, "GRAFT", **graft, flagged=True)
    _outcome(library, 3, "TRANSFER", artifact=digest)
    found = library.statistics()
    assert (found.asks, found.grafts, found.transfers, found.refusals, found.wrong) == (4, 2, 1, 1, 1)
    assert (found.tokens_saved, found.seconds_saved, found.joules) == (180, 3.0, 2.5)
    assert (found.decode_tokens, found.prefill_tokens, found.hit_rate) == (105, 2, 0.5)
    assert found.exactness == (("byte-exact", 2),)
    assert [(day.date, day.asks, day.grafts, day.wrong, day.tokens_saved) for day in found.days] == [
        ("2026-05-01", 2, 1, 0, 90),
        ("2026-05-02", 1, 1, 1, 90),
        ("2026-05-03", 1, 0, 0, 0),
    ]
    assert library.artifact(digest).uses == 2
    # A transfer is no answer of the artifact's, but its state was used: it must not be the next to be evicted.
    assert library.artifact(digest).last_used == "2026-05-03T12:00:00.000000Z"


def test_range_is_half_open(library: Library) -> None:
    for day in (1, 2, 3):
        _outcome(library, day, "REFUSE")
    found = library.statistics("2026-05-02", "2026-05-03")
    assert [day.date for day in found.days] == ["2026-05-02"]
    assert len(library.outcomes(since="2026-05-02")) == 2
    assert len(library.outcomes(limit=1)) == 1


def test_reviewers_and_states(library: Library) -> None:
    deposit(library, "one")
    revoked = deposit(library, "two").digest
    library.revoke(revoked, reason="wrong", actor="ada")
    attempt = attempt_of(library, "three")
    library.decide(attempt, version=1, reviewer="bob", action="reject", reason="no")
    found = library.statistics()
    assert found.artifacts == (("published", 1), ("revoked", 1))
    assert found.stored_bytes == 600
    assert [(who.name, who.approved, who.rejected) for who in found.reviewers] == [("ada", 2, 0), ("bob", 0, 1)]
    assert found.attempts == 3


def test_review_by_day_and_agreement_by_pair(library: Library) -> None:
    both, apart, taken_back = (attempt_of(library, name) for name in ("one", "two", "three"))
    words = [
        (both, "ada", "approve"), (both, "bob", "approve"), (apart, "ada", "approve"), (apart, "bob", "reject"),
        (apart, "eve", "reject"), (taken_back, "ada", "approve"), (taken_back, "ada", "undo"),
        (taken_back, "bob", "reject"),
    ]  # fmt: skip
    for attempt, reviewer, action in words:
        version = library.attempt(attempt).version
        settles = action == "reject" and reviewer == "eve"
        library.decide(attempt, version=version, reviewer=reviewer, action=action, reason="so", settles=settles)
    found = library.statistics()
    (day,) = found.review_days
    assert (day.approved, day.rejected, day.flagged, day.reviewers) == (4, 3, 0, 3)
    pairs = [(p.one, p.other, p.agreed, p.disagreed) for p in found.agreements]
    assert pairs == [("ada", "bob", 1, 1), ("ada", "eve", 0, 1), ("bob", "eve", 1, 0)]
    assert found.agreement == 0.5
    assert library.statistics(since="2999").agreement is None
