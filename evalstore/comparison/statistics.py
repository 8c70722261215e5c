"""Pass rates with their uncertainty, and the exact test of paired verdicts.

Rows of one file are correlated, and so are the answers of several candidates to one question.
Intervals therefore are those of a clustered sample: as wide as those of as many independent
verdicts as have the same variance (Miller 2024, "Adding error bars to evals").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, NamedTuple

from evalstore.core.display import percent
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
    known: Counter[Counts] = Counter()
    if len({*rows}) == len(rows):
        for verdict, times in Counter(verdicts).items():
            known[add_verdict(none, verdict)] += times
        return known
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
        self._passed = _Products()
        self._best = _Products()

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
        self._passed.add(times, size, passed)
        self._best.add(times, size, passed + unresolved)

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
        sums = self._best if best else self._passed
        squares = sums.passed - 2 * share * sums.both + share**2 * self._sizes
        variance = self.count / (self.count - 1) * squares / size**2
        if variance <= 0:
            return float(size)
        return min(max(share * (1 - share) / variance, 1.0), float(size))


class _Products:
    """The sums of squares and products for a variance over clusters."""

    def __init__(self) -> None:
        self.passed = self.both = 0

    def add(self, times: int, size: int, passed: int) -> None:
        self.passed += times * passed**2
        self.both += times * passed * size


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
