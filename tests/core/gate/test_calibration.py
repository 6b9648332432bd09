from __future__ import annotations

import dataclasses
import random
import shutil
from pathlib import Path

import pytest

from core.evaluate.stats import upper_bound
from core.gate import Calibration, Policy, Verdict, calibrate, judge, labels_needed, rules, rules_digest
from library.errors import FormatError


@pytest.mark.parametrize(("delta", "needed"), [(0.01, 299), (0.05, 59), (0.005, 598)])
def test_labels_needed_is_the_rule_of_three(delta: float, needed: int) -> None:
    assert labels_needed(delta) == needed
    assert upper_bound(0, needed) <= delta < upper_bound(0, needed - 1)


def test_too_few_labels_are_counted_not_raised() -> None:
    found = calibrate([(0.1, False)] * 100 + [(0.9, True)] * 500, 0.01)
    assert not found.usable
    assert found.missing == 199
    assert "199 more are needed" in found.explain()
    assert found.threshold == 1.0


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_holds_on_the_labels(seed: int) -> None:
    rng = random.Random(seed)
    labelled = [(rng.betavariate(2, 5), False) for _ in range(2000)] + [
        (rng.betavariate(6, 2), True) for _ in range(500)
    ]
    found = calibrate(labelled, 0.01)
    assert found.usable
    accepted = sum(score >= found.threshold for score, same in labelled if not same)
    assert accepted == found.false_accepts
    assert found.bound <= 0.01
    lower = found.threshold - 0.02
    assert upper_bound(sum(s >= lower for s, same in labelled if not same), 2000) > 0.01
    assert 0 < found.covered < 500


def test_ties_at_the_top_are_not_accepted() -> None:
    found = calibrate([(1.0, False)] * 400 + [(1.0, True)] * 10, 0.01)
    assert not found.usable


def test_json_round_trip_is_canonical() -> None:
    found = calibrate([(0.123456789, False)] * 400 + [(0.9, True)] * 10, 0.01)
    data = found.to_json()
    again = Calibration.from_json(data)
    assert again.to_json() == data
    assert again.threshold == pytest.approx(found.threshold, abs=1e-9)
    assert again.threshold > 0.123456789


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b"null", b'{"schema":1}', b'{ "schema": 1 }', b"\xff"])
def test_other_json_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError):
        Calibration.from_json(data)


def test_another_encoding_is_refused() -> None:
    data = calibrate([(0.1, False)] * 400, 0.01).to_json()
    with pytest.raises(FormatError):
        Calibration.from_json(data.replace(b":", b": "))


@pytest.mark.parametrize(("labelled", "delta"), [([(0.5, True)], 0.0), ([(0.5, True)], 1.0), ([(1.5, True)], 0.1)])
def test_bad_input_raises(labelled: list[tuple[float, bool]], delta: float) -> None:
    with pytest.raises(ValueError, match="must be between"):
        calibrate(labelled, delta)


def test_a_threshold_of_other_rules_accepts_nothing_and_says_so() -> None:
    text = "Ann has 12 apples. How many are left?"
    restated = text.replace("12", "twelve")
    made = Calibration(0.5, 0.01, 400, 100, 0, 90, 0)
    assert made.rules == rules_digest()
    assert judge(text, restated, Policy.CALIBRATED, calibration=made).verdict is Verdict.GRAFT
    other = Calibration.from_json(dataclasses.replace(made, rules="blake3:" + "0" * 64).to_json())
    judgement = judge(text, restated, Policy.CALIBRATED, calibration=other)
    assert judgement.verdict is Verdict.REFUSE
    assert "evaluate calibrate" in judgement.reasons[0].text


def test_the_digest_of_the_rules_covers_code_and_tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = Path(rules.__file__).parent
    shutil.copytree(package, tmp_path / "gate")
    monkeypatch.setattr(rules, "__file__", str(tmp_path / "gate" / "rules.py"))
    digest = rules_digest.__wrapped__
    assert digest() == rules_digest()
    for name in ("judge.py", "tables/synonyms.txt"):
        before = digest()
        with (tmp_path / "gate" / name).open("a") as file:
            file.write("\n")
        assert digest() != before


def test_a_calibration_of_the_older_schema_says_what_to_do() -> None:
    with pytest.raises(FormatError, match="evaluate calibrate"):
        Calibration.from_json(b'{"schema":1}')
