"""One problem as many sites print it is one form; one sign changed in it is another, however it is printed."""

from __future__ import annotations

import random

import pytest

from core.gate import CANONICAL_VERSION, Policy, Verdict, canonical, judge
from library.digest import digest_bytes

from .typesetting import PROBLEMS, VARIANTS, changed


@pytest.mark.parametrize("name", VARIANTS)
def test_every_way_to_print_a_problem_is_one_form(name: str) -> None:
    printed = [(text, VARIANTS[name](text)) for text in PROBLEMS]
    assert any(text != other for text, other in printed), "the variant has no place in any problem"
    for text, other in printed:
        assert canonical(text) == canonical(other), other


def test_variants_on_top_of_each_other_are_one_form() -> None:
    rng = random.Random(11)
    names = sorted(set(VARIANTS) - {"number", "label", "bold label", "tags", "comma inside", "stars", "doubled"})
    for _ in range(150):
        text = other = PROBLEMS[rng.randrange(len(PROBLEMS))]
        applied = rng.sample(names, 2)
        for name in applied:
            other = VARIANTS[name](other)
        assert canonical(text) == canonical(other), (applied, other)


def test_one_sign_changed_is_never_a_graft() -> None:
    rng = random.Random(5)
    ways = list(VARIANTS.values())
    tried = 0
    for text in PROBLEMS:
        for other in changed(text):
            tried += 1
            printed = ways[rng.randrange(len(ways))](other)
            assert canonical(text) not in (canonical(other), canonical(printed)), other
            if tried % 4 == 0:
                assert judge(text, printed, Policy.EDITS).verdict is not Verdict.GRAFT, printed
    assert tried > 200


def test_edits_quote_the_text_as_it_came() -> None:
    stored, query = "Ann has <b>3</b> cats &amp; 4 dogs.", "Ann has 3 cats &amp; <i>5</i> dogs."
    edits = judge(stored, query, Policy.EDITS).edits
    assert [(e.stored, e.query) for e in edits] == [("4", "5")]
    assert all(stored[slice(*e.stored_span)] == e.stored and query[slice(*e.query_span)] == e.query for e in edits)


def test_other_forms_need_another_version() -> None:
    forms = "\n".join(canonical(text) for text in PROBLEMS)
    assert (CANONICAL_VERSION, str(digest_bytes(forms.encode()))[:23]) == (4, "blake3:75d0c0acf938f27b"), (
        "the rules changed: raise CANONICAL_VERSION, so that records with older keys are brought up to date"
    )
