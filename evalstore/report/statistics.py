"""Rates with their uncertainty, and whether a difference is more than noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import NormalDist

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
    flips = broke + fixed
    if flips == 0:
        return 1.0
    term = tail = 1.0
    for count in range(1, min(broke, fixed) + 1):
        term *= (flips - count + 1) / count
        tail += term
    # tail and 2**flips outgrow a float together: compare them as logarithms
    return (
        min(1.0, math.exp(math.log(tail) + (1 - flips) * math.log(2)))
        if math.isfinite(tail)
        else _far(broke, fixed)
    )


def _far(broke: int, fixed: int) -> float:
    """The same with whole numbers, for counts whose binomials do not fit a float."""
    flips, term, tail = broke + fixed, 1, 1
    for count in range(1, min(broke, fixed) + 1):
        term = term * (flips - count + 1) // count
        tail += term
    shift = max(tail.bit_length() - 53, 0)
    return min(1.0, math.ldexp(tail >> shift, shift + 1 - flips))
