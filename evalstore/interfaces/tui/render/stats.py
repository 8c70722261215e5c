"""The statistics of a run: the table of a grouping, and a group in detail with its trend."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from evalstore.comparison.cost_text import SIMULATED
from evalstore.core.display import (
    BLANK,
    WORKSPACE,
    StyledLine,
    clip,
    heading,
    interval_bar,
    percent,
    plural,
    safe,
    text_lines,
    widest,
)
from evalstore.interfaces.tui.render.documents.reading import READING
from evalstore.interfaces.tui.render.plot import PlottedLine, PlottedPoint, beside, plot_lines
from evalstore.interfaces.tui.render.verdicts import rate_text, short_names
from evalstore.interfaces.tui.widgets.grid_columns import GAP, MARGIN, NEVER, Column
from evalstore.interfaces.tui.widgets.grid_lines import StyledCell
from evalstore.interfaces.tui.widgets.text_view import wrap_line
from evalstore.results.stats.groups import answers_cost, answers_cost_per_100, judging_cost

if TYPE_CHECKING:
    from evalstore.results.stats.groups import ResultGroup
    from evalstore.results.stats.stats import Stats
    from evalstore.results.stats.trend import Trend

_BAR = 20
_NAME = 36
"""Columns of a name that there must be room for before a further column is shown."""
_WIDE = 110
"""The width from which on the trend stands beside the details."""
_LEAST = 6
"""The least height of the trend."""
_TITLES = (
    *("passed", "95% interval", "of", "cases", "answers"),
    *("latency", "asking", "100 answers", "judging", "flaky"),
)
"""The titles of the columns after the name."""
_PRIORITY = (1, 3, 2, 7, 8, 6, 9, 4, 5, 10)
"""The columns in the order in which there is room for them."""


# --- the table


def group_cells(group: ResultGroup, currency: str) -> tuple[StyledCell, ...]:
    """Return the cells of a group."""
    rate = group.rate
    colour = "faint" if rate.rate is None else ""
    return (
        StyledCell(group.name, "faint" if None in group.key else ""),
        StyledCell(rate.text, colour),
        StyledCell(interval_bar(rate.interval, rate.rate, _BAR), colour),
        StyledCell(f"{rate.passed:,}/{rate.judged:,}"),
        StyledCell(f"{group.cases:,}"),
        StyledCell(f"{group.sessions:,}"),
        StyledCell("" if group.latency is None else f"{group.latency:.2f}s"),
        StyledCell(answers_cost(group, currency)),
        StyledCell(answers_cost_per_100(group, currency)),
        StyledCell(judging_cost(group, currency)),
        StyledCell("" if group.flip is None else percent(group.flip)),
    )


def group_columns(title: str, cells: Sequence[Sequence[StyledCell]]) -> list[Column]:
    """Return the columns, each as wide as what is in it; the names are the last to be cut.

    There is no room for a column without a text.
    """
    columns = [*zip(*cells, strict=True)] or [()] * (len(_TITLES) + 1)
    widths = [
        max(len(name), widest(cell.text for cell in column))
        for name, column in zip((title, *_TITLES), columns, strict=True)
    ]
    needed = MARGIN + min(widths[0], _NAME)
    since = dict.fromkeys(_PRIORITY, NEVER)
    for number in _PRIORITY:
        if any(cell.text for cell in columns[number]):
            needed += GAP + widths[number]
            since[number] = needed
    since[1] = 0
    return [
        Column(title, 14, grows=True, most=widths[0]),
        *(
            Column(name, widths[number], right=number != 2, since=since[number])
            for number, name in enumerate(_TITLES, 1)
        ),
    ]


# --- a group in detail


def group_lines(
    stats: Stats, group: ResultGroup, trend: Trend | None, width: int, height: int
) -> Iterator[StyledLine]:
    """Yield a group in detail, and below it or at its right the trend, once it is read."""
    details = list(_detail_lines(stats, group))
    if width >= _WIDE:
        room = width * 2 // 5
        left = [StyledLine(spans) for line in details for spans in wrap_line(line, room - GAP)]
        drawn = trend_lines(trend, width - room - GAP, height)
        yield from beside(left, list(drawn), room + GAP)
        return
    yield from details
    yield BLANK
    rows = sum(1 for line in details for _ in wrap_line(line, width))
    yield from trend_lines(trend, width, max(_LEAST, height - rows - 1))


def _detail_lines(stats: Stats, group: ResultGroup) -> Iterator[StyledLine]:
    """Yield the name and the figures of a group."""
    currency = stats.currency
    yield heading(group.name)
    judged, results = group.rate.judged, plural(group.results, "result")
    covered = f"{judged:,} of {results} judged" if judged < group.results else ""
    yield from text_lines("; ".join(filter(None, (rate_text(group.rate), covered))))
    if (rate := group.rate).unresolved and rate.rate is not None:
        name = "undecided" if rate.unresolved == group.undecided else "undecided or error"
        between = f"between {100 * rate.rate:.1f} and {percent(rate.best_rate)}"
        yield from text_lines(
            f"{name}: {rate.unresolved:,} of {judged:,}, so the pass rate is {between}"
        )
    yield from text_lines(
        f"{plural(group.tests, 'test file')}, {plural(group.cases, 'case')}, "
        f"{plural(group.sessions, 'answer')}, {plural(group.evaluations, 'verdict')}"
    )
    unpriced = f"; {group.unpriced:,} without a known price" if group.unpriced else ""
    share = f" ({answers_cost_per_100(group, currency)} for 100 answers)" if group.answering else ""
    marked = f"; {SIMULATED}" if stats.is_simulated and group.cost else ""
    yield from text_lines(
        f"answers {answers_cost(group, currency)}{share}, "
        f"judging {judging_cost(group, currency)}{unpriced}, when they were made{marked}"
    )
    if group.attempted:
        yield from text_lines(
            f"flaky: two attempts at the same case differ in {percent(group.flip or 0.0)}; "
            f"attempts disagree in {plural(group.flaky, 'result')} of {group.attempted:,}"
        )
    rerolls = stats.rerolls.text(stats.total.rate.passed)
    if rerolls:
        yield from text_lines(f"all groups together: {rerolls}", "pending")
    if stats.selection:
        yield from text_lines(f"partial run: {stats.selection}", "pending")


def trend_lines(trend: Trend | None, width: int, height: int) -> Iterator[StyledLine]:
    """Yield the pass rate of each candidate in the runs, with a hollow point for some cases."""
    lines = [line for line in trend.lines if line.points] if trend else []
    runs = {point.run for line in lines for point in line.points}
    if trend is None or len(runs) < 2:
        yield from text_lines("no trend: no earlier run" if trend else READING, "faint")
        return
    has_now = len(trend.runs) - 1 in runs and trend.runs[-1].id == WORKSPACE
    count = len(runs) - has_now
    yield heading(f"pass rate, {plural(count, 'run')}{' and now' * has_now}")
    names = short_names([line.candidate for line in lines])
    plotted = [
        PlottedLine(safe(name), [PlottedPoint(*point) for point in line.points])
        for name, line in zip(names, lines, strict=True)
    ]
    room = max(height - 1 - len(trend.notes), len(plotted) + 1)  # each name has a row
    yield from plot_lines(plotted, trend.dates, width, room)
    for note in trend.notes:
        yield from text_lines(clip(note, width), "faint")
