"""Pass rates with their uncertainty, and the exact test of paired verdicts.

Rows of one file are correlated, and so are the answers of several candidates to one question.
Intervals therefore are those of a clustered sample: as wide as those of as many independent
verdicts as have the same variance (Miller 2024, "Adding error bars to evals").

Tests whether two sides differ by more than chance: the sign-flip test and intervals, over files.

An edit changes the rows of a file together, so files are compared, not rows. Under the null
hypothesis the difference of each file is as likely as its opposite. In a single file its rows are
compared, which says nothing about other files.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import compress
from typing import Any, Literal, NamedTuple

from evalstore.core.display import half_up, percent
from evalstore.core.values import Verdict

Z95 = 1.9599639845400536
"""The 97.5 % point of the standard normal distribution; `statistics` takes long to load."""
_EXACT = 1000
"""Up to so many flips the sum is exact, in integers, which would grow without bound."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A pass rate with its 95 % Wilson score interval; all None when nothing was judged."""

    passed: int
    judged: int
    rate: float | None
    low: float | None
    high: float | None
    effective: float | None = None
    """The number of independent verdicts that would have this interval."""
    unresolved: int = 0
    """Undecided verdicts and errors, which count as judged and as not passed."""
    best_rate: float | None = None
    """The rate if all unresolved verdicts were passes."""
    best_high: float | None = None
    """The upper end of the interval of that rate."""

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the interval that covers all outcomes of the unresolved verdicts."""
        high = self.high if self.best_high is None else self.best_high
        return None if self.low is None or high is None else (self.low, high)

    def without_interval(self) -> Rate:
        """Return the rate of cases that were chosen by their verdict, which say nothing of others.

        An interval would claim so.
        """
        return replace(self, low=None, high=None, effective=None, best_high=None)

    @property
    def text(self) -> str:
        """Return the rate as a percentage."""
        return percent(self.rate)

    def document(self) -> dict[str, Any]:
        """Return the pass rate as JSON."""
        return {
            "passed": self.passed,
            "judged": self.judged,
            "rate": self.rate,
            "low": self.low,
            "high": self.high,
            "effectiveSize": None if self.effective is None else round(self.effective, 6),
            "unresolved": self.unresolved,
            "best": {"rate": self.best_rate, "high": self.best_high},
        }


class Counts(NamedTuple):
    """The counts of the verdicts of a question or of a file."""

    judged: int = 0
    passed: int = 0
    unresolved: int = 0
    """Undecided verdicts and errors."""


@lru_cache(maxsize=4096)
def add_verdict(counts: Counts, verdict: Verdict | None) -> Counts:
    """Return the counts with one more verdict, None for a missing one; equal counts are shared."""
    judged, passed, unresolved = counts
    return Counts(
        judged + (verdict is not None),
        passed + (verdict == "pass"),
        unresolved + (verdict in ("undecided", "error")),
    )


def count_rows(rows: Sequence[Hashable], verdicts: Sequence[Verdict | None]) -> Counter[Counts]:
    """Return how many rows have which counts; each verdict is on the row at its place."""
    none = Counts()
    by_row: dict[Hashable, Counts] = {}
    for row, verdict in zip(rows, verdicts, strict=True):
        by_row[row] = add_verdict(by_row.get(row, none), verdict)
    return Counter(by_row.values())


def wilson(passed: int, judged: int) -> Rate:
    """Return the pass rate of independent verdicts (Wilson 1927, as in statsmodels)."""
    if judged == 0:
        return Rate(0, 0, None, None, None)
    share = passed / judged
    low, high = _wilson(share, judged)
    return Rate(passed, judged, share, low, high, float(judged), 0, share, high)


def _wilson(share: float, size: float) -> tuple[float, float]:
    square = Z95**2
    middle = (share + square / (2 * size)) / (1 + square / size)
    half = Z95 / (1 + square / size) * math.sqrt(share * (1 - share) / size + square / 4 / size**2)
    return max(0.0, middle - half), min(1.0, middle + half)


class Clusters:
    """Sums over clusters of verdicts, in constant memory."""

    def __init__(self) -> None:
        self.count = self.judged = self.passed = self.unresolved = 0
        self._sizes = 0
        self._squares, self._products = [0, 0], [0, 0]
        """The sums of the squares of what passed, and of its products with the sizes.

        The second ones count what is unresolved as passed.
        """

    def add(self, counts: Counts, times: int = 1) -> None:
        """Add so many equal clusters; those without a verdict do not count."""
        size, passed, unresolved = counts
        if size == 0:
            return
        self.count += times
        self.judged += times * size
        self.passed += times * passed
        self.unresolved += times * unresolved
        self._sizes += times * size**2
        for best, count in enumerate((passed, passed + unresolved)):
            self._squares[best] += times * count**2
            self._products[best] += times * count * size

    def effective_size(self, *, best: bool = False) -> float:
        """Return how many independent verdicts have the variance of these; at least 1.

        `best` counts what is unresolved as passed. Without any variance it is the number of
        clusters.
        """
        size = self.judged
        passed = self.passed + (self.unresolved if best else 0)
        if self.count == size or passed in (0, size) or self.count == 1:
            return float(self.count)
        share = passed / size
        both = self._products[best]
        squares = self._squares[best] - 2 * share * both + share**2 * self._sizes
        variance = self.count / (self.count - 1) * squares / size**2
        if variance <= 0:
            return float(size)
        return min(max(share * (1 - share) / variance, 1.0), float(size))


def clustered_rate(files: Clusters, questions: Clusters) -> Rate:
    """Return the pass rate of verdicts of several files, or of several questions of one file.

    Both have the same verdicts. The answers to one question never count as more than one.
    """
    judged, passed, unresolved = files.judged, files.passed, files.unresolved
    if judged == 0:
        return Rate(0, 0, None, None, None)
    clusters = files if files.count > 1 else questions
    size, best_size = (
        min(clusters.effective_size(best=best), float(questions.count)) for best in (False, True)
    )
    share, best_share = passed / judged, (passed + unresolved) / judged
    low, high = _wilson(share, size)
    best_high = max(high, _wilson(best_share, best_size)[1])
    return Rate(passed, judged, share, low, high, size, unresolved, best_share, best_high)


def sum_counts(clusters: Iterable[tuple[Counts, int]]) -> Counts:
    """Return the sum of counts, each of which stands for so many equal ones."""
    listed = list(clusters)
    return Counts(*(sum(times * each[place] for each, times in listed) for place in range(3)))


def rate_of_files(counts_by_file: Iterable[Mapping[Counts, int]]) -> Rate:
    """Return the pass rate of files: of each, how many questions have which counts."""
    files, rows = Clusters(), Clusters()
    for alike in counts_by_file:
        files.add(sum_counts(alike.items()))
        for counts, times in alike.items():
            rows.add(counts, times)
    return clustered_rate(files, rows)


def rate_of_words(
    files: Iterable[Mapping[str, int] | Mapping[str | None, int]], rows: Clusters
) -> Rate:
    """Return the pass rate of files: of each, how many results have which verdict or none."""
    clusters = Clusters()
    for words in files:
        unresolved = words.get("undecided", 0) + words.get("error", 0)
        passed = words.get("pass", 0)
        clusters.add(Counts(passed + words.get("fail", 0) + unresolved, passed, unresolved))
    return clustered_rate(clusters, rows)


def mcnemar(broke: int, fixed: int) -> float:
    """Return the exact two-sided p-value of McNemar's test on paired verdicts.

    It is the probability of a split at least this uneven if breaking and fixing are equally likely.
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
    # The largest term is computed from its logarithm, the others from their ratio to it.
    largest = math.lgamma(flips + 1) - math.lgamma(fewer + 1) - math.lgamma(flips - fewer + 1)
    share = total = 1.0
    for count in range(fewer, 0, -1):
        share *= count / (flips - count + 1)
        total += share
        if share < total * 1e-17:
            break
    return min(1.0, math.exp(largest + math.log(total) + (1 - flips) * math.log(2)))


ALPHA = 0.05
"""A p-value below this counts as a change."""
_LEAST = 1e-30
"""Smaller p-values are reported as this one."""
_NOTHING = 1e-40
"""Smaller shares of the sign patterns are left out."""
_STEPS = 1_000_000
"""The most steps of an exact p-value."""
_DRAWS = 20_000
"""Sign patterns that are drawn when there are too many for an exact p-value."""
_DRAWN = 10_000_000
"""About the most signs of all drawn patterns, for many files."""
_BITS = bytes((0, 1)) * 128
_SCALE = 1_000_000
"""Scores are counted in millionths."""

Method = Literal["tango", "cluster-t"]
Unit = Literal["file", "row"]
"""What is compared: files, or the rows of the only file."""


@dataclass(frozen=True, slots=True)
class ClusterSum:
    """The sum over the paired cells of a file, or of a row of the only file."""

    pairs: int
    total: int
    """The number of cells that pass now minus the number that passed before."""


@dataclass(frozen=True, slots=True)
class RateChange:
    """The difference between the pass rates of two sides, with its interval and p-value."""

    pairs: int
    files: int
    moved: int
    """The number of files, or of rows of the only file, of which more, or fewer, cells pass."""
    difference: float | None
    """The later pass rate minus the earlier one; None without pairs."""
    low: float | None
    """The lower end of the 95 % interval; None for a single file with a single row."""
    high: float | None
    method: Method | None
    """The method of the interval."""
    p: float
    """The p-value of the sign-flip test; 1 when only one file, or one row of it, changed."""
    unit: Unit = "file"
    """What the interval and the test take for independent."""
    clusters: int = 0
    """The number of files, or of rows of the only file."""
    tests: int = 1
    """For how many tests the p-value is corrected."""

    def document(self) -> dict[str, Any]:
        """Return the change as JSON."""
        return {
            "pairs": self.pairs,
            "files": self.files,
            "moved": self.moved,
            "difference": {
                "value": self.difference,
                "low": self.low,
                "high": self.high,
                "method": self.method,
            },
            "p": self.p,
            "unit": self.unit,
        }

    @property
    def is_significant(self) -> bool:
        """Return whether the p-value counts as a change."""
        return self.p < ALPHA

    @property
    def can_be_significant(self) -> bool:
        """Return whether the least p-value of so many files, or rows, counts as a change."""
        return 2.0 ** (1 - self.moved) < ALPHA

    @property
    def finding(self) -> str:
        """Return the result of the test at a level of 5 %, in words."""
        if not self.can_be_significant:
            result = f": too few {self.unit}s to test significance" * bool(self.moved)
            number = {0: "no", 1: "one"}.get(self.moved, self.moved)
            return f"the pass rate of {number} {self.unit}{'s' * (self.moved > 1)} changed{result}"
        conclusion = "significant" if self.is_significant else "not significant"
        if self.unit == "row":
            conclusion += " for further rows of this file"
        corrected = f"Holm-corrected for {self.tests:,} candidates, " * (self.tests > 1)
        test = f"sign-flip test over the {self.moved:,} {self.unit}s whose pass rate changed"
        if self._leaves_out_zero not in (None, self.is_significant):
            test += "; this test is exact, the interval is approximate"
        return f"{conclusion} (p = {self.p:.2g}, {corrected}{test})"

    @property
    def _is_too_wide(self) -> bool:
        """Return whether an interval is too wide: over 100 points, or clustered and cut."""
        if self.low is None or self.high is None:
            return False
        is_cut = self.method == "cluster-t" and (self.low <= -1 or self.high >= 1)
        return is_cut or self.high - self.low > 1

    @property
    def _leaves_out_zero(self) -> bool | None:
        """Return whether 0 is not in the interval that is shown; None without one."""
        if self.low is None or self.high is None or self._is_too_wide:
            return None
        return self.low > 0 or self.high < 0

    @property
    def points(self) -> str:
        """Return the difference in percentage points with its interval, or why there is none.

        An interval that is too wide is not shown.
        """
        if self.difference is None:
            return ""
        points = f"{half_up(100 * self.difference):+.1f} points"
        if self.low is None or self.high is None:
            return points
        if self._is_too_wide:
            files = f"{self.clusters:,} {self.unit}s"
            return f"{points} (no interval: too wide with {files})"
        low, high = half_up(100 * self.low), half_up(100 * self.high)
        return f"{points} (95% interval {low:+.1f} to {high:+.1f})"


ClusterSums = Iterable[ClusterSum] | Mapping[ClusterSum, int]
"""Sums of clusters, one by one, or each with how many clusters have it."""


def _count(clusters: ClusterSums) -> Mapping[ClusterSum, int]:
    return clusters if isinstance(clusters, Mapping) else Counter(clusters)


def sum_of(clusters: ClusterSums) -> ClusterSum:
    """Return the sum of clusters, such as that of a file over its rows."""
    counted = _count(clusters)
    total = sum(cluster.total * times for cluster, times in counted.items())
    return ClusterSum(_pairs_of(counted), total)


def change_of(clusters: ClusterSums, unit: Unit = "file") -> RateChange:
    """Return the change of the paired cells of these files, or of these rows of one file."""
    counted = _count(clusters)
    pairs = _pairs_of(counted)
    number = sum(counted.values())
    moved = sum(times for cluster, times in counted.items() if cluster.total)
    totals = [
        cluster.total for cluster, times in counted.items() if cluster.total for _ in range(times)
    ]
    p = sign_flip(totals)
    if not pairs:
        return RateChange(0, 0, 0, None, None, None, None, p)
    difference = sum(totals) / pairs
    method: Method | None = None
    low = high = None
    if pairs == number > 1:
        gained = sum(times for cluster, times in counted.items() if cluster.total > 0)
        method, (low, high) = "tango", tango(gained, moved - gained, pairs)
    elif interval := clustered_difference(counted):
        method, (low, high) = "cluster-t", interval
    files = number if unit == "file" else 1
    return RateChange(pairs, files, moved, difference, low, high, method, p, unit, number)


def change_of_files(by_file: Sequence[Mapping[ClusterSum, int]]) -> RateChange:
    """Return the change of the paired cells of files, of a single one over its rows."""
    if len(by_file) == 1 and sum(by_file[0].values()) > 1:
        return change_of(by_file[0], "row")
    return change_of(map(sum_of, by_file))


def _pairs_of(counted: Mapping[ClusterSum, int]) -> int:
    return sum(cluster.pairs * times for cluster, times in counted.items())


# --- the test


def sign_flip(sums: Sequence[float]) -> float:
    """Return the two-sided p-value of the sign-flip test, exact or from 20,000 random patterns.

    It is the share of the sign patterns of `sums` whose total is at least as far from zero.
    When all sums have the same size it is the exact McNemar test. Patterns are drawn only when
    the sums are many and very different, with a fixed seed. Values below 1e-30 become 1e-30.
    """
    whole = all(total == int(total) for total in sums)
    counted = [int(total) if whole else round(total * _SCALE) for total in sums]
    observed = abs(sum(counted))
    sizes = sorted(abs(count) for count in counted if count)
    if observed == 0:
        return 1.0
    if sizes[0] == sizes[-1]:
        fewer = (len(sizes) - observed // sizes[0]) // 2
        return max(mcnemar(len(sizes) - fewer, fewer), _LEAST)
    totals = _totals(sizes)
    if totals is None:
        return _monte_carlo_p(sizes, observed)
    share = math.fsum(share for total, share in totals.items() if abs(total) >= observed)
    return min(1.0, max(share, _LEAST))


def _totals(sizes: Sequence[int]) -> dict[int, float] | None:
    """Return the probability of each total with random signs; None for too many steps."""
    shares, steps = {0: 1.0}, 0
    for size, count in sorted(Counter(sizes).items()):
        signs = _binomial(count)
        steps += len(shares) * len(signs)
        if steps > _STEPS:
            return None
        following: dict[int, float] = {}
        for total, share in shares.items():
            for number, likely in signs:
                place = total + size * (2 * number - count)
                following[place] = following.get(place, 0.0) + share * likely
        shares = {total: share for total, share in following.items() if share > _NOTHING}
    return shares


def _binomial(count: int) -> list[tuple[int, float]]:
    """Return the probabilities of the numbers of heads of coins, without negligible ones."""
    whole = math.lgamma(count + 1) - count * math.log(2)
    reach = 7 * math.sqrt(count) + 1
    numbers = range(max(0, math.ceil(count / 2 - reach)), min(count, int(count / 2 + reach)) + 1)
    if count <= 60:
        return [(number, math.comb(count, number) / (1 << count)) for number in numbers]
    return [
        (number, math.exp(whole - math.lgamma(number + 1) - math.lgamma(count - number + 1)))
        for number in numbers
    ]


def _monte_carlo_p(sizes: Sequence[int], observed: int) -> float:
    """Return the p-value from random sign patterns, the observed one included."""
    source = random.Random(0)
    total, draws = sum(sizes), min(_DRAWS, max(1_000, _DRAWN // len(sizes)))
    hits = 0
    for _ in range(draws):
        signs = source.randbytes(len(sizes)).translate(_BITS)
        hits += abs(total - 2 * sum(compress(sizes, signs))) >= observed
    return (hits + 1) / (draws + 1)


# --- intervals


def tango(gained: int, lost: int, pairs: int) -> tuple[float, float]:
    """Return the 95 % score interval of (gained - lost) / pairs, each its own cluster (Tango)."""
    estimate = (gained - lost) / pairs

    def score(difference: float) -> float:
        linear = (2 * pairs - gained + lost) * difference - gained - lost
        constant = -lost * difference * (1 - difference)
        root = math.sqrt(max(0.0, linear**2 - 8 * pairs * constant))
        share = (root - linear) / (4 * pairs)
        variance = pairs * (2 * share + difference * (1 - difference))
        distance = pairs * (estimate - difference)
        if variance <= 0:
            return math.copysign(math.inf, distance) if distance else 0.0
        return distance / math.sqrt(variance)

    low = _root(lambda difference: score(difference) - Z95, -1.0, estimate)
    return low, _root(lambda difference: score(difference) + Z95, estimate, 1.0)


def clustered_difference(clusters: ClusterSums) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean difference of clustered pairs (Miller 2024).

    Student's t with one degree of freedom less than clusters; None for one cluster, and when all
    have the same mean difference.
    """
    counted = _count(clusters)
    error = standard_error(counted)
    if error is None or error < 1e-12:
        return None
    mean = _mean_of(counted)
    half = t_quantile(sum(counted.values()) - 1) * error
    return max(-1.0, mean - half), min(1.0, mean + half)


def standard_error(clusters: ClusterSums) -> float | None:
    """Return the standard error of the mean difference of clustered pairs; None for one cluster."""
    counted = _count(clusters)
    number = sum(counted.values())
    if number < 2:
        return None
    mean = _mean_of(counted)
    squares = math.fsum(
        times * (cluster.total - cluster.pairs * mean) ** 2 for cluster, times in counted.items()
    )
    return math.sqrt(number / (number - 1) * squares) / _pairs_of(counted)


def _mean_of(counted: Mapping[ClusterSum, int]) -> float:
    whole = sum_of(counted)
    return whole.total / whole.pairs


def t_quantile(degrees_of_freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t (Abramowitz and Stegun 26.7.3, 26.7.4, 26.7.5)."""
    if degrees_of_freedom > 100:
        z = Z95
        return (
            z
            + (z**3 + z) / (4 * degrees_of_freedom)
            + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * degrees_of_freedom**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * degrees_of_freedom**3)
        )
    return _root(lambda bound: 0.95 - _t_central_probability(bound, degrees_of_freedom), 1.0, 13.0)


def _t_central_probability(bound: float, degrees_of_freedom: int) -> float:
    """Return the probability that Student's t lies between -bound and bound."""
    angle = math.atan(bound / math.sqrt(degrees_of_freedom))
    square = math.cos(angle) ** 2
    odd = degrees_of_freedom % 2
    term = series = math.sin(angle) * (math.cos(angle) if odd else 1.0)
    for number in range(2 if odd else 1, degrees_of_freedom - 1, 2):
        term *= square * number / (number + 1)
        series += term
    if not odd:
        return series
    return 2 / math.pi * (angle + (series if degrees_of_freedom > 1 else 0.0))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return the zero of a falling function, to the precision of a float."""
    for _ in range(100):
        middle = (low + high) / 2
        if function(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
