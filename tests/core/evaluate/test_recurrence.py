"""The recurrence experiment: counting on plain rows, the whole on the embedded model, and its command lines."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core.evaluate.report import Problem

if TYPE_CHECKING:
    from core.model import FrozenModel

ROOT = Path(__file__).resolve().parents[3]
QUESTION = "Carol collects 2 peanuts. Carol's father gives Carol 5 more. How many peanuts does Carol have?"


def row(greedy: bool, replay: bool | None) -> dict[str, Any]:
    cost = {"tokens": 40, "prefill": 10, "seconds": 2.0, "joules": None, "flops": 100}
    replayed = {**cost, "tokens": 4, "right": replay, "exactness": "byte-exact", "flops": 10}
    return {
        "greedy": {**cost, "right": greedy},
        "solve": {**cost, "tokens": 200},
        "deposited": replay is not None,
        "why": "" if replay is not None else "no attempt was right",
        "replay": None if replay is None else replayed,
    }


def test_accuracy_and_tokens_are_of_the_right_problems(tmp_path: Path) -> None:
    from core.evaluate.recurrence import Recurrence, write_figures
    from core.solve import Plan

    rows = (row(False, True), row(True, True), row(True, None), row(False, None), row(True, False))
    found = Recurrence("m", Plan(64), rows, "not metered", "w", "w", {})
    report = found.to_json()
    assert json.loads(json.dumps(report)) == report
    assert (report["n"], report["deposited"]) == (5, 3)
    assert report["accuracy_without"] == 3 / 5
    assert report["accuracy_with"] == 3 / 5  # two replays right, one wrong; one fresh run right where none is stored
    assert report["accuracy_from_library"] == 2 / 5
    assert (report["solve_tokens"], report["greedy_tokens"], report["replay_tokens"]) == (600, 120, 12)
    assert (report["ratio"], report["ratio_greedy"]) == (50.0, 10.0)
    assert report["solve_tokens_all"] == 1000
    assert report["energy"]["joules_solve"] is None
    assert report["energy"]["flops_replay"] == 30
    assert report["not_deposited"] == {"no attempt was right": 2}
    assert len(write_figures(tmp_path, found)) == 2


def test_nothing_deposited_gives_no_ratio() -> None:
    from core.evaluate.recurrence import Recurrence
    from core.solve import Plan

    report = Recurrence("m", Plan(64), (row(True, None),), "not metered", "w", "w", {}).to_json()
    assert (report["ratio"], report["replay_tokens"], report["accuracy_with"]) == (None, 0, 1.0)


def test_the_whole_experiment_and_its_continuation(model: FrozenModel, tmp_path: Path) -> None:
    from core.evaluate import recurrence
    from core.solve import Plan
    from library.errors import UsageError

    problems = [Problem("carol", QUESTION, "7"), Problem("no", QUESTION.replace("5", "9"), "no such answer")]
    plan = Plan(max_tokens=64, temperature=0.7, top_p=0.95, attempts=8, batch=8)
    found = recurrence.run(model, problems[:1], plan, tmp_path, source_digest="d")
    report = found.to_json()
    assert (report["n"], report["deposited"], report["accuracy_with"]) == (1, 1, 1.0)
    assert report["replay_exactness"] == {"byte-exact": 1}
    assert report["solve_tokens"] > report["replay_tokens"] > 0
    assert report["weights_digest_before"] == report["weights_digest_after"]

    more = recurrence.run(model, problems, Plan(64, 0.7, 0.95, 0, 8, 8), tmp_path, source_digest="d")
    assert more.rows[0] == found.rows[0]  # read back, not run again
    assert more.rows[1]["deposited"] is False
    with pytest.raises(UsageError, match="--state"):
        recurrence.run(model, problems, Plan(65, 0.7, 0.95, 0, 8, 8), tmp_path, source_digest="d")


def test_the_preset_is_the_models_own_experiment() -> None:
    from core.evaluate.recurrence import PRESETS

    preset = PRESETS["aime2025"]
    assert (preset.model, preset.dtype, preset.plan.attempts) == ("google/gemma-4-12B-it", "bfloat16", 8)


def _app(*arguments: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [sys.executable, "app.py", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stderr
    return done


def test_the_gate_command_writes_verdicts_and_imports_no_torch(tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.jsonl"
    lines = [{"base_question": QUESTION, "variant_question": QUESTION.replace("5", "4"), "role": "negative"}]
    lines.append({"base_question": QUESTION, "variant_question": QUESTION.replace(" ", "  "), "role": "positive"})
    pairs.write_text("".join(json.dumps(line) + "\n" for line in lines) + "broken\n")
    code = (
        "import sys\nimport app\nsys.argv = ['app.py', 'evaluate', 'gate', '--pairs', sys.argv[1], '--policy',"
        " 'strict', '--verdicts', sys.argv[2], '--json', sys.argv[3]]\n"
        "try:\n    app.main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        "assert 'torch' not in sys.modules\n"
    )
    out, report = tmp_path / "v.jsonl", tmp_path / "r.json"
    subprocess.run([sys.executable, "-c", code, str(pairs), str(out), str(report)], cwd=ROOT, check=True, timeout=120)
    verdicts = [json.loads(line) for line in out.read_text().splitlines()]
    assert [(v["index"], v["verdict"] == "GRAFT") for v in verdicts] == [(0, False), (1, True), (2, False)]
    assert json.loads(report.read_text())["malformed"] == 1


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("evaluate", "gate", "--pairs", "absent.jsonl"), 1, "cannot read"),
        (("evaluate", "near-miss"), 2, "--pairs or --problems"),
        (("evaluate", "near-miss", "--pairs", "absent.jsonl"), 1, "cannot read"),
        (("evaluate", "recurrence", "--problems", "absent.jsonl"), 1, "cannot read"),
        (("evaluate", "recurrence", "--problems", "absent.jsonl", "--preset", "none"), 2, "aime2025"),
    ],
)
def test_wrong_arguments_are_told_in_a_line(arguments: tuple[str, ...], code: int, says: str) -> None:
    done = _app(*arguments, code=code)
    assert says in done.stderr
    assert "Traceback" not in done.stderr
