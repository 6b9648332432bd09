from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.evaluate.gate import GateReport, evaluate_gate
from core.evaluate.pairs import KINDS, generate_pairs, mutate, read_pairs
from core.gate import Policy, Verdict
from library.errors import NotFound, NotWritable

DATA = Path(__file__).parents[3].parent / "shared" / "data" / "near_miss" / "dev.jsonl"


def write(path: Path, rows: list[object]) -> Path:
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows), encoding="utf-8")
    return path


def row(base: str, variant: str, **more: str) -> dict[str, str]:
    return {"base_question": base, "variant_question": variant, **more}


def test_counts_bounds_and_verdict_lines(tmp_path: Path) -> None:
    rows: list[object] = [
        row("Find $x$.", "Find \\(x\\).", role="positive", dataset="d", kind="format"),
        row("Find $x$.", "Find $y$.", role="negative", dataset="d", kind="variable"),
        row("Take 3 of 9 figs.", "Take 4 of 9 figs.", role="negative", dataset="d", kind="number"),
        row("Find $x$.", "Find $x$.", role="negative", dataset="paramawps", kind="noise"),
        row("Find $x$.", "Find $z$."),
        "not json",
        "[1]",
        {"base_question": "only one"},
        {"base_question": 3, "variant_question": "x"},
        "",
        row("Find \ud800.", "Find it."),
    ]
    seen: list[int] = []
    out = tmp_path / "verdicts.jsonl"
    report = evaluate_gate(write(tmp_path / "pairs.jsonl", rows), Policy.STRICT, verdicts=out, progress=seen.append)
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert [line["index"] for line in lines] == list(range(len(rows)))
    assert [line["verdict"] for line in lines] == ["GRAFT", "REFUSE", "TRANSFER", "GRAFT"] + ["REFUSE"] * 7
    assert all(line["reasons"] and set(line) == {"index", "verdict", "reasons"} for line in lines)
    assert seen == list(range(1, len(rows) + 1))
    assert report.pairs == len(rows)
    assert report.malformed == 5
    assert (report.false_accepts.hits, report.false_accepts.pairs) == (0, 2)
    assert report.false_accepts.high == pytest.approx(0.8419, abs=1e-3)
    assert (report.coverage.hits, report.coverage.pairs) == (1, 1)
    assert [r.kind for r in report.noisy] == ["noise"]
    assert not (tmp_path / "verdicts.jsonl.part").exists()


def test_errors_are_named_with_their_reasons(tmp_path: Path) -> None:
    rows: list[object] = [
        row("Find $x$.", "Find $x$.", role="negative", dataset="d", kind="k"),
        row("Tom has 3 figs.", "Tom has three figs.", role="positive", dataset="d", kind="k"),
    ]
    path = write(tmp_path / "p.jsonl", rows)
    strict = evaluate_gate(path, Policy.STRICT)
    assert [(w.index, w.verdict) for w in strict.accepted_wrongly] == [(0, Verdict.GRAFT)]
    assert [(w.index, w.verdict) for w in strict.refused_wrongly] == [(1, Verdict.REFUSE)]
    assert dict(strict.refusal_reasons)["not_identical"] == 1
    assert evaluate_gate(path, Policy.EDITS).coverage.hits == 1
    value = json.loads(strict.to_json())
    assert value["false_accepts"]["hits"] == 1
    assert value["by_kind"][0]["graft_high"] == 1.0
    assert value["pairs_per_second"] > 0


def test_missing_and_unwritable_files(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        evaluate_gate(tmp_path / "none.jsonl", Policy.STRICT)
    path = write(tmp_path / "p.jsonl", [row("a", "b")])
    with pytest.raises(NotWritable):
        evaluate_gate(path, Policy.STRICT, verdicts=tmp_path / "no" / "folder.jsonl")


def test_an_empty_file_gives_an_empty_report(tmp_path: Path) -> None:
    report = evaluate_gate(write(tmp_path / "p.jsonl", []), Policy.EDITS)
    assert report.pairs == 0
    assert (report.false_accepts.low, report.false_accepts.high) == (0.0, 1.0)
    json.loads(report.to_json())


def test_made_pairs_are_deterministic_and_told_apart(tmp_path: Path) -> None:
    rows = generate_pairs(120, seed=5)
    assert rows == generate_pairs(120, seed=5)
    assert rows != generate_pairs(120, seed=6)
    assert {r["role"] for r in rows} == {"positive", "negative"}
    assert all(r["base_question"] != r["variant_question"] for r in rows)
    report = evaluate_gate(write(tmp_path / "made.jsonl", list(rows)), Policy.EDITS)
    assert report.false_accepts.hits == 0
    assert report.coverage.hits >= 0.9 * report.coverage.pairs


TEXT = "Tom gives Ann 3 of his 12 cm ribbons. What is the maximum total if $x \\le 5$ is real?"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_mutation_is_deterministic(kind: str) -> None:
    changed = mutate(TEXT, kind, 11)
    assert changed == mutate(TEXT, kind, 11)
    assert changed is None or changed != TEXT
    assert mutate("", kind, 1) is None


def test_an_unknown_mutation_raises() -> None:
    with pytest.raises(KeyError):
        mutate(TEXT, "nonsense", 0)


def test_read_pairs_keeps_the_file_s_order(tmp_path: Path) -> None:
    path = write(tmp_path / "p.jsonl", [row("a", "b", base_id="1"), "x", row("c", "d", base_answer="7")])
    pairs = list(read_pairs(path))
    assert [p.index for p in pairs] == [0, 1, 2]
    assert [bool(p.malformed) for p in pairs] == [False, True, False]
    assert (pairs[0].base_id, pairs[2].base_answer) == ("1", "7")


@pytest.fixture(scope="module")
def reports() -> dict[Policy, GateReport]:
    if not DATA.exists():
        pytest.skip("the evaluation data is not beside the repository")
    return {policy: evaluate_gate(DATA, policy) for policy in (Policy.STRICT, Policy.EDITS)}


def share(report: GateReport, dataset: str, kind: str) -> float:
    (found,) = [r for r in report.rows if (r.role, r.dataset, r.kind) == ("positive", dataset, kind)]
    return found.graft / found.pairs


def test_strict_on_the_development_pairs(reports: dict[Policy, GateReport]) -> None:
    report = reports[Policy.STRICT]
    assert report.false_accepts.hits == 0
    assert share(report, "format", "format_cross_source") >= 0.78
    assert share(report, "mawps", "near_duplicate") >= 0.98
    assert share(report, "gsmplus", "distractor") == 0.0
    assert share(report, "mgs", "entity_rename") == 0.0


def test_edits_on_the_development_pairs(reports: dict[Policy, GateReport]) -> None:
    report = reports[Policy.EDITS]
    assert report.false_accepts.hits <= 0.005 * report.false_accepts.pairs
    assert share(report, "gsmplus", "paraphrase") >= 0.70
    assert share(report, "format", "format_cross_source") >= 0.90
    assert share(report, "mawps", "near_duplicate") >= 0.90
    assert share(report, "gsmplus", "distractor") <= 0.02
    assert share(report, "mgs", "entity_rename") <= 0.02
    print(f"{report.pairs_per_second:.0f} pairs a second, false accepts at most {report.false_accepts.high:.3%}")
