from __future__ import annotations

import re

import pytest

from tests.ui.hostile import TEXTS
from ui.render.prose import markdown

FORMULA = re.compile(r"\\\((.*?)\\\)|\\\[(.*?)\\\]", re.DOTALL)


@pytest.mark.parametrize("hostile", TEXTS)
def test_nothing_active_is_left(hostile: str) -> None:
    shown = markdown(hostile)
    outside = FORMULA.sub(" ", shown)
    assert "<" not in outside
    assert "](" not in outside
    assert not re.search(r"(?i)\b(https?|javascript|data|mailto|www)[:.]", outside)
    for match in FORMULA.finditer(shown):
        inside = match.group(1) or match.group(2)
        assert not re.search(r"\\(href|url|includegraphics|html|def|newcommand)", inside)
        assert not re.search(r"<[A-Za-z/!]", inside)


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("so \\(7+2=9\\).", "so \\(7+2=9\\)."),
        ("so $7+2=9$.", "so \\(7+2=9\\)."),
        ("$$x^2$$", "\\[x^2\\]"),
        ("\\[ a\n b \\]", "\\[a b\\]"),
        ("The answer is \\boxed{9}.", "The answer is \\(\\boxed{9}\\)."),
        ("\\boxed{\\frac{1}{2}}", "\\(\\boxed{\\frac{1}{2}}\\)"),
        ("\\frac{1}{2} cup", "\\(\\frac{1}{2}\\) cup"),
    ],
)
def test_formulas_are_kept(said: str, shown: str) -> None:
    assert markdown(said) == shown


@pytest.mark.parametrize(
    "said", ["He pays $5 and gets $3 back.", "$5-$3", "It costs $12.50.", "a $ b $ c", "from \\$5 to \\$7"]
)
def test_money_is_not_a_formula(said: str) -> None:
    assert "\\(" not in markdown(said)
    assert "&#36;" in markdown(said)


def test_emphasis_and_lists_are_kept() -> None:
    assert markdown("**so**\n- one\n- two") == "**so**  \n- one  \n- two"


def test_an_unfinished_formula_is_text() -> None:
    """A stream stops anywhere."""
    assert "\\(" not in markdown("so \\(7+")
    assert markdown("\\boxed{9") == "&#92;boxed&#123;9"


def test_a_long_text_is_cut_and_says_so() -> None:
    shown = markdown("a" * 100, limit=10)
    assert shown.startswith("a" * 10 + "\n\n*")


def test_headings_and_rules_do_not_shout() -> None:
    assert not re.search(r"(?m)^#", markdown("# BIG\nx\n===\n---"))
    assert not re.search(r"(?m)^(=+|-+)", markdown("# BIG\nx\n===\n---"))
