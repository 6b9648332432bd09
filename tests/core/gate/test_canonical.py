from __future__ import annotations

import re

import pytest

from core.gate import CANONICAL_VERSION, canonical, canonical_key
from core.gate.canonical import MAX_LENGTH, tokens_of
from core.gate.latex import LatexError
from tests.core.gate.cases import DIFFER, MERGE, RESTATE


@pytest.mark.parametrize(("left", "right"), MERGE)
def test_what_prints_alike_has_one_form(left: str, right: str) -> None:
    assert canonical(left) == canonical(right)
    assert canonical_key(left) == canonical_key(right)


@pytest.mark.parametrize(("left", "right"), DIFFER)
def test_what_differs_keeps_two_forms(left: str, right: str) -> None:
    assert canonical(left) != canonical(right)
    assert canonical_key(left) != canonical_key(right)


@pytest.mark.parametrize(("left", "right"), RESTATE)
def test_other_words_are_another_form(left: str, right: str) -> None:
    assert canonical(left) != canonical(right)


@pytest.mark.parametrize("text", [t for pair in (*MERGE, *DIFFER, *RESTATE) for t in pair])
def test_offsets_point_into_the_original(text: str) -> None:
    try:
        tokens = tokens_of(text)
    except LatexError:
        assert "\x00raw" in canonical(text)  # it speaks of its own print
        return
    for token in tokens:
        assert 0 <= token.start <= token.end <= len(text)
        if token.kind == "word" and not token.math and "\\" not in text and not token.text[0].isdigit():
            assert token.text.replace("'", "") in text.replace("’", "").replace("'", "") or not token.text.isascii()


def test_key_names_its_version_and_algorithm() -> None:
    assert re.fullmatch(r"blake3:[0-9a-f]{64}", canonical_key("Find x."))
    assert CANONICAL_VERSION >= 1


@pytest.mark.parametrize(
    "text",
    [
        "an open \\( formula",
        "a stray } brace",
        "\\begin{itemize} never closed",
        "\\end{center}",
        "$" * 7,
        "{" * 500 + "}" * 500,
        "\\frac{\\frac{" * 200,
        "\\left( \\right",
        "x^",
        "$x^$",
        "$_$",
        "\\",
        "",
        " \n\t",
        "\x00",
        "a" * (MAX_LENGTH + 1),
        "\ud800",
        "\ue000 5 \ue001",
    ],
)
def test_any_text_has_a_form_that_is_its_own(text: str) -> None:
    form = canonical(text)
    assert form == canonical(text)
    assert canonical_key(text).startswith("blake3:")
    assert canonical(text + " 7") != form


def test_unreadable_text_equals_only_itself() -> None:
    broken = "Find \\( x + 1"
    with pytest.raises(LatexError):
        tokens_of(broken)
    assert canonical(broken) == canonical(broken)
    assert canonical(broken) != canonical("Find \\( x  + 1")


def test_a_full_stop_is_dropped_only_where_a_capital_shows_it() -> None:
    assert canonical("Tom has 9 balloons. Sara has 8.") == canonical("Tom has 9 balloons Sara has 8.")
    assert canonical("He has 9. Sara has 8.") != canonical("He has 9 Sara has 8.")
    assert canonical("He met Tom. Sara left.") != canonical("He met Tom Sara left.")


@pytest.mark.parametrize(
    ("text", "money"),
    [
        ("Bob has $10 and Ann has $5.", 2),
        ("It costs $0.25, $0.50 or $1.", 3),
        ("He paid $ 69 out . Then $ 26,935 was left .", 2),
        ("There are $25$ chips and $25$ cells.", 0),
        ("Let $x$ cost \\$5 and $y$ cost \\$6.", 2),
        ("Tickets at $5-$7 each.", 2),
        ("If $3x+1=7$, find $x$.", 0),
        ("Pay $5 (plus $2 tax).", 2),
        ("The $ x $ and the $ y $ axis.", 0),
    ],
)
def test_dollars_of_money_and_of_formulas(text: str, money: int) -> None:
    assert canonical(text).split().count("\\$") == money
