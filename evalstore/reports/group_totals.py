"""Sums the results of groups: pass rates, costs, latencies and flakiness.

An answer that several cases of a group share, and a judgement of it, count once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from evalstore.reports.statistics import (
    Counts,
    Rate,
    add_verdict,
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
    undecided: int = 0
    """Results that are undecided; the others that are unresolved are errors."""
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
            "undecided": self.undecided,
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
        self._results = self._attempted = self._flaky = self._undecided = 0
        self._flips = 0.0
        self._files: set[str] = set()
        self._cases: dict[str, dict[Hashable, Counts]] = {}
        """The counts of each row, by file."""
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
        self._undecided += verdict == "undecided"
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

    def group(
        self, key: tuple[str | None, ...], name: str, names: tuple[str, ...] = ()
    ) -> ResultGroup:
        """Return the sums of the group."""
        answers, judgements = self._answers, self._judgements
        by_file = {file: Counter(rows.values()) for file, rows in self._cases.items()}
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
            undecided=self._undecided,
            names=names,
        )


class _Facts:
    """Sums answers or judgements, each once."""

    def __init__(self) -> None:
        self._seen: set[int] = set()
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

    @property
    def count(self) -> int:
        """Return how many there are."""
        return len(self._seen)

    @property
    def total(self) -> float | None:
        """Return the known cost; None if prices are unknown and the others are 0."""
        return None if self.unpriced and not self._cost else self._cost
