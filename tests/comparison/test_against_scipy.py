"""Every formula of the statistics against scipy and statsmodels, on a thousand random tables.

Both are imported late: only one of the processes that run the tests pays for it.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from evalstore.comparison.statistics import (
    Z95,
    Clusters,
    ClusterSum,
    Counts,
    clustered_difference,
    clustered_rate,
    mcnemar,
    sign_flip,
    standard_error,
    t_quantile,
    tango,
    wilson,
)

pytestmark = pytest.mark.extended

TABLES = 1_000


def tables() -> Iterator[random.Random]:
    """A source of random numbers for each table."""
    for seed in range(TABLES):
        yield random.Random(seed)


def test_sign_flips_are_those_of_the_permutation_test_of_scipy() -> None:
    import numpy as np
    from scipy.stats import permutation_test

    for source in tables():
        wide = source.randint(1, 4)
        sums = [source.randint(-wide, wide) for _ in range(source.randint(2, 9))]
        right = permutation_test(
            (np.array(sums),),
            lambda samples, axis: samples.sum(axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=2**9,
        ).pvalue
        assert sign_flip(sums) == pytest.approx(right, abs=1e-12), sums


def test_with_one_row_a_file_it_is_binomtest_and_mcnemar_of_statsmodels() -> None:
    from scipy.stats import binomtest
    from statsmodels.stats.contingency_tables import mcnemar as exact

    for source in tables():
        broke, fixed = source.randint(0, 80), source.randint(0, 80)
        sums = [-1] * broke + [1] * fixed + [0] * source.randint(0, 9)
        if broke + fixed:
            right = binomtest(min(broke, fixed), broke + fixed, 0.5).pvalue
            assert sign_flip(sums) == pytest.approx(right, rel=1e-9)
        right = exact([[9, broke], [fixed, 9]], exact=True).pvalue
        assert mcnemar(broke, fixed) == pytest.approx(right, rel=1e-9)


def random_files(source: random.Random, *values: int) -> list[list[int]]:
    """Rows in files: alike within a file, and some files with all rows the same."""
    files = []
    for _ in range(source.randint(2, 12)):
        usual, bound = source.choice(values), source.random()
        rows = range(source.randint(1, 7))
        files.append([usual if source.random() < bound else source.choice(values) for _ in rows])
    return files


def clustered_error(files: list[list[int]]) -> float:
    """The clustered standard error of the mean, as statsmodels has it."""
    import numpy as np
    from statsmodels.regression.linear_model import OLS

    values = np.array([row for rows in files for row in rows], dtype=float)
    groups = np.array([number for number, rows in enumerate(files) for _ in rows])
    fitted = OLS(values, np.ones((len(values), 1))).fit(
        cov_type="cluster", cov_kwds={"groups": groups, "use_correction": True}
    )
    return float(fitted.bse[0])


def test_rates_of_rows_that_share_files_are_those_of_statsmodels() -> None:
    from statsmodels.stats.proportion import proportion_confint

    clustered = 0
    for source in tables():
        files = random_files(source, 0, 1)
        verdicts = [row for rows in files for row in rows]
        size, passed = len(verdicts), sum(verdicts)
        share = passed / size
        alone = wilson(passed, size)
        assert (alone.low, alone.high) == pytest.approx(
            proportion_confint(passed, size, method="wilson"), abs=1e-9
        )
        by_file, by_row = Clusters(), Clusters()
        for rows in files:
            by_file.add(Counts(len(rows), sum(rows)))
            for row in rows:
                by_row.add(Counts(1, row))
        rate = clustered_rate(by_file, by_row)
        error = clustered_error(files)
        if size == len(files) or not 0 < passed < size or error < 1e-9:
            continue
        effective = min(float(size), max(1.0, share * (1 - share) / error**2))
        clustered += effective < size
        low, high = proportion_confint(share * effective, effective, method="wilson")
        assert rate.effective == pytest.approx(effective, rel=1e-6)
        assert (rate.low, rate.high) == pytest.approx((low, high), abs=1e-7)
    assert clustered > TABLES / 3


def test_differences_of_rows_that_share_files_are_those_of_statsmodels() -> None:
    from scipy.stats import t

    compared = 0
    for source in tables():
        files = random_files(source, -1, 0, 1)
        moved = [ClusterSum(len(rows), sum(rows)) for rows in files]
        error = clustered_error(files)
        assert standard_error(moved) == pytest.approx(error, abs=1e-9)
        interval = clustered_difference(moved)
        if interval is None:
            assert error < 1e-9
            continue
        mean = sum(map(sum, files)) / sum(map(len, files))
        half = t.ppf(0.975, len(files) - 1) * error
        right = (max(-1.0, mean - half), min(1.0, mean + half))
        assert interval == pytest.approx(right, abs=1e-9)
        compared += 1
    assert compared > TABLES / 2


def test_the_quantile_of_students_t_is_that_of_scipy() -> None:
    from scipy.stats import t

    for degrees_of_freedom in (*range(1, TABLES), 5_000, 1_000_000):
        close = 1e-12 if degrees_of_freedom <= 100 else 1.6e-8
        assert t_quantile(degrees_of_freedom) == pytest.approx(
            t.ppf(0.975, degrees_of_freedom), rel=0, abs=close
        )


def test_tangos_interval_ends_where_the_score_of_the_likelihood_does() -> None:
    from scipy.optimize import minimize_scalar

    def score(gained: int, lost: int, pairs: int, difference: float) -> float:
        """The score statistic; the nuisance share is found by maximising the likelihood."""
        import math

        def unlikely(share: float) -> float:
            terms = ((gained, share + difference), (lost, share))
            rest = (pairs - gained - lost, 1 - 2 * share - difference)
            return -sum(count * math.log(max(p, 1e-300)) for count, p in (*terms, rest) if count)

        bounds = (max(0.0, -difference), (1 - difference) / 2)
        share = minimize_scalar(
            unlikely, bounds=bounds, method="bounded", options={"xatol": 1e-12}
        ).x
        variance = pairs * (2 * share + difference - difference**2)
        return float((gained - lost - pairs * difference) / math.sqrt(variance))

    for source in tables():
        gained, lost = source.randint(0, 20), source.randint(0, 20)
        pairs = gained + lost + source.randint(1, 80)
        low, high = tango(gained, lost, pairs)
        assert score(gained, lost, pairs, low) == pytest.approx(Z95, abs=1e-3)
        assert score(gained, lost, pairs, high) == pytest.approx(-Z95, abs=1e-3)
