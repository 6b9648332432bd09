"""Shares, the resumable journal, problems files, JSON reports and figures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.evaluate.made import only_operation, pairs_of
from core.evaluate.report import Bars, Journal, Problem, markdown, read_problems, share, write_amounts, write_bars
from core.evaluate.report import write_json as write_report
from library.errors import FormatError, NotFound, NotWritable, UsageError


def test_a_share_has_both_intervals_and_words() -> None:
    found = share(3, 8)
    assert found.share == 0.375
    assert found.exact.low < found.wilson.low < 0.375 < found.wilson.high < found.exact.high
    assert found.words() == "3/8 (38 %, 9 to 76 %)"
    assert share(0, 0).share is None
    assert share(0, 0).words() == "none"


def test_a_journal_continues_where_it_was(tmp_path: Path) -> None:
    path = tmp_path / "state" / "run.jsonl"
    with Journal(path, {"model": "m", "k": 8}) as journal:
        journal.add("1", {"right": True})
        assert "1" in journal
    with Journal(path, {"model": "m", "k": 8}) as journal:
        assert journal.get("1") == {"key": "1", "right": True}
        assert journal.get("2") is None
        journal.add("2", {"right": False})
    assert [json.loads(line).get("key") for line in path.read_text().splitlines()] == [None, "1", "2"]


@pytest.mark.parametrize("cut", [1, 5, 12])
def test_a_line_cut_short_by_a_kill_is_dropped_and_written_again(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "run.jsonl"
    with Journal(path, {"k": 1}) as journal:
        journal.add("1", {"right": True})
        journal.add("2", {"right": True})
    path.write_bytes(path.read_bytes()[:-cut])
    with Journal(path, {"k": 1}) as journal:
        assert set(journal.rows) == {"1"}
        journal.add("2", {"right": False})
    with Journal(path, {"k": 1}) as journal:
        assert journal.rows["2"]["right"] is False


def test_a_header_cut_short_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b'{"k"')
    with Journal(path, {"k": 1}) as journal:
        journal.add("1", {})
    assert len(path.read_text().splitlines()) == 2


def test_a_journal_of_other_settings_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    Journal(path, {"model": "m", "k": 8}).close()
    with pytest.raises(UsageError, match=r"k is 4.*--state"):
        Journal(path, {"model": "m", "k": 4})


@pytest.mark.parametrize("text", ["no json\n", '{"k": 1}\n[1]\n', '{"k": 1}\n{"no": "key"}\n'])
def test_what_is_no_journal_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(text)
    with pytest.raises(FormatError):
        Journal(path, {"k": 1})
    assert path.read_text() == text


def test_problems_are_read_up_to_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text('{"question": "q1", "answer": 4}\n\n{"id": "b", "question": "q2", "answer": "5"}\nbroken\n')
    assert list(read_problems(path, 2)) == [Problem("1", "q1", "4"), Problem("b", "q2", "5")]
    with pytest.raises(FormatError, match="line 4"):
        list(read_problems(path))
    with pytest.raises(NotFound):
        list(read_problems(tmp_path / "absent"))


def test_a_report_is_written_whole(tmp_path: Path) -> None:
    write_report(tmp_path / "out" / "r.json", {"n": 1, "text": "é"})
    assert json.loads((tmp_path / "out" / "r.json").read_text()) == {"n": 1, "text": "é"}
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["r.json"]
    (tmp_path / "file").write_text("")
    with pytest.raises(NotWritable):
        write_report(tmp_path / "file" / "r.json", {})


def test_figures_stand_alone(tmp_path: Path) -> None:
    bars = Bars("t <b>", ("fresh", "none"), (("wrong", (share(1, 4), share(0, 0))),))
    for path in (write_bars(tmp_path, "bars", bars), write_amounts(tmp_path, "amounts", "t", "tokens", {"a": 10.0})):
        page = path.read_text(encoding="utf-8")
        assert "Plotly.newPlot" in page
        assert "<script src=" not in page  # the library is inside: no network needed


def test_a_table_is_markdown() -> None:
    assert markdown(("a", "b"), [(1, "x")]) == "| a | b |\n|---|---|\n| 1 | x |"


@pytest.mark.parametrize(
    ("question", "answer", "new"),
    [
        ("Ann has 7 caps and gets 5 more. How many?", "12", (3, 4, 7)),
        ("Ann has 9 caps and loses 5. How many are left?", "4", (6, 4, 2)),
        ("There are 3 boxes of 8 caps. How many?", "24", (3, 4, 12)),
        ("24 caps are shared by 8 children. How many each?", "3", (24, 6, 4)),
        ("24 caps are shared by 8 children. How many each?", "3", (24, 7, None)),
    ],
)
def test_the_operation_of_a_problem_is_found(question: str, answer: str, new: tuple[int, int, int | None]) -> None:
    operation = only_operation(Problem("p", question, answer))
    assert operation is not None
    assert operation(new[0], new[1]) == new[2]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Ann has 2 caps and gets 2 more. How many?", "4"),  # 2 + 2 and 2 * 2
        ("Ann has 7 caps, gets 5, and 3 more. How many?", "15"),
        ("Ann has 7 caps and gets 5 more. How many?", "13"),
        ("Ann has 7.5 caps and gets 5 more. How many?", "12.5"),
    ],
)
def test_a_problem_whose_operation_is_not_sure_makes_no_pairs(question: str, answer: str) -> None:
    assert list(pairs_of([Problem("p", question, answer)])) == []


def test_made_near_misses_have_other_answers_and_restatements_the_same() -> None:
    problem = Problem("p", "Ann has 17 caps. She gets 5 more in total. How many caps does Ann have?", "22")
    pairs = list(pairs_of([problem]))
    assert pairs == list(pairs_of([problem]))
    misses = [pair for pair in pairs if pair.role == "negative"]
    assert len(misses) == 3
    assert len({pair.variant_answer for pair in misses} - {"22"}) == 3
    for pair in misses:
        first, second = (int(word) for word in pair.variant.replace(".", " ").split() if word.isdigit())
        assert first + second == int(pair.variant_answer)
    same = [pair for pair in pairs if pair.role == "positive"]
    assert same
    assert all(pair.variant != pair.base and pair.variant_answer == "22" for pair in same)
