"""The test and the intervals of two sides: known values, and laws."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalstore.comparison import statistics
from evalstore.comparison.statistics import (
    ClusterSum,
    RateChange,
    change_of,
    clustered_difference,
    mcnemar,
    sign_flip,
    standard_error,
    t_quantile,
    tango,
)
from evalstore.files.json_output import to_json


@pytest.mark.parametrize(
    ("sums", "p"),
    [
        ([], 1.0),
        ([0, 0], 1.0),
        ([-1] * 3, 0.25),
        ([-1] * 5, 0.0625),
        ([-1] * 6, 0.03125),
        ([-1.0] * 6, 0.03125),
        ([-1] * 8 + [1] * 2, 0.109375),
        ([-3], 1.0),
        ([-3, -2, -1, 1], 0.375),
        ([-2, -2, -1, -1, -1], 0.0625),
        ([0.5, -0.25, 0.75, 0.1], 0.375),
        ([0.5, 0.25, 0.75, 0.1], 0.125),
        ([0.1, 0, 0.2, -0.1, 0.1, 0.2, 0, 0.1, -0.05, 0.15], 0.0859375),
    ],
)
def test_known_p_values(sums: list[float], p: float) -> None:
    assert sign_flip(sums) == pytest.approx(p, abs=1e-12)


@given(st.lists(st.integers(-6, 6), max_size=9))
def test_the_p_value_is_the_share_of_all_sign_patterns(sums: list[int]) -> None:
    patterns = list(itertools.product((-1, 1), repeat=len(sums)))
    totals = [abs(sum(map(int.__mul__, sums, signs))) for signs in patterns]
    right = Fraction(sum(1 for total in totals if total >= abs(sum(sums))), len(patterns))
    assert sign_flip(sums) == pytest.approx(float(right), rel=1e-12)


@given(st.integers(0, 2_000), st.integers(0, 2_000), st.integers(1, 4))
def test_with_one_row_a_file_it_is_the_exact_mcnemar_test(
    broke: int, fixed: int, rows: int
) -> None:
    assert sign_flip([-rows] * broke + [rows] * fixed) == max(mcnemar(broke, fixed), 1e-30)


@given(st.lists(st.integers(-40, 40), max_size=60), st.randoms(use_true_random=False))
def test_the_order_of_files_and_the_side_make_no_difference(
    sums: list[int], source: random.Random
) -> None:
    mixed = [-total for total in sums]
    source.shuffle(mixed)
    assert sign_flip(mixed) == sign_flip(sums)


@pytest.mark.extended
def test_thousands_of_files_take_a_moment_and_are_as_likely_as_the_normal_curve_says() -> None:
    source = random.Random(3)
    for sums in (
        [1] * 3_000 + [-2] * 1_400 + [3] * 40,
        [source.randint(-900, 1_000) for _ in range(1_500)],
        [source.gauss(0.1, 1) for _ in range(250)],
    ):
        deviation = math.sqrt(math.fsum(total**2 for total in sums))
        near = math.erfc(abs(math.fsum(sums)) / deviation / math.sqrt(2))
        p_value = sign_flip(sums)
        assert p_value == pytest.approx(near, abs=0.01)
        assert p_value == sign_flip(sums[::-1])


def exact(sums: list[int]) -> Fraction:
    """The p-value of whole numbers, by counting the sign patterns of each total."""
    patterns = {0: 1}
    for size in sums:
        following: dict[int, int] = {}
        for total, number in patterns.items():
            for place in (total - size, total + size):
                following[place] = following.get(place, 0) + number
        patterns = following
    far = sum(number for total, number in patterns.items() if abs(total) >= abs(sum(sums)))
    return Fraction(far, 2 ** len(sums))


@pytest.mark.parametrize(
    "sums",
    [
        [1] * 30 + [-1] * 30 + [2, 2, 2],
        [1] * 31 + [-1] * 30 + [2, 2, 2],
        [1] * 90 + [-1] * 60 + [2] * 30 + [-2] * 50,
        [1] * 61 + [3],
        [-5] * 120 + [5] * 90 + [2] * 7,
    ],
    ids=["60 alike", "61 alike", "two sizes of many", "nearly all one way", "few of another size"],
)
def test_the_p_value_of_many_files_is_exact(sums: list[int]) -> None:
    assert sign_flip(sums) == pytest.approx(float(exact(sums)), rel=1e-9)


def test_the_p_value_of_thousands_of_files_is_exact() -> None:
    heads = [1]
    for head in range(4_000):
        heads.append(heads[-1] * (4_000 - head) // (head + 1))
    far = sum(ways for head, ways in enumerate(heads) if abs(2 * head - 4_000 + 2) >= 82)
    right = float(Fraction(far, 2**4_000))
    assert sign_flip([1] * 2_040 + [-1] * 1_960 + [2]) == pytest.approx(right, rel=1e-9)


DIFFERENT = [number**3 for number in range(1, 17)]


@pytest.mark.parametrize(("signs", "draws"), [(10_000_000, 20_000), (64_000, 2_000), (100, 1_000)])
def test_a_drawn_p_value_counts_the_observed_pattern(
    monkeypatch: pytest.MonkeyPatch, signs: int, draws: int
) -> None:
    monkeypatch.setattr(statistics, "_STEPS", 0)
    monkeypatch.setattr(statistics, "_DRAWN", signs)
    assert sign_flip([1, 3] * 8 + [2] * 16) == 1 / (draws + 1)


def test_a_drawn_p_value_is_the_same_everywhere_and_close_to_the_exact_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sums = [total if total % 3 else -total for total in DIFFERENT]
    right = float(exact(sums))
    assert sign_flip(sums) == pytest.approx(right, rel=1e-9)
    monkeypatch.setattr(statistics, "_STEPS", 0)
    assert sign_flip(sums) == 0.38283085845707715
    assert sign_flip(sums) == pytest.approx(right, abs=0.01)


def test_scores_that_differ_by_a_rounding_error_alone_are_ties() -> None:
    # 0.57 millionths are 569999.9999999999: cut off, the observed total is not the least one.
    assert sign_flip([-0.57, 0.28, 0.29, 0.1]) == 1.0


def test_no_p_value_is_above_1_by_a_rounding_error() -> None:
    assert sign_flip([1] * 67 + [-1] * 66 + [2, -2]) == 1.0  # added up it is 1 + 1e-13


def test_what_is_far_too_unlikely_is_still_a_probability() -> None:
    assert 0 < sign_flip([1] * 500 + [2] * 500) <= 1e-30
    assert 0 < sign_flip([1] * 5_000) <= 1e-30


@pytest.mark.parametrize(
    ("gained", "lost", "pairs", "low", "high"),
    [
        (3, 0, 55, -0.014300, 0.148531),
        (30, 12, 220, 0.025142, 0.141373),
        (8, 2, 100, -0.002385, 0.133556),
        (0, 7, 50, -0.261862, -0.058664),
    ],
)
def test_known_intervals_of_a_difference(
    gained: int, lost: int, pairs: int, low: float, high: float
) -> None:
    assert tango(gained, lost, pairs) == pytest.approx((low, high), abs=1e-6)


@given(st.integers(0, 30), st.integers(0, 30), st.integers(0, 60))
def test_the_interval_holds_the_difference_and_mirrors_the_other_side(
    gained: int, lost: int, others: int
) -> None:
    pairs = gained + lost + others or 1
    low, high = tango(gained, lost, pairs)
    assert -1 <= low <= (gained - lost) / pairs + 1e-9
    assert (gained - lost) / pairs - 1e-9 <= high <= 1
    assert tango(lost, gained, pairs) == pytest.approx((-high, -low), abs=1e-9)


CLUSTERED = [
    ClusterSum(4, 2),
    ClusterSum(5, 0),
    ClusterSum(2, -1),
    ClusterSum(3, 1),
    ClusterSum(6, 2),
]
"""[1,1,0,0], [0]*5, [0,-1], [1,0,0], [0,1,0,0,0,1]"""


def test_the_known_error_of_a_clustered_difference() -> None:
    error = standard_error(CLUSTERED)
    assert error == pytest.approx(0.127475, abs=1e-6)
    assert error is not None
    assert 0.2 / error == pytest.approx(1.568929, abs=1e-6)
    assert t_quantile(4) == pytest.approx(2.776445, abs=1e-6)
    half = 2.776445 * 0.127475
    assert clustered_difference(CLUSTERED) == pytest.approx((0.2 - half, 0.2 + half), abs=2e-6)


@pytest.mark.parametrize(
    ("files", "change"),
    [
        ([], RateChange(0, 0, 0, None, None, None, None, 1.0)),
        ([ClusterSum(9, -3)], RateChange(9, 1, 1, -3 / 9, None, None, None, 1.0)),
        (CLUSTERED, RateChange(20, 5, 4, 0.2, -0.153929, 0.553929, "cluster-t", 0.375)),
        (
            [ClusterSum(1, -1)] * 3 + [ClusterSum(1, 0)] * 52,
            RateChange(55, 55, 3, -3 / 55, -0.148531, 0.014300, "tango", 0.25),
        ),
        # Files that all stay as they are have no variance.
        ([ClusterSum(6, 0)] * 20, RateChange(120, 20, 0, 0.0, None, None, None, 1.0)),
        # Two files are a sample, though one that says next to nothing.
        (
            [ClusterSum(4, 2), ClusterSum(4, -1)],
            RateChange(8, 2, 2, 0.125, -1.0, 1.0, "cluster-t", 1.0),
        ),
        (
            [ClusterSum(1, 1), ClusterSum(1, 0)],
            RateChange(2, 2, 1, 0.5, -0.486430, 0.905469, "tango", 1.0),
        ),
        ([ClusterSum(1, 1)], RateChange(1, 1, 1, 1.0, None, None, None, 1.0)),
        # All files by the same: nothing is known of the variance.
        ([ClusterSum(2, 1)] * 6, RateChange(12, 6, 6, 0.5, None, None, None, 0.03125)),
    ],
    ids=[
        "nothing",
        "one file",
        "rows share files",
        "one row a file",
        "no flip",
        "two files",
        "two rows",
        "one row",
        "all alike",
    ],
)
def test_a_change_is_reported_with_the_interval_that_fits(
    files: list[ClusterSum], change: RateChange
) -> None:
    computed = change_of(files)
    assert (computed.pairs, computed.files, computed.moved) == (
        change.pairs,
        change.files,
        change.moved,
    )
    assert computed.method == change.method
    assert computed.p == pytest.approx(change.p)
    for got, right in zip(
        (computed.difference, computed.low, computed.high),
        (change.difference, change.low, change.high),
        strict=True,
    ):
        assert got == (right if right is None else pytest.approx(right, abs=2e-6))


@pytest.mark.parametrize(
    ("sums", "words"),
    [
        ([0, 0], "the pass rate of no file changed"),
        ([-3, 0], "the pass rate of one file changed: too few files to test significance"),
        (
            [-3, -2, -1, 1],
            "the pass rate of 4 files changed: too few files to test significance",
        ),
        (
            [2] * 5,
            "the pass rate of 5 files changed: too few files to test significance",
        ),
        (
            [2] * 4 + [-1, -1],
            "not significant (p = 0.25, sign-flip test over the 6 files whose pass rate changed)",
        ),
        (
            [-2] * 6,
            "significant (p = 0.031, sign-flip test over the 6 files whose pass rate changed)",
        ),
    ],
)
def test_findings_in_words(sums: list[int], words: str) -> None:
    assert change_of(ClusterSum(4, total) for total in sums).finding == words


def test_a_finding_says_that_the_interval_disagrees_with_the_test() -> None:
    """The files of a comparison of two candidates: 4 worse, 17 better of 48."""
    moved = (ClusterSum(5, total) for total in (2, 2, 3, 3, 3, -1, 2, -1))
    change = change_of([ClusterSum(2, 0), ClusterSum(6, 0), *moved])
    assert change.low == pytest.approx(0.031, abs=0.001)
    exact = "; this test is exact, the interval is approximate)"
    assert change.finding.startswith("not significant (p = 0.0")
    assert change.finding.endswith(exact)
    found = RateChange(9, 9, 9, 0.1, -0.1, 0.3, "cluster-t", 0.04).finding
    assert found.startswith("significant (p = 0.04,")
    assert found.endswith(exact)
    one = change_of([ClusterSum(300, 60), ClusterSum(1, 0), ClusterSum(1, 0)])
    assert (one.low or 0) > 0
    assert one.finding == "the pass rate of one file changed: too few files to test significance"
    cut = RateChange(9, 6, 6, 0.7, 0.4, 1.0, "cluster-t", 0.25)
    assert cut.finding.startswith("not significant (p = "), "the interval is not shown"


def test_a_p_value_of_5_percent_is_not_yet_a_change() -> None:
    assert not RateChange(9, 9, 9, 0.1, None, None, None, 0.05).is_significant
    assert RateChange(9, 9, 9, 0.1, None, None, None, 0.0499).is_significant


@pytest.mark.parametrize(
    ("files", "points"),
    [
        ([], ""),
        ([ClusterSum(9, -3)], "-33.3 points"),
        (CLUSTERED, "+20.0 points (95% interval -15.4 to +55.4)"),
        (
            [ClusterSum(4, total) for total in (4, 1, 0, 0, -1)],
            "+20.0 points (no interval: too wide with 5 files)",
        ),
        ([ClusterSum(1, 0)] * 20_000, "+0.0 points (95% interval +0.0 to +0.0)"),
        (
            [ClusterSum(4, -2), ClusterSum(4, 1)],
            "-12.5 points (no interval: too wide with 2 files)",
        ),
        (
            [ClusterSum(4, 2), ClusterSum(4, -1)],
            "+12.5 points (no interval: too wide with 2 files)",
        ),
    ],
)
def test_the_difference_in_points(files: list[ClusterSum], points: str) -> None:
    assert change_of(files).points == points


def test_a_change_as_json() -> None:
    change = change_of(CLUSTERED)
    assert to_json(change) == {
        "pairs": 20,
        "files": 5,
        "moved": 4,
        "difference": {
            "value": 0.2,
            "low": change.low,
            "high": change.high,
            "method": "cluster-t",
        },
        "p": 0.375,
        "unit": "file",
    }


def test_one_file_is_not_a_sample_of_files() -> None:
    assert standard_error([ClusterSum(3, 1)]) is None
    assert clustered_difference([ClusterSum(3, 1)]) is None


def test_files_that_move_together_give_few_false_alarms_where_one_table_gives_many() -> None:
    source = random.Random(1)
    alarms = pooled = 0
    for _ in range(1_000):
        files = []
        broke = fixed = 0
        for _ in range(20):
            # The same chances on both sides: each file is easy or hard, whatever the edit says.
            was, now = source.choice((0.1, 0.9)), source.choice((0.1, 0.9))
            pairs = [(source.random() < was, source.random() < now) for _ in range(6)]
            broke += sum(1 for before, after in pairs if before and not after)
            fixed += sum(1 for before, after in pairs if after and not before)
            files.append(ClusterSum(6, sum(after - before for before, after in pairs)))
        alarms += change_of(files).is_significant
        pooled += mcnemar(broke, fixed) < 0.05
    assert alarms <= 50
    assert pooled > 200
