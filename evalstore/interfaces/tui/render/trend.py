"""The pass rates of runs in one line: bars, and what they mean in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.display import columns_of, percent, plural
from evalstore.core.styled_text import StyledSpan
from evalstore.interfaces.tui.render.plot import sparkline
from evalstore.interfaces.tui.render.verdicts import when

if TYPE_CHECKING:
    from evalstore.comparison.statistics import Rate
    from evalstore.results.table.cases import RunLine

MOST_POINTS = 60
"""Runs that a trend shows."""
_FEW = 12
"""Bars that are shown before any words about them."""
_AXIS = "(0% to 100%)"


class DatedRate(NamedTuple):
    """The pass rate of a run, or of the workspace now."""

    rate: float
    started: int | None
    """When the run started; None: it is that of now."""


def trend_points(runs: Sequence[RunLine], now: Rate | None) -> list[DatedRate]:
    """Return the pass rates of runs of all cases, the oldest first, then that of `now`.

    `runs` are the newest first.
    """
    judged = [
        DatedRate(run.rate, run.started)
        for run in runs
        if run.rate is not None and not run.is_partial
    ]
    points = judged[:MOST_POINTS][::-1]
    if points and now is not None and now.rate is not None:
        points.append(DatedRate(now.rate, None))
    return points


def time_of(point: DatedRate) -> str:
    """Return how long ago a run was, or `now`."""
    return "now" if point.started is None else when(point.started)


def trend_spans(points: Sequence[DatedRate], room: int) -> Iterator[StyledSpan]:
    """Yield two points or more as bars, and as many words about them as there is room for.

    The words are about the bars that are shown: the lowest and the highest, and their times.
    """
    wanted = min(len(points), _FEW)
    for number in range(len(_words(points))):
        count = len(points)
        while count > 2 and _width(points[-count:], number) > room:
            count -= 1
        shown = points[-count:]
        is_last = number == len(_words(points)) - 1
        if is_last or (count >= wanted and _width(shown, number) <= room):
            yield StyledSpan(_bars(shown))
            yield StyledSpan(_words(shown)[number], "faint")
            return


def _bars(points: Sequence[DatedRate]) -> str:
    bars = sparkline([point.rate for point in points], len(points))
    return f"{percent(points[0].rate)} {bars} {percent(points[-1].rate)}"


def _width(points: Sequence[DatedRate], number: int) -> int:
    return columns_of(_bars(points)) + columns_of(_words(points)[number])


def _words(points: Sequence[DatedRate]) -> tuple[str, ...]:
    """Return what is said of bars, the most first and nothing last."""
    rates = [point.rate for point in points]
    ends = f"lowest {percent(min(rates))}, highest {percent(max(rates))}"
    brief = f"{percent(min(rates))} to {percent(max(rates))}"
    first, last = time_of(points[0]), time_of(points[-1])
    times = first if first == last else f"{first} to {last}"
    count = sum(point.started is not None for point in points)
    about = f"{plural(count, 'run')} of all cases{' and now' * (last == 'now')}"
    return (
        f"  {_AXIS}  {ends}, {times}; {about}",
        f"  {_AXIS}  {ends}, {times}",
        f"  {ends}, {times}",
        f"  {brief}, {times}",
        f"  {ends}",
        f"  {brief}",
        "",
    )
