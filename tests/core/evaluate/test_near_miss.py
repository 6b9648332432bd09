"""The near-miss experiment: selection and counting on plain rows, and the whole on the embedded model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from core.evaluate.last import keep_last, read_last
from core.evaluate.near_miss_report import arm_of, count_arm, report, tables, write_figures
from core.evaluate.pairs import Pair
from library.errors import FormatError
from ui import plots

if TYPE_CHECKING:
    from core.model import FrozenModel

BASE = "Carol collects 2 peanuts. Carol's father gives Carol 5 more. How many peanuts does Carol have?"
NEAR = "Carol collects 2 peanuts. Carol's father gives Carol 4 more. How many peanuts does Carol have?"


def arm(answer: str | None, expected: str, stored: str = "7", tokens: int = 3) -> dict[str, Any]:
    return {
        "answer": answer,
        "right": answer == expected,
        "stored_answer": answer == stored,
        "tokens": tokens,
        "prefill": 10,
    }


def row(role: str, verdict: str, expected: str, fresh: str, gated: str, similarity: float = 0.9) -> dict[str, Any]:
    arms = {
        "fresh": arm(fresh, expected, tokens=40),
        "replay": arm("7", expected),
        "asked": arm("7", expected),
        "gated": arm(gated, expected),
        "text_prefix": arm(fresh, expected, tokens=30),
    }
    return {
        "role": role,
        "kind": "numeric" if role == "negative" else "format",
        "verdict": verdict,
        "stored": "7",
        "expected": expected,
        "similarity": similarity,
        "arms": arms,
    }


ROWS = [
    row("negative", "TRANSFER", "6", fresh="6", gated="6"),
    row("negative", "REFUSE", "9", fresh="8", gated="8", similarity=0.5),
    row("negative", "GRAFT", "3", fresh="3", gated="7"),
    row("positive", "GRAFT", "7", fresh="8", gated="7"),
]


@pytest.mark.parametrize(
    ("name", "wrong", "copied", "tokens"),
    [("fresh", 1, 0, 40.0), ("replay", 3, 3, 3.0), ("gated", 2, 1, 3.0), ("answer_cache", 3, 2, 40 / 3)],
)
def test_wrong_and_copied_answers_of_near_misses(name: str, wrong: int, copied: int, tokens: float) -> None:
    counts = count_arm([r for r in ROWS if r["role"] == "negative"], name)
    assert (counts.wrong.hits, counts.wrong.n, counts.copied.hits, counts.copied.n) == (wrong, 3, copied, 3)
    assert counts.tokens == pytest.approx(tokens)


def test_the_stored_answer_is_no_copy_where_it_is_right() -> None:
    counts = count_arm([r for r in ROWS if r["role"] == "positive"], "replay")
    assert (counts.wrong.hits, counts.copied.n) == (0, 0)


def test_an_unknown_right_answer_is_not_counted_as_wrong() -> None:
    unknown = {**ROWS[0], "arms": {**ROWS[0]["arms"], "fresh": {**arm("6", "6"), "right": None}}}
    assert count_arm([unknown, ROWS[1]], "fresh").wrong.n == 1


def test_the_answer_cache_serves_from_its_threshold_on() -> None:
    assert arm_of(ROWS[0], "answer_cache", 0.9)["answer"] == "7"
    assert arm_of(ROWS[0], "answer_cache", 0.91)["answer"] == "6"


def test_the_report_tells_what_was_served_as_truth(tmp_path: Path) -> None:
    bases = [{"artifact": "a", "why": ""}, {"artifact": None, "why": "no attempt was right"}]
    found = report(bases, ROWS, {"model": "m"})
    assert json.loads(json.dumps(found)) == found
    assert (found["bases"], found["bases_solved"], found["n"]) == (2, 1, 4)
    assert found["gate"]["near_misses"]["wrong_served_as_truth"]["hits"] == 1
    assert found["gate"]["near_misses"]["transfer"]["share"]["hits"] == 1
    assert found["gate"]["restatements"]["wrong_served_as_truth"]["hits"] == 0
    assert "Wrong answers served as truth: 1/3" in tables(ROWS)
    assert "| numeric | 3 | 1/3 | 3/3 | 3/3 | 2/3 | 1 / 1 / 1 |" in tables(ROWS)
    assert len(write_figures(tmp_path, ROWS, "m")) == 2


def test_only_labelled_pairs_with_a_base_answer_are_used() -> None:
    from core.evaluate.near_miss import select

    pairs = [
        Pair(0, "b", "v", role="negative", base_answer="1", dataset="x"),
        Pair(1, "b", "v", role="ambiguous", base_answer="1", dataset="x"),
        Pair(2, "b", "v", role="positive", base_answer="", dataset="x"),
        Pair(3, "", "", malformed="not JSON"),
        Pair(4, "b", "v", role="positive", base_answer="1", dataset="y"),
        Pair(5, "b", "v", role="positive", base_answer="1", dataset="x"),
    ]
    assert [pair.index for pair in select(pairs)] == [0, 4, 5]
    assert [pair.index for pair in select(pairs, limit=2)] == [0, 4]
    assert [pair.index for pair in select(pairs, datasets=["x"], limit=2)] == [0, 5]


def test_similarity_is_one_for_the_same_words() -> None:
    from core.evaluate.near_miss import similarity

    assert similarity("How many apples?", "how many APPLES") == pytest.approx(1.0)
    assert similarity("one", "two") == 0.0
    assert similarity("", "two") == 0.0


def test_batched_rows_are_what_a_run_of_their_own_gives(model: FrozenModel) -> None:
    from core.evaluate.batched import complete, write
    from core.solve import Plan, prefill, solve

    problems = (BASE, NEAR, "There are 8 oranges. 8 oranges more are added. How many are there in total?")
    prompts = [model.prompt_ids(problem) for problem in problems]
    rows = write(model, prompts, 40, batch=8)
    for prompt, found in zip(prompts, rows, strict=True):
        (alone,) = solve(model, prompt, Plan(max_tokens=40))
        assert (found.text, found.answer, found.tokens) == (alone.text, alone.answer, alone.decoded)

    from core.cache import new_cache

    cache = new_cache(model.config, room=1024)
    prefill(model, cache, prompts[0])
    before = int(cache.get_seq_length())
    cue = model.tokenizer.encode("The final answer is \\boxed{", add_special_tokens=False)
    turns = [cue, model.next_turn_ids(NEAR) + cue]
    together = complete(model, turns, batch=8, cache=cache)
    apart = [complete(model, [turn], batch=8, cache=cache)[0] for turn in turns]
    assert [one.answer for one in together] == [one.answer for one in apart]
    assert cache.get_seq_length() == before  # left as it was


def test_the_whole_experiment_and_its_continuation(model: FrozenModel, tmp_path: Path) -> None:
    from core.evaluate import near_miss
    from core.evaluate.once import RULE
    from core.solve import Plan
    from library.errors import UsageError
    from library.store import Library

    pairs = [
        Pair(0, BASE, NEAR, "numeric", "t", "negative", "c", "7", "6"),
        Pair(1, BASE, BASE.replace(" ", "  "), "format", "t", "positive", "c", "7", "7"),
        Pair(2, BASE, BASE.replace("peanuts", "nuts"), "entity", "t", "negative", "c", "7", "None"),
    ]
    plan = Plan(max_tokens=64, temperature=0.7, top_p=0.95, attempts=8, batch=8)
    said: list[str] = []
    set_up = near_miss.Experiment(plan)
    bases, variants = near_miss.run(model, pairs[:2], set_up, tmp_path, source_digest="d", say=said.append)
    assert [base["artifact"] is not None for base in bases] == [True]
    miss, same = variants
    assert miss["arms"]["replay"]["stored_answer"] is True
    assert miss["arms"]["replay"]["right"] is False
    assert miss["verdict"] != "GRAFT"
    assert (same["verdict"], same["arms"]["gated"]["right"]) == ("GRAFT", True)
    assert said
    with Library.open(tmp_path / "library", create=False) as library:
        (artifact,) = library.artifacts()
        assert artifact.reviewer == RULE
        attempt = library.attempt(artifact.attempt_id or "")
        assert "by rule" in library.decisions(attempt.id)[-1].reason

    lines = (tmp_path / "near-miss.jsonl").read_text().splitlines()
    again = near_miss.run(model, pairs, set_up, tmp_path, source_digest="d")
    assert (again[0], again[1][:2]) == (bases, variants)
    assert (tmp_path / "near-miss.jsonl").read_text().splitlines()[: len(lines)] == lines
    assert again[1][2]["arms"]["replay"]["right"] is False  # there is no answer, and one was given
    with pytest.raises(UsageError, match="no gate"):
        near_miss.run(model, pairs, near_miss.Experiment(plan, near_miss.Policy.OFF), tmp_path, source_digest="d")


def test_the_newest_report_is_kept_beside_the_library_and_drawn(tmp_path: Path) -> None:
    library = tmp_path / "library"
    assert read_last(library) is None
    assert plots.experiment(read_last(library)).rows == ()
    found = report([{"artifact": "x", "why": ""}], ROWS, {"model": "tiny", "policy": "edits"})
    kept = keep_last(library, found, "2026-01-02T00:00:00Z")
    assert kept.parent == tmp_path
    assert "variants" not in kept.read_text()
    table = plots.experiment(read_last(library))
    wrong = {row[0]: row[2:4] for row in table.rows if row[1] == "near-misses: wrong"}
    assert wrong["replay"] == (3, 3)
    assert wrong["gated"] == (2, 3)
    drawn = {trace.name: list(trace.y) for trace in plots.figure(table).data}
    assert drawn["near-misses: copied, n = 3"][1] == 100.0
    assert drawn["restatements: wrong, n = 1"][0] == 100.0
    assert all(e >= 0 for trace in plots.figure(table).data for e in (*trace.error_y.array, *trace.error_y.arrayminus))


@pytest.mark.parametrize("text", ["", "[]", '{"experiment": "recurrence"}', "\ud800"])
def test_another_file_in_its_place_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "near-miss.json").write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(FormatError, match=r"near-miss\.json"):
        read_last(tmp_path / "library")
