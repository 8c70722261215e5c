"""Sums the results of groups: pass rates, costs, latencies and flakiness.

An answer that several cases of a group share, and a judgement of it, count once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore.reports.statistics import (
    Counts,
    Rate,
    add_verdict,
    count_rows,
    rate_of_files,
)
from evalstore.values import Json, Verdict

if TYPE_CHECKING:
    from evalstore.results import Result


_NONE = Counts()

PARTLY_TEXT = "~ marks a pass rate of a part of the results: fewer are judged than of another"
"""What explains the sign before the rate of a group that is partly judged."""


class CallFacts(NamedTuple):
    """The cost and the duration of an answer or a judgement."""

    digest: int
    """That of its id, which holds for this process."""
    cost: float | None
    """None when its price is not known."""
    seconds: float | None = None
    """None when it is not known."""


Spending = tuple[float | None, float | None]
"""The cost and the duration of a call, as far as they are known."""


class MeasuredResult(NamedTuple):
    """A result with the facts that are added up."""

    result: Result
    verdict: Verdict | None
    answers: Sequence[CallFacts]
    judgements: Sequence[CallFacts]
    attempts: Sequence[Verdict]
    """The verdict on each attempt, when there are several."""


@dataclass(frozen=True, slots=True)
class ResultGroup:
    """The sums of the results of a group."""

    key: tuple[str | None, ...]
    """A model, a system prompt's id, a tag or a file; None for results without one."""
    name: str
    """The name of the group for display."""
    rate: Rate
    results: int
    """Cases, each with every candidate and system prompt."""
    tests: int
    """Test files."""
    cases: int
    sessions: int
    evaluations: int
    latency: float | None
    """Mean seconds of the sessions whose duration is known."""
    answering: float | None
    """The cost of the sessions, in the currency of the statistics; None when none is known."""
    judging: float | None
    """The cost of the judgements; None when none is known."""
    unpriced_answers: int
    """Sessions whose cost is unknown."""
    unpriced_judgements: int
    attempted: int
    """Results of several attempts that are all judged."""
    flaky: int
    """Those of `attempted` whose attempts disagree."""
    flip: float | None
    """The probability that two attempts at a case differ in passing; None without attempts."""
    names: tuple[str, ...] = ()
    """The parts of the key for display."""

    @property
    def pass_rate(self) -> float | None:
        """Return the share of judged results that passed, 0..1; None when nothing was judged."""
        return self.rate.rate

    def rate_text(self, *, is_partly: bool) -> str:
        """Return the pass rate, with `~` before it if the group is partly judged."""
        return f"~{self.rate.text}" if is_partly else self.rate.text

    @property
    def interval(self) -> tuple[float, float] | None:
        """Return the 95 % interval of the pass rate; None when nothing was judged."""
        return self.rate.interval

    @property
    def coverage(self) -> float | None:
        """Return the share of the results that are judged."""
        return self.rate.judged / self.results if self.results else None

    @property
    def flakiness(self) -> float | None:
        """Return the share of the results whose attempts disagree; it grows with the attempts."""
        return self.flaky / self.attempted if self.attempted else None

    @property
    def unpriced(self) -> int:
        """Return the number of sessions and judgements whose cost is unknown."""
        return self.unpriced_answers + self.unpriced_judgements

    @property
    def cost(self) -> float | None:
        """Return the known cost of candidates and judges together; None when none is known."""
        known = [number for number in (self.answering, self.judging) if number is not None]
        return sum(known) if known else None

    def per_100(self, cost: float | None) -> float | None:
        """Return a cost for 100 sessions, which is a lower bound if some prices are unknown."""
        return None if cost is None or not self.sessions else 100 * cost / self.sessions

    def document(self) -> Json:
        """Return the group as JSON."""
        return {
            "name": self.name,
            **self.rate.document(),
            "results": self.results,
            "coverage": self.coverage,
            "tests": self.tests,
            "cases": self.cases,
            "sessions": self.sessions,
            "evaluations": self.evaluations,
            "latency": _rounded(self.latency, 4),
            "cost": {
                name: {"total": _rounded(usd, 8), "per100Sessions": _rounded(self.per_100(usd), 8)}
                for name, usd in (
                    ("candidates", self.answering),
                    ("judges", self.judging),
                    ("all", self.cost),
                )
            }
            | {"unpriced": self.unpriced},
            "flakiness": {
                "cases": self.attempted,
                "flaky": self.flaky,
                "share": self.flakiness,
                "flip": self.flip,
            },
        }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)


def flip_probability(passed: int, attempts: int) -> float:
    """Return the probability that two of at least two attempts differ in passing.

    Unbiased: the mean over all ways to draw two of them.
    """
    return 2 * passed * (attempts - passed) / (attempts * (attempts - 1))


def partly_judged(groups: Sequence[ResultGroup]) -> list[bool]:
    """Return for each group whether its pass rate is of a part of its results alone.

    Some are not judged, and fewer of them are than of another of these groups: its rate is hardly
    comparable with that one.
    """
    most = max((group.rate.judged for group in groups), default=0)
    return [0 < group.rate.judged < min(group.results, most) for group in groups]


class GroupTotals:
    """Adds up the results of one group."""

    def __init__(self) -> None:
        self._results = self._attempted = self._flaky = 0
        self._flips = 0.0
        self._files: set[str] = set()
        self._cases: dict[str, dict[Hashable, Counts]] = {}
        """The counts of each row, by file."""
        self._more_cases: dict[str, Counter[Counts]] = {}
        """How many cases of a file whose results are added in sums have which counts."""
        self._answers = _Facts()
        self._judgements = _Facts()

    def add_result(
        self,
        case: tuple[str, Hashable],
        verdict: Verdict | None,
        answers: Sequence[CallFacts],
        judgements: Sequence[CallFacts],
        attempts: Sequence[Verdict],
    ) -> None:
        """Add the result of a case: the file, and what names the row, such as its digest.

        The others are the fields of `MeasuredResult`.
        """
        self._results += 1
        file, row = case
        rows = self._cases.get(file)
        if rows is None:
            self._files.add(file)
            rows = self._cases[file] = {}
        rows[row] = add_verdict(rows.get(row, _NONE), verdict)
        self._answers.add(answers)
        self._judgements.add(judgements)
        if len(attempts) > 1:
            self._attempted += 1
            self._flaky += len(set(attempts)) > 1
            self._flips += flip_probability(attempts.count("pass"), len(attempts))

    def sums(self) -> list[Any]:
        """Return the sums of the results of one file as JSON, for `add_sums`."""
        counts = Counter(chain.from_iterable(rows.values() for rows in self._cases.values()))
        return [
            *(self._results, self._attempted, self._flaky, self._flips),
            [[*each, times] for each, times in counts.items()],
            *(facts.sums() for facts in (self._answers, self._judgements)),
        ]

    def add_sums(self, file: str, sums: Sequence[Any]) -> None:
        """Add results of a file in sums; other results of this group share no answer with them."""
        results, attempted, flaky, flips, clusters, answers, judgements = sums
        self._results += results
        self._attempted += attempted
        self._flaky += flaky
        self._flips += flips
        self._files.add(file)
        cases = self._more_cases.setdefault(file, Counter())
        for *counts, times in clusters:
            cases[Counts(*counts)] += times
        self._answers.add_sums(*answers)
        self._judgements.add_sums(*judgements)

    def group(
        self, key: tuple[str | None, ...], name: str, names: tuple[str, ...] = ()
    ) -> ResultGroup:
        """Return the sums of the group."""
        answers, judgements = self._answers, self._judgements
        by_file = {file: Counter(rows.values()) for file, rows in self._cases.items()}
        for file, counts in self._more_cases.items():
            by_file.setdefault(file, Counter()).update(counts)
        return ResultGroup(
            key=key,
            name=name,
            rate=rate_of_files(by_file.values()),
            results=self._results,
            tests=len(self._files),
            cases=sum(sum(counts.values()) for counts in by_file.values()),
            sessions=answers.count,
            evaluations=judgements.count,
            latency=answers.seconds / answers.timed if answers.timed else None,
            answering=answers.total,
            judging=judgements.total,
            unpriced_answers=answers.unpriced,
            unpriced_judgements=judgements.unpriced,
            attempted=self._attempted,
            flaky=self._flaky,
            flip=self._flips / self._attempted if self._attempted else None,
            names=names,
        )


def sum_results(
    rows: Sequence[str],
    verdicts: Sequence[Verdict | None],
    attempts: Iterable[Sequence[Verdict]],
    answers: Iterable[Spending],
    judgements: Iterable[Spending],
) -> list[Any]:
    """Return what `GroupTotals.sums` returns of results of one file, whose calls come once each.

    Each verdict is on the row at its place.
    """
    several = [each for each in attempts if len(each) > 1]
    return [
        len(rows),
        len(several),
        sum(len({*each}) > 1 for each in several),
        sum((flip_probability(each.count("pass"), len(each)) for each in several), 0.0),
        [[*counts, times] for counts, times in count_rows(rows, verdicts).items()],
        _sum_spending([*answers]),
        _sum_spending([*judgements]),
    ]


def _sum_spending(calls: Sequence[Spending]) -> list[Any]:
    """Return what `_Facts.sums` returns of calls."""
    costs = [cost for cost, _ in calls if cost is not None]
    times = [seconds for _, seconds in calls if seconds is not None]
    count = len(calls)
    return [count, count - len(costs), len(times), sum(times, 0.0), sum(costs, 0.0)]


class _Facts:
    """Sums answers or judgements, each once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
        self._more = 0
        self.unpriced = self.timed = 0
        self.seconds = 0.0
        self._cost = 0.0

    def add(self, facts: Sequence[CallFacts]) -> None:
        seen = self._seen
        for digest, cost, seconds in facts:
            if digest in seen:
                continue
            seen.add(digest)
            if cost is None:
                self.unpriced += 1
            else:
                self._cost += cost
            if seconds is not None:
                self.seconds += seconds
                self.timed += 1

    def sums(self) -> list[Any]:
        return [self.count, self.unpriced, self.timed, self.seconds, self._cost]

    def add_sums(self, count: int, unpriced: int, timed: int, seconds: float, cost: float) -> None:
        self._more += count
        self.unpriced += unpriced
        self.timed += timed
        self.seconds += seconds
        self._cost += cost

    @property
    def count(self) -> int:
        """Return how many there are."""
        return len(self._seen) + self._more

    @property
    def total(self) -> float | None:
        """Return the known cost; None if prices are unknown and the others are 0."""
        return None if self.unpriced and not self._cost else self._cost
