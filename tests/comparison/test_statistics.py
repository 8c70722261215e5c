"""Rates and p-values against known values, and against whole numbers."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.comparison.statistics import (
    Clusters,
    Counts,
    Rate,
    add_verdict,
    mcnemar,
    rate_of_files,
    wilson,
)
from evalstore.core.values import Verdict
from evalstore.files.json_output import to_json
from evalstore.results.stats.groups import flip_probability


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
    nothing = Rate(0, 0, None, None, None)
    assert wilson(0, 0) == rate_of({}) == nothing
    assert nothing.interval is None
    assert nothing.text == "-"
    assert to_json(nothing) == {
        "passed": 0,
        "judged": 0,
        "rate": None,
        "low": None,
        "high": None,
        "effectiveSize": None,
        "unresolved": 0,
        "best": {"rate": None, "high": None},
    }


def test_no_interval_leaves_0_to_100_percent_by_a_rounding_error() -> None:
    for judged in range(1, 60):  # without a bound, 9 of 9 and 0 of 2 leave it by 2e-16
        none, all_of_them = wilson(0, judged), wilson(judged, judged)
        assert none.low is not None
        assert none.low >= 0
        assert all_of_them.high is not None
        assert all_of_them.high <= 1


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
    computed, right = mcnemar(broke, fixed), exact(broke, fixed)
    assert computed == mcnemar(fixed, broke)
    assert computed == pytest.approx(float(right), rel=1e-9, abs=1e-300)


@given(st.integers(0, 500), st.integers(0, 500))
def test_mcnemar_of_up_to_1000_flips_is_right_to_the_last_digit(broke: int, fixed: int) -> None:
    assert mcnemar(broke, fixed) == float(exact(broke, fixed))


def test_mcnemar_of_huge_counts_is_a_number() -> None:
    assert mcnemar(10_200, 9_800) == pytest.approx(float(exact(10_200, 9_800)), rel=1e-8)
    assert 0 < mcnemar(500_000, 499_000) < mcnemar(500_000, 499_500) < 1


@pytest.mark.parametrize("broke", [518, 569, 586])
def test_no_p_value_is_above_1_by_a_rounding_error(broke: int) -> None:
    assert mcnemar(broke, broke + 1) == pytest.approx(1.0)
    assert mcnemar(broke, broke + 1) <= 1


Questions = dict[tuple[str, str], Counts]
"""The counts of each question: a test file and a row of it."""


def rate_of(questions: Questions) -> Rate:
    by_file: dict[str, Counter[Counts]] = {}
    for (file, _), counts in questions.items():
        by_file.setdefault(file, Counter())[counts] += 1
    return rate_of_files(by_file.values())


def questions(*files: Sequence[int]) -> Questions:
    """Files with their verdicts, one of a row; 1 is a pass, -1 undecided."""
    return {
        (str(number), str(row)): Counts(1, passes == 1, passes == -1)
        for number, file in enumerate(files)
        for row, passes in enumerate(file)
    }


def test_rows_that_share_files_have_the_interval_of_fewer_rows() -> None:
    shared = [[1, 1, 1, 0], [0] * 5, [1, 1], [1, 0, 1], [0, 1, 0, 0, 1, 1]]
    rate = rate_of(questions(*shared))
    assert (rate.passed, rate.judged, rate.rate) == (10, 20, 0.5)
    assert rate.effective == pytest.approx(9.411772, abs=1e-5)
    assert rate.interval == pytest.approx((0.230811, 0.769189), abs=1e-6)
    alone = rate_of(questions(*([number] for file in shared for number in file)))
    assert alone.interval == pytest.approx((0.299298, 0.700702), abs=1e-6)


def test_in_files_of_their_own_it_is_the_plain_interval() -> None:
    rate = rate_of(questions(*[[1]] * 40, *[[0]] * 15))
    assert rate == wilson(40, 55)
    assert rate_of(questions(*[[1]] * 200, *[[0]] * 100)) == wilson(200, 300)
    assert rate.interval == pytest.approx((0.597678, 0.827192), abs=1e-6)
    assert rate.text == "72.7%"


def test_undecided_verdicts_and_errors_have_not_passed_and_widen_the_interval() -> None:
    rate = rate_of(questions(*[[1]] * 40, *[[0]] * 12, *[[-1]] * 3))
    assert (rate.passed, rate.judged, rate.unresolved) == (40, 55, 3)
    assert (rate.low, rate.high) == pytest.approx((0.597678, 0.827192), abs=1e-6)
    assert rate.interval == pytest.approx((0.598, 0.871), abs=5e-4)
    assert rate.text == "72.7%"
    assert rate.best_rate == pytest.approx(43 / 55)


@given(
    st.lists(st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=6), min_size=1, max_size=9)
)
def test_the_upper_bound_is_that_of_the_worst_or_the_best_whichever_is_higher(
    files: list[list[int]],
) -> None:
    rate = rate_of(questions(*files))
    best = rate_of(questions(*([abs(number) for number in file] for file in files)))
    worst = rate_of(questions(*([max(number, 0) for number in file] for file in files)))
    assert rate.low == worst.low
    assert rate.best_rate == best.rate
    assert worst.high is not None
    assert best.high is not None
    assert rate.interval == (rate.low, max(worst.high, best.high))


def test_the_upper_bound_may_be_that_of_the_worst() -> None:
    rate = rate_of(questions([1], [0, -1, 0]))
    assert rate.high is not None
    assert rate.interval == (rate.low, rate.high)
    best = rate_of(questions([1], [0, 1, 0]))
    assert best.high is not None
    assert best.high < rate.high


def test_a_rate_as_json() -> None:
    shared = questions([1, 1, 1, -1], [0, 0, 0], [1, 1])
    rate = rate_of(shared)
    assert rate.effective is not None
    assert rate.effective != round(rate.effective, 6)
    assert to_json(rate) == {
        "passed": 5,
        "judged": 9,
        "rate": 5 / 9,
        "low": rate.low,
        "high": rate.high,
        "effectiveSize": round(rate.effective, 6),
        "unresolved": 1,
        "best": {"rate": 6 / 9, "high": rate.best_high},
    }


@pytest.mark.parametrize(
    ("files", "effective"),
    [
        ([[1] * 9, [1] * 9], 2),
        ([[0] * 9, [0] * 9, [0]], 3),
        ([[1, 0, 1, 1]], 4),
        ([[1, 1, 1]], 3),
        ([[1, 0]] * 4, 8),
        ([[1, 1], [0, 0]] * 8, 15),
        ([[1] * 9, [0] * 9], 1),
    ],
    ids=["all", "none", "one file", "all of one file", "files alike", "rows alike", "opposites"],
)
def test_how_many_independent_verdicts_there_are(files: list[list[int]], effective: float) -> None:
    assert rate_of(questions(*files)).effective == pytest.approx(effective)


def test_answers_of_several_candidates_to_a_question_count_once() -> None:
    both = Counts(2, 1)  # one candidate passes all of them, another none
    rate = rate_of({(str(number), ""): both for number in range(30)})
    assert (rate.judged, rate.effective) == (60, 30)
    one_file = rate_of({("one", str(number)): both for number in range(30)})
    assert (one_file.judged, one_file.effective) == (60, 30)
    one_question = rate_of({("one", "only"): both})
    assert (one_question.judged, one_question.effective) == (2, 1)


def test_clusters_added_at_once_are_those_added_one_by_one() -> None:
    at_once, one_by_one = Clusters(), Clusters()
    for counts, times in ((Counts(3, 1, 1), 4), (Counts(2, 2), 3), (Counts(), 5), (Counts(1), 2)):
        at_once.add(counts, times)
        for _ in range(times):
            one_by_one.add(counts)
    for clusters in (at_once, one_by_one):
        assert (clusters.count, clusters.judged, clusters.passed, clusters.unresolved) == (
            9,
            20,
            10,
            4,
        )
    for best in (False, True):
        assert at_once.effective_size(best=best) == one_by_one.effective_size(best=best)
    assert at_once.effective_size() == at_once.effective_size(best=False)
    assert at_once.effective_size() != at_once.effective_size(best=True)


def test_clusters_that_are_nearly_alike_are_not_more_than_their_verdicts() -> None:
    alike = Clusters()
    alike.add(Counts(4, 2), 5)
    alike.add(Counts(5, 2))
    assert alike.effective_size() == 25


def test_before_the_first_verdict_nothing_is_counted() -> None:
    assert add_verdict(Counts(), "pass") == (1, 1, 0)
    assert add_verdict(Counts(), "error") == (1, 0, 1)


@pytest.mark.parametrize(
    ("verdict", "counts"),
    [
        ("pass", Counts(4, 2, 1)),
        ("fail", Counts(4, 1, 1)),
        ("undecided", Counts(4, 1, 2)),
        ("error", Counts(4, 1, 2)),
        (None, Counts(3, 1, 1)),
    ],
)
def test_what_a_verdict_counts(verdict: Verdict | None, counts: Counts) -> None:
    assert add_verdict(Counts(3, 1, 1), verdict) == counts


@given(
    st.lists(st.lists(st.sampled_from([1, 0, -1]), min_size=1, max_size=6), min_size=1, max_size=9),
    st.randoms(use_true_random=False),
)
def test_the_order_of_files_and_rows_changes_no_rate(
    files: list[list[int]], source: random.Random
) -> None:
    mixed = [source.sample(file, len(file)) for file in source.sample(files, len(files))]
    rate, other = rate_of(questions(*files)), rate_of(questions(*mixed))
    assert rate.interval == pytest.approx(other.interval)
    assert rate.interval is not None
    assert rate.rate is not None
    assert rate.best_rate is not None
    assert rate.interval[0] <= rate.rate + 1e-12
    assert rate.best_rate <= rate.interval[1] + 1e-12
    assert rate.effective is not None
    assert 1 <= rate.effective <= rate.judged


@pytest.mark.parametrize(
    ("passed", "attempts", "flip"),
    [(5, 5, 0), (4, 5, 0.4), (2, 5, 0.6), (0, 5, 0), (1, 2, 1), (9, 10, 0.2)],
)
def test_known_flip_probabilities(passed: int, attempts: int, flip: float) -> None:
    assert flip_probability(passed, attempts) == pytest.approx(flip)


@pytest.mark.parametrize("share", [0.9, 0.5, 0.25])
def test_the_flip_probability_does_not_depend_on_the_number_of_attempts(share: float) -> None:
    for attempts in (2, 3, 5, 10):
        expected = math.fsum(
            math.comb(attempts, passed)
            * share**passed
            * (1 - share) ** (attempts - passed)
            * flip_probability(passed, attempts)
            for passed in range(attempts + 1)
        )
        assert expected == pytest.approx(2 * share * (1 - share))
