from __future__ import annotations

from collections import Counter

import pytest
import torch

from core.sampling import choose, generator

LOGITS = torch.log(torch.tensor([[0.5, 0.3, 0.15, 0.05]]))


def draws(logits: torch.Tensor, temperature: float, top_p: float, count: int = 4000) -> Counter[int]:
    stream = generator(0, 0)
    return Counter(choose(logits, temperature, top_p, [stream])[0] for _ in range(count))


def test_zero_temperature_is_the_likeliest() -> None:
    rows = torch.tensor([[0.1, 3.0, 2.0], [5.0, 1.0, 1.0]])
    assert choose(rows, 0, 0.1, []) == [1, 0]


@pytest.mark.parametrize(
    ("top_p", "support"),
    [(0.01, {0}), (0.5, {0}), (0.51, {0, 1}), (0.79, {0, 1}), (0.94, {0, 1, 2}), (1.0, {0, 1, 2, 3})],
)
def test_the_nucleus_holds_the_token_that_crosses_the_mass(top_p: float, support: set[int]) -> None:
    assert set(draws(LOGITS, 1.0, top_p)) == support


@pytest.mark.parametrize(
    ("temperature", "top_p", "expected"),
    [(1.0, 1.0, [0.5, 0.3, 0.15, 0.05]), (1.0, 0.7, [0.625, 0.375, 0, 0]), (0.5, 1.0, [0.685, 0.247, 0.062, 0.007])],
)
def test_tokens_come_in_proportion(temperature: float, top_p: float, expected: list[float]) -> None:
    found = draws(LOGITS, temperature, top_p)
    for token, share in enumerate(expected):
        assert found[token] / 4000 == pytest.approx(share, abs=0.03)  # 4 standard deviations are 0.032


def test_the_order_of_the_vocabulary_does_not_matter() -> None:
    flipped = LOGITS.flip(-1)
    assert set(draws(flipped, 1.0, 0.6)) == {2, 3}


def test_a_flat_distribution_reaches_beyond_the_sorted_head() -> None:
    flat = torch.zeros(1, 5000)
    found = draws(flat, 1.0, 1.0, count=500)
    assert max(found.values()) < 10
    assert len(found) > 400


def test_a_row_draws_the_same_alone_and_among_others() -> None:
    torch.manual_seed(1)
    logits = torch.randn(3, 2000) * 3
    for _ in range(20):
        together = choose(logits, 0.8, 0.9, [generator(4, row) for row in range(3)])
        alone = [choose(logits[row : row + 1], 0.8, 0.9, [generator(4, row)])[0] for row in range(3)]
        assert together == alone


def test_streams_repeat_by_seed_and_differ_by_attempt() -> None:
    def numbers(seed: int, attempt: int) -> list[float]:
        return torch.rand(4, generator=generator(seed, attempt)).tolist()

    assert numbers(3, 1) == numbers(3, 1)
    assert len({tuple(numbers(seed, attempt)) for seed in range(3) for attempt in range(3)}) == 9


@pytest.mark.parametrize("seed", [-1, 0, 1 << 62, 1 << 70])
def test_any_seed_is_usable(seed: int) -> None:
    assert 0 <= float(torch.rand(1, generator=generator(seed, 255))) < 1


def test_half_precision_logits_are_widened_before_they_are_divided() -> None:
    wide = torch.full((1, 3000), -10.0)
    wide[0, 7] = 5.0
    assert draws(wide.bfloat16(), 1.0, 0.9, count=50) == {7: 50}
