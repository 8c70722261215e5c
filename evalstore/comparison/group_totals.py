"""The sums of the results of a group: pass rates, costs, latencies and flakiness.

An answer that several cases of a group share, and a judgement of it, count once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.core.values import Json

if TYPE_CHECKING:
    from evalstore.comparison.statistics import Rate

PARTLY_TEXT = "~ marks a group with fewer verdicts than others"
"""What explains the sign before the rate of a group that is partly judged."""


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
