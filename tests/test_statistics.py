"""Rates and p-values against known values, and against whole numbers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.report.statistics import Rate, mcnemar, wilson


@pytest.mark.parametrize(
    ("passed", "judged", "low", "high"),
    [
        # statsmodels.stats.proportion.proportion_confint(…, method="wilson")
        (0, 1, 0.0, 0.793451),
        (1, 1, 0.206549, 1.0),
        (5, 10, 0.236593, 0.763407),
        (9, 10, 0.595850, 0.982124),
        (0, 10, 0.0, 0.277533),
        (81, 263, 0.255290, 0.366160),
    ],
)
def test_wilson_is_what_statsmodels_computes(
    passed: int, judged: int, low: float, high: float
) -> None:
    rate = wilson(passed, judged)
    assert rate.low == pytest.approx(low, abs=5e-5)
    assert rate.high == pytest.approx(high, abs=5e-5)


def test_of_nothing_there_is_no_rate() -> None:
    assert wilson(0, 0) == Rate(0, 0, None, None, None)


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_the_interval_holds_the_rate_and_stays_within_bounds(judged: int, share: float) -> None:
    rate = wilson(round(share * judged), judged)
    assert rate.rate is not None
    assert rate.low is not None
    assert rate.high is not None
    assert 0 <= rate.low <= rate.rate + 1e-12
    assert rate.rate - 1e-12 <= rate.high <= 1


@given(st.integers(1, 1_000), st.integers(0, 1_000))
def test_passing_and_failing_mirror_each_other(judged: int, passed: int) -> None:
    passed = min(passed, judged)
    rate, other = wilson(passed, judged), wilson(judged - passed, judged)
    assert rate.low == pytest.approx(1 - (other.high or 0))


@pytest.mark.parametrize(
    ("broke", "fixed", "p"),
    [
        (0, 0, 1.0),
        (1, 0, 1.0),
        (5, 0, 0.0625),
        (6, 0, 0.03125),
        (10, 2, 0.03857421875),
        (7, 7, 1.0),
    ],
)
def test_mcnemar_is_the_exact_binomial_test(broke: int, fixed: int, p: float) -> None:
    assert mcnemar(broke, fixed) == pytest.approx(p)


def exact(broke: int, fixed: int) -> Fraction:
    flips = broke + fixed
    tail = term = 1
    for count in range(1, min(broke, fixed) + 1):
        term = term * (flips - count + 1) // count
        tail += term
    return min(Fraction(1), Fraction(2 * tail, 2**flips))


@given(st.integers(0, 3_000), st.integers(0, 3_000))
def test_mcnemar_is_right_for_any_counts(broke: int, fixed: int) -> None:
    found, right = mcnemar(broke, fixed), exact(broke, fixed)
    assert found == mcnemar(fixed, broke)
    assert found == pytest.approx(float(right), rel=1e-9, abs=1e-300)


def test_mcnemar_of_huge_counts_is_a_number() -> None:
    assert mcnemar(10_200, 9_800) == pytest.approx(float(exact(10_200, 9_800)), rel=1e-8)
    assert 0 < mcnemar(500_000, 499_000) < mcnemar(500_000, 499_500) < 1
