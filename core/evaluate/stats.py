"""Confidence intervals of a share: k successes out of n independent trials.

Plain `math`, so that the gate's calibration and every experiment may import it at no cost. Knows nothing of
models, problems or artifacts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

_EPSILON = 1e-15
_TINY = 1e-300
_BISECTIONS = 200  # more halvings than a double has bits: it stops by itself when the midpoint no longer moves


@dataclass(frozen=True)
class Interval:
    """A two-sided interval of a share, `0 <= low <= high <= 1`."""

    low: float
    high: float


def wilson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval (Wilson 1927), good coverage on average, also for small `trials`.

    No trials tell nothing: [0, 1]. Raises `ValueError` for counts or a confidence that cannot be.
    """
    _check(successes, trials, confidence)
    if trials == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf(1 - (1 - confidence) / 2)
    share = successes / trials
    scale = 1 + z * z / trials
    centre = (share + z * z / (2 * trials)) / scale
    half = z / scale * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    # At the ends the formula is exactly 0 or 1 on paper and off by a rounding in floats.
    low = 0.0 if successes == 0 else max(0.0, centre - half)
    high = 1.0 if successes == trials else min(1.0, centre + half)
    return Interval(low, high)


def clopper_pearson(successes: int, trials: int, confidence: float = 0.95) -> Interval:
    """The exact interval (Clopper and Pearson 1934): its coverage is never below `confidence`.

    No trials tell nothing: [0, 1]. Raises `ValueError` for counts or a confidence that cannot be.
    """
    _check(successes, trials, confidence)
    tail = (1 - confidence) / 2
    low = _lower(successes, trials, tail)
    high = 1 - _lower(trials - successes, trials, tail)
    return Interval(low, high)


def upper_bound(successes: int, trials: int, confidence: float = 0.95) -> float:
    """The one-sided exact upper bound: with 0 of 300 at 95 % it is 0.00994, the "rule of three".

    No trials tell nothing: 1. Raises `ValueError` for counts or a confidence that cannot be.
    """
    _check(successes, trials, confidence)
    return 1 - _lower(trials - successes, trials, 1 - confidence)


def binomial_tail(successes: int, trials: int, share: float) -> float:
    """P(X >= successes) for X ~ Binomial(trials, share), through the incomplete beta function."""
    if not 0 <= share <= 1:
        raise ValueError(f"a share lies in [0, 1], not {share}")
    if trials < 0:
        raise ValueError(f"trials cannot be negative: {trials}")
    if successes <= 0:
        return 1.0
    if successes > trials:
        return 0.0
    return incomplete_beta(successes, trials - successes + 1, share)


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), for a, b > 0 and 0 <= x <= 1.

    The continued fraction of DLMF 8.17.22, evaluated by Lentz's method on the side where it converges fast.
    Raises `ValueError` outside of that domain.
    """
    if a <= 0 or b <= 0 or not 0 <= x <= 1:
        raise ValueError(f"I_x(a, b) needs a, b > 0 and x in [0, 1]; got a={a}, b={b}, x={x}")
    if x in (0, 1):
        return float(x)
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_fraction(b, a, 1 - x)
    return _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """I_x(a, b) by its continued fraction, without the choice of side; slow for x well above a / (a + b)."""
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    c, d = 1.0, 1 / _away_from_zero(1 - (a + b) * x / (a + 1))
    fraction = d
    # About sqrt(max(a, b)) rounds are enough; the margin covers the edge between the two sides.
    for m in range(1, 1000 + int(20 * math.sqrt(max(a, b)))):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / _away_from_zero(1 + term * d)
            c = _away_from_zero(1 + term / c)
            fraction *= c * d
        if abs(c * d - 1) < _EPSILON:
            break
    return math.exp(log_front) * fraction / a


def _away_from_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY


def _lower(successes: int, trials: int, tail: float) -> float:
    """The share at which `successes` or more have probability `tail`; the tail grows with the share."""
    if successes == 0:
        return 0.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if binomial_tail(successes, trials, middle) < tail:
            low = middle
        else:
            high = middle
    return low


def _check(successes: int, trials: int, confidence: float) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} is not a count of successes")
    if not 0 < confidence < 1:
        raise ValueError(f"a confidence lies between 0 and 1, not {confidence}")
