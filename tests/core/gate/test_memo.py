from __future__ import annotations

import pytest

from core.gate.canonical import MAX_LENGTH, REMEMBERED, tokens_of
from core.gate.memo import memo
from core.gate.reading import read_problem


def test_results_are_kept_while_their_texts_fit_and_the_oldest_go_first() -> None:
    calls: list[str] = []

    @memo(10)
    def read(text: str) -> str:
        calls.append(text)
        return text.upper()

    for text in ("aaaa", "bbbb", "aaaa", "cccc", "aaaa", "bbbb"):
        assert read(text) == text.upper()
    assert calls == ["aaaa", "bbbb", "cccc", "bbbb"]  # b was the one least recently asked for when c came
    assert read.held == 8
    assert read("x" * 11) == "X" * 11  # longer than all that may be kept
    assert read.held == 8


def test_what_raises_is_not_kept() -> None:
    calls: list[str] = []

    @memo(10)
    def read(text: str) -> str:
        calls.append(text)
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            read("a")
    assert (calls, read.held) == (["a", "a"], 0)


def test_the_gate_keeps_no_more_than_its_bound_of_long_texts() -> None:
    assert REMEMBERED >= 2 * MAX_LENGTH  # a pair of the longest texts
    for number in range(2 * REMEMBERED // MAX_LENGTH):
        read_problem(f"{number} pears and " + "1 fig " * (MAX_LENGTH // 6 - 4))
    assert MAX_LENGTH < tokens_of.held <= REMEMBERED
    assert MAX_LENGTH < read_problem.held <= REMEMBERED
