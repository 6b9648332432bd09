"""Which texts a question is put to."""

from __future__ import annotations

import pytest

from core.routing import coverage, route, terms, words

TEXTS = [
    "The ferry left at dawn. Nobody spoke of the vault.",
    "Halvorsen kept the access code of his vault in a blue book.",
    "A code of conduct hung by the door. Further on, much later in the day, access to the roof was closed.",
    "Nothing of note happened in the garden.",
    "The mayor opened the market.",
]


def test_the_text_that_holds_the_words_comes_first() -> None:
    found = route("What is the access code of the Halvorsen vault?", TEXTS, 2)
    assert [hit.place for hit in found.hits] == [1, 2]
    assert found.texts == len(TEXTS)


def test_texts_without_any_word_are_no_hits() -> None:
    assert [hit.place for hit in route("Who opened the market?", TEXTS, 5).hits] == [4]
    assert route("What about zeppelins?", TEXTS, 5).hits == ()


@pytest.mark.parametrize(("neighbours", "expected"), [(0, ()), (1, (2, 0)), (2, (2, 0, 3)), (9, (2, 0, 3, 4))], ids=str)
def test_neighbours_of_the_best_come_nearest_first(neighbours: int, expected: tuple[int, ...]) -> None:
    assert route("Halvorsen", TEXTS, 1, neighbours=neighbours).neighbours == expected


def test_neighbours_never_repeat_a_hit() -> None:
    found = route("access code vault", TEXTS, 3, neighbours=2)
    assert not {hit.place for hit in found.hits} & set(found.neighbours)


def test_words_that_stand_together_beat_words_far_apart() -> None:
    apart = "The code was long. " + "It rained on the hills for days and days. " * 12 + "Moreau slept. " * 6
    near = "It rained on the hills for days and days. " * 16 + "The code of Moreau was kept. "
    texts = [apart, near, "rain", "hills"]
    assert route("code Moreau", texts, 1, nearness=False).hits[0].place == 0
    assert route("code Moreau", texts, 1).hits[0].place == 1


def test_equal_scores_keep_the_order_of_the_text() -> None:
    assert [hit.place for hit in route("lamp", ["a lamp", "a lamp", "a lamp"], 2).hits] == [0, 1]


def test_no_texts_and_empty_texts_do_no_harm() -> None:
    assert route("lamp", [], 3).hits == ()
    assert route("lamp", ["", "", ""], 3).hits == ()


def test_a_question_of_stop_words_only_still_has_terms() -> None:
    assert terms("Who are you?") == ("who", "are", "you")
    assert terms("Who opened the vaults?") == ("opened", "vault")
    assert words("Boxes' glass: 12,5") == ["boxe", "glass", "12", "5"]
    assert words("2,048 of 1,234,567.5 and 3.5; A1,234 in 1999.") == (
        ["2048", "of", "1234567.5", "and", "3.5", "a1", "234", "in", "1999"]
    )


def test_coverage_is_a_share_by_weight() -> None:
    weights = {"vault": 3.0, "code": 1.0}
    assert coverage(weights, "The vaults of old") == 0.75
    assert coverage(weights, "") == 0.0
    assert coverage({}, "vault") == 0.0
