from __future__ import annotations

import math

import pytest

from core.evaluate.stats import binomial_tail, clopper_pearson, incomplete_beta, upper_bound, wilson


@pytest.mark.parametrize(
    ("k", "n", "confidence", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3 (score without correction)
        (81, 263, 0.95, 0.2553, 0.3662),
        (15, 148, 0.95, 0.0624, 0.1605),
        (0, 20, 0.95, 0.0, 0.1611),
        (1, 29, 0.95, 0.0061, 0.1718),
    ],
)
def test_wilson_gives_published_values(k: int, n: int, confidence: float, low: float, high: float) -> None:
    found = wilson(k, n, confidence)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        # the same table, method 5 (Clopper-Pearson)
        (81, 263, 0.2527, 0.3676),
        (15, 148, 0.0578, 0.1617),
        (0, 20, 0.0, 0.1684),
        (1, 29, 0.0009, 0.1776),
    ],
)
def test_clopper_pearson_gives_published_values(k: int, n: int, low: float, high: float) -> None:
    found = clopper_pearson(k, n)
    assert found.low == pytest.approx(low, abs=5e-5)
    assert found.high == pytest.approx(high, abs=5e-5)


@pytest.mark.parametrize("n", [1, 7, 300, 10_000])
def test_ends_have_their_closed_form(n: int) -> None:
    assert clopper_pearson(0, n).low == 0
    assert clopper_pearson(n, n).high == 1
    assert clopper_pearson(0, n).high == pytest.approx(1 - 0.025 ** (1 / n), rel=1e-9)
    assert upper_bound(0, n) == pytest.approx(1 - 0.05 ** (1 / n), rel=1e-9)
    assert upper_bound(n, n) == 1


@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
def test_no_trials_tell_nothing(interval: object) -> None:
    found = interval(0, 0)  # type: ignore[operator]
    assert (found.low, found.high) == (0, 1)
    assert upper_bound(0, 0) == 1


@pytest.mark.parametrize("interval", [wilson, clopper_pearson])
@pytest.mark.parametrize("n", [1, 2, 5, 40])
def test_interval_holds_its_share_and_is_symmetric(interval: object, n: int) -> None:
    for k in range(n + 1):
        found = interval(k, n)  # type: ignore[operator]
        other = interval(n - k, n)  # type: ignore[operator]
        assert 0 <= found.low <= k / n <= found.high <= 1
        assert found.low == pytest.approx(1 - other.high, abs=1e-12)


@pytest.mark.parametrize("n", [1, 5, 12, 60])
@pytest.mark.parametrize("share", [0.001, 0.2, 0.5, 0.93])
def test_tail_equals_the_sum(n: int, share: float) -> None:
    for k in range(n + 2):
        total = sum(math.comb(n, i) * share**i * (1 - share) ** (n - i) for i in range(k, n + 1))
        assert binomial_tail(k, n, share) == pytest.approx(total, rel=1e-9, abs=1e-13)


def test_clopper_pearson_covers() -> None:
    """Of all outcomes at a true share, those whose interval misses it weigh at most 5 %."""
    n = 30
    intervals = [clopper_pearson(k, n) for k in range(n + 1)]
    for share in (0.01, 0.1, 0.37, 0.5, 0.9):
        missed = sum(
            math.comb(n, k) * share**k * (1 - share) ** (n - k)
            for k, found in enumerate(intervals)
            if not found.low <= share <= found.high
        )
        assert missed <= 0.05


def test_large_counts_end() -> None:
    found = clopper_pearson(400_000, 1_000_000)
    assert found.low == pytest.approx(0.39904, abs=2e-5)
    assert found.high == pytest.approx(0.40096, abs=2e-5)


@pytest.mark.parametrize(("k", "n", "confidence"), [(-1, 5, 0.95), (6, 5, 0.95), (1, 5, 0.0), (1, 5, 1.0)])
def test_impossible_counts_raise(k: int, n: int, confidence: float) -> None:
    for function in (wilson, clopper_pearson, upper_bound):
        with pytest.raises(ValueError, match=r"not a count|lies between"):
            function(k, n, confidence)


@pytest.mark.parametrize(("a", "b", "x"), [(0, 1, 0.5), (1, 0, 0.5), (1, 1, -0.1), (1, 1, 1.1)])
def test_beta_outside_its_domain_raises(a: float, b: float, x: float) -> None:
    with pytest.raises(ValueError, match="I_x"):
        incomplete_beta(a, b, x)
