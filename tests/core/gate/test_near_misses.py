"""Near-misses written by hand: none is a GRAFT, alone or under a rewording of the rest; rewordings of the same are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.gate import Policy, Verdict, judge

# Changes in words that keep the meaning: on top of a near-miss they hide nothing.
REWORDINGS = (
    ("How many", "Determine how many"),
    ("How much", "Calculate how much"),
    ("What is", "Determine"),
    ("There are", "We have"),
    ("Find", "Determine"),
    ("has", "owns"),
    ("sold", "was able to sell"),
    ("holds", "contains"),
    ("buys", "purchases"),
    ("travels", "covers"),
    ("needs", "requires"),
    ("costs", "is priced at"),
    ("leaves", "departs"),
    ("walked", "went"),
)


def pairs() -> Iterator[tuple[str, str]]:
    """(problem, near-miss) of the table. Raises `ValueError` for a change that has no place in its problem."""
    base = ""
    for line in Path(__file__).with_name("near_misses.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            base = line[2:]
        elif line.startswith("> "):
            old, _, new = line[2:].partition(" =>")
            changed = base.replace(old, new.removeprefix(" "), 1)
            if changed == base:
                raise ValueError(f"nothing to change: {line}")
            yield base, changed


def reworded(text: str) -> str:
    for old, new in REWORDINGS:
        text = text.replace(old, new, 1)
    return text


def grafts(tried: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs that `edits` takes for one problem, in either direction."""
    both = [*tried, *((b, a) for a, b in tried)]
    return [(a, b) for a, b in both if judge(a, b, Policy.EDITS).verdict is Verdict.GRAFT]


def test_no_near_miss_is_a_graft() -> None:
    tried = list(pairs())
    assert len(tried) >= 350
    wrong = grafts(tried)
    assert not wrong, wrong


def reworded_pairs() -> Iterator[tuple[str, str]]:
    """(problem, another problem in other words) of reworded_misses.txt."""
    base = ""
    for line in Path(__file__).with_name("reworded_misses.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            base = line[2:]
        elif line.startswith("~ "):
            yield base, line[2:]


def test_another_problem_in_other_words_is_no_graft() -> None:
    tried = list(reworded_pairs())
    assert len(tried) >= 90
    wrong = grafts(tried)
    assert not wrong, wrong


def rewordings(mark: str) -> Iterator[tuple[str, str]]:
    """(problem, text in other words) of rewordings.txt: `+` the same problem, `~` another."""
    base = ""
    for line in Path(__file__).with_name("rewordings.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("= "):
            base = line[2:]
        elif line.startswith(f"{mark} "):
            yield base, line[2:]


def test_the_same_problem_in_other_words_is_a_graft_and_another_is_not() -> None:
    same, another = list(rewordings("+")), list(rewordings("~"))
    assert len(same) >= 10
    assert len(another) >= 15
    assert len(grafts(same)) == 2 * len(same)
    wrong = grafts(another)
    assert not wrong, wrong


def test_no_rewording_hides_a_near_miss() -> None:
    wrong = [(a, b) for a, b in pairs() if judge(a, reworded(b), Policy.EDITS).verdict is Verdict.GRAFT]
    assert not wrong, wrong
