from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from app import app
from core.calibrations import calibration_path, read_calibration
from core.evaluate.calibrating import curve, read_report, run, write
from core.settings import load_settings
from library.errors import FormatError
from ui import plots


def pairs(path: Path, different: int, same: int = 3) -> Path:
    rows = [("Tom has {} red cats.", "Tom has {} blue cats.", "negative", k) for k in range(different)]
    rows += [("Tom has {} cats.", "Tom has {}  cats .", "positive", k) for k in range(same)]
    lines = [{"base_question": a.format(k), "variant_question": b.format(k), "role": r} for a, b, r, k in rows]
    path.write_text("\n".join(json.dumps(line) for line in [*lines, {"base_question": "a"}]), encoding="utf-8")
    return path


def test_enough_labels_make_a_calibration_that_the_gate_reads(tmp_path: Path) -> None:
    settings = load_settings(library=tmp_path / "library")
    path = calibration_path(settings)
    assert read_calibration(settings) is None
    found = run([pairs(tmp_path / "pairs.jsonl", 40)], [], 0.1)
    write(found, path, by="ada", created="2026-01-01T00:00:00Z")
    assert read_calibration(settings) == found.calibration
    assert found.calibration.usable
    assert found.calibration.bound <= 0.1
    source = found.sources[0]
    assert (source.name, source.different, source.same, source.unused) == ("pairs.jsonl", 40, 3, 1)
    assert source.digest.startswith("blake3:")


def test_few_labels_are_refused_with_the_number_that_is_missing(tmp_path: Path) -> None:
    out = tmp_path / "c.json"
    ran = CliRunner().invoke(
        app, ["--json", "evaluate", "calibrate", "--pairs", str(pairs(tmp_path / "p", 9)), "--out", str(out)]
    )
    report = json.loads(ran.stdout)
    assert (ran.exit_code, report["usable"], out.exists()) == (1, False, False)
    assert report["calibration"]["missing"] == 598 - 9
    assert read_report(out) is not None


def test_opposite_labels_of_one_pair_count_once_as_different() -> None:
    labels = [
        SimpleNamespace(stored="Tom has 3 cats.", query=query, label=label)
        for query, label in (
            ("Tom has three cats.", "unsafe"),
            ("Tom has three  cats.", "safe"),
            ("Tom has 4 cats.", "unsure"),
        )
    ]
    found = run([], labels, 0.5)
    assert (found.pairs, found.calibration.different, found.sources[0].unused) == (1, 1, 1)


def test_the_figure_shows_shares_with_intervals_and_n() -> None:
    points = curve([(0.0, False)] * 10 + [(0.99, True)] * 5)
    table = plots.thresholds({"curve": [vars(point) for point in points]})
    chart = plots.figure(table)
    assert [trace.name for trace in chart.data] == ["wrong grafts, n = 10", "coverage, n = 5"]
    assert (chart.data[1].y[0], chart.data[1].y[-1]) == (100, 0)
    assert chart.data[0].error_y.array[0] == pytest.approx(100 * points[0].wrong_high)
    assert plots.figure(plots.thresholds(None)) is None


def test_another_file_is_no_report(tmp_path: Path) -> None:
    (tmp_path / "c.report.json").write_text("[]", encoding="utf-8")
    with pytest.raises(FormatError):
        read_report(tmp_path / "c.json")
