"""Rates with their uncertainty, and whether a difference is more than noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

_EXACT = 1000
"""Up to so many flips whole numbers are summed; they would grow without bound."""
_Z95 = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Rate:
    """A pass rate with its 95 % Wilson score interval; all None when nothing was judged."""

    passed: int
    judged: int
    rate: float | None
    low: float | None
    high: float | None


def wilson(passed: int, judged: int) -> Rate:
    """The pass rate of `judged` verdicts with its interval (Wilson 1927, as in statsmodels)."""
    if judged == 0:
        return Rate(0, 0, None, None, None)
    share, square = passed / judged, _Z95**2
    middle = (share + square / (2 * judged)) / (1 + square / judged)
    half = (
        _Z95
        / (1 + square / judged)
        * math.sqrt(share * (1 - share) / judged + square / (4 * judged**2))
    )
    return Rate(passed, judged, share, max(0.0, middle - half), min(1.0, middle + half))


def mcnemar(broke: int, fixed: int) -> float:
    """The exact two-sided p-value of McNemar's test on paired verdicts.

    How likely a split at least as uneven is when breaking and fixing are equally likely.
    """
    flips, fewer = broke + fixed, min(broke, fixed)
    if broke == fixed:
        return 1.0
    if flips <= _EXACT:
        tail = term = 1
        for count in range(1, fewer + 1):
            term = term * (flips - count + 1) // count
            tail += term
        return min(1.0, tail / (1 << (flips - 1)))
    # The largest term by its logarithm, the others by their ratio to it.
    largest = math.lgamma(flips + 1) - math.lgamma(fewer + 1) - math.lgamma(flips - fewer + 1)
    share = total = 1.0
    for count in range(fewer, 0, -1):
        share *= count / (flips - count + 1)
        total += share
        if share < total * 1e-17:
            break
    return min(1.0, math.exp(largest + math.log(total) + (1 - flips) * math.log(2)))
