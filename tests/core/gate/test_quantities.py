from __future__ import annotations

from fractions import Fraction

import pytest

from core.gate.canonical import tokens_of
from core.gate.quantities import quantities


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two hundred and twenty-five cats", [("225", "count")]),
        ("twenty five dogs", [("25", "count")]),
        ("one thousand two hundred", [("1200", "count")]),
        ("3/4 of it", [("3/4", "part")]),
        ("three-quarters of it", [("3/4", "part")]),
        ("three quarters of it", [("3/4", "part")]),
        ("49 quarters in his bank", [("49", "count")]),
        ("a quarter of it", [("1/4", "part")]),
        (r"$3\frac12$ cups", [("7/2", "count")]),
        ("3 1/2 cups", [("7/2", "count")]),
        ("one and a half cups", [("3/2", "count")]),
        ("50% of 12", [("1/2", "percent"), ("12", "count")]),
        ("50 percent", [("1/2", "percent")]),
        ("twice as many", [("2", "times")]),
        ("three times as many", [("3", "times")]),
        ("three times a week", [("3", "count")]),
        ("twice a week", [("2", "count")]),
        ("two dozen eggs", [("24", "count")]),
        ("a dozen eggs", [("12", "count")]),
        ("$1.5 million", [("1500000", "count")]),
        ("the third house", [("3", "ordinal")]),
        ("the 10th house", [("10", "ordinal")]),
        ("half of them", [("1/2", "part")]),
        (r"$1/2x$", [("1", "count"), ("2", "count")]),
        (r"$\frac{1}{2}x$", [("1/2", "part")]),
        ("no numbers here", []),
        ("9" * 100, []),
        ("1/0 of it", [("1", "count"), ("0", "count")]),
    ],
)
def test_values_and_forms(text: str, expected: list[tuple[str, str]]) -> None:
    assert [(str(q.value), q.form) for q in quantities(tokens_of(text))] == expected


def test_spans_cover_the_number() -> None:
    tokens = tokens_of("He ate two hundred and five figs.")
    (quantity,) = quantities(tokens)
    assert quantity.value == Fraction(205)
    assert " ".join(t.text for t in tokens[quantity.first : quantity.last]) == "two hundred and five"
