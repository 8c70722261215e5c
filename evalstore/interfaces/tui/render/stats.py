"""The statistics of a run: the table of a grouping, and a group in detail with its trend."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.comparison.cost_text import (
    SIMULATED,
    answers_cost,
    answers_cost_per_100,
    judging_cost,
)
from evalstore.core.display import interval_bar, money, percent, plural, widest
from evalstore.core.styled_text import BLANK, StyledLine, heading, text_lines
from evalstore.interfaces.tui.render.plot import Series, beside, series_line, series_lines
from evalstore.interfaces.tui.render.verdicts import rate_text
from evalstore.interfaces.tui.widgets.grid_columns import GAP, MARGIN, NEVER, Column
from evalstore.interfaces.tui.widgets.grid_lines import StyledCell
from evalstore.interfaces.tui.widgets.text_view import wrap_line

if TYPE_CHECKING:
    from evalstore.comparison.group_totals import ResultGroup
    from evalstore.results.stats.stats import Stats

_BAR = 20
_NAME = 36
"""Columns of a name that there must be room for before a further column is shown."""
_WIDE = 110
"""The width from which on the trend stands beside the details."""
_PLOT = 34
"""The least width of a plot that stands beside another."""
_MOST, _LEAST = 10, 6
"""The height of a plot at most, and that of plots below each other at least."""
_TITLES = (
    *("passed", "95% interval", "of", "cases", "sessions"),
    *("latency", "answers", "per 100", "judging", "flaky"),
)
"""The titles of the columns after the name."""
_PRIORITY = (1, 3, 2, 7, 8, 6, 9, 4, 5, 10)
"""The columns in the order in which there is room for them."""


class GroupFigures(NamedTuple):
    """The figures of a group in a run."""

    rate: float | None
    cost: float | None
    latency: float | None
    """Mean seconds of an answer."""
    is_least: bool = False
    """Whether the cost of some answers or judgements is not known, so that it was more."""


_Place = tuple[str, tuple[str | None, ...]]


class RunFigures(NamedTuple):
    """The figures of all groups of a run, by grouping and key; of system prompts, by name."""

    run: str
    groups: Mapping[_Place, GroupFigures]


def figures_of(stats: Sequence[Stats]) -> RunFigures:
    """Return the figures of all groups of the statistics of one run."""
    return RunFigures(
        stats[0].run,
        {
            _place_of(table, group): GroupFigures(
                group.rate.rate,
                group.cost,
                group.latency,
                bool(group.unpriced_answers or group.unpriced_judgements),
            )
            for table in stats
            for group in table.groups
        },
    )


def _place_of(stats: Stats, group: ResultGroup) -> _Place:
    """Return by what a group is found in other runs: an edited prompt keeps its name."""
    by = stats.by[0]
    return by, (group.name,) if by == "prompt" else group.key


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
        StyledCell("" if group.flip is None else f"{100 * group.flip:.0f}%"),
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
    stats: Stats, group: ResultGroup, history: Sequence[RunFigures], width: int, height: int
) -> Iterator[StyledLine]:
    """Yield a group in detail with its trend; `history` are the runs, the oldest first."""
    details = list(_detail_lines(stats, group))
    series = list(trend_series(stats, group, history))
    if width < _WIDE:
        yield from details
        yield BLANK
        rows = sum(1 for line in details for _ in wrap_line(line, width))
        left_over = height - rows - 1
        yield from _trend_lines(series, width, max(left_over, len(series)))
        return
    room = width // 2 - GAP
    left = [StyledLine(spans) for line in details for spans in wrap_line(line, room)]
    right = list(_trend_lines(series, width - room - 2 * GAP, height))
    yield from beside(left, right, room + 2 * GAP)


def _detail_lines(stats: Stats, group: ResultGroup) -> Iterator[StyledLine]:
    """Yield the name and the figures of a group."""
    currency = stats.currency
    yield heading(group.name)
    judged, results = group.rate.judged, plural(group.results, "result")
    covered = f"{judged:,} of {results} judged" if judged < group.results else ""
    undecided = f"{group.undecided:,} undecided" if group.undecided else ""
    yield from text_lines("; ".join(filter(None, (rate_text(group.rate), undecided, covered))))
    yield from text_lines(
        f"{plural(group.tests, 'test file')}, {plural(group.cases, 'case')}, "
        f"{plural(group.sessions, 'session')}, {plural(group.evaluations, 'judgement')}"
    )
    unpriced = f"; {group.unpriced:,} without a known price" if group.unpriced else ""
    share = (
        f" ({answers_cost_per_100(group, currency)} per 100 sessions)" if group.answering else ""
    )
    marked = f"; {SIMULATED}" if stats.is_simulated and group.cost else ""
    yield from text_lines(
        f"answers {answers_cost(group, currency)}{share}, "
        f"judging {judging_cost(group, currency)}{unpriced}, when they were made{marked}"
    )
    if group.attempted:
        yield from text_lines(
            f"flaky: two attempts at the same case differ in {100 * (group.flip or 0):.0f}%; "
            f"attempts disagree in {group.flaky:,} of {plural(group.attempted, 'result')}"
        )
    rerolls = stats.rerolls.text(stats.total.rate.passed)
    if rerolls:
        yield from text_lines(f"all groups together: {rerolls}", "pending")
    if stats.selection:
        yield from text_lines(f"partial run: {stats.selection}", "pending")


def trend_series(
    stats: Stats, group: ResultGroup, history: Sequence[RunFigures]
) -> Iterator[Series]:
    """Yield the pass rate, the cost and the latency of a group in the runs, the oldest first."""
    place = _place_of(stats, group)
    figures = [run.groups[place] for run in history if place in run.groups]
    count = len(figures) - (stats.is_workspace and bool(figures))
    runs = plural(count, "run") + (" and now" if stats.is_workspace else "")
    rates = [each.rate for each in figures]
    yield Series(f"pass rate, {runs}", rates, *_ends(rates, percent), middle="50%")
    costs = [each.cost for each in figures]
    if any(costs):
        title = "known cost" if any(each.is_least for each in figures) else "cost"
        yield _scaled(title, costs, lambda cost: money(cost, stats.currency))
    latencies = [each.latency for each in figures]
    if any(latencies):
        yield _scaled("latency", latencies, lambda seconds: f"{seconds or 0:.2f}s")


def _scaled(
    title: str, values: Sequence[float | None], text: Callable[[float | None], str]
) -> Series:
    """Return a series from 0 to its largest number."""
    most = max(value for value in values if value is not None)
    return Series(title, values, *_ends(values, text), top=text(most), most=most, bottom="0")


def _ends(values: Sequence[float | None], text: Callable[[float | None], str]) -> tuple[str, str]:
    """Return the texts of the oldest and of the newest number."""
    known = [value for value in values if value is not None]
    return (text(known[0]), text(known[-1])) if known else ("", "nothing judged")


def _trend_lines(series: Sequence[Series], width: int, height: int) -> Iterator[StyledLine]:
    """Yield plots: side by side or below each other, or the first one above lines of bars."""
    if all(len(each.values) < 2 for each in series):
        yield from text_lines("no trend: no earlier run of all cases has this group", "faint")
        return
    if len(series) > 1 and width >= len(series) * _PLOT and height > len(series) + 2:
        each = width // len(series)
        blocks = [
            list(series_lines(each_series, each - 2 * GAP, min(_MOST, height)))
            for each_series in series
        ]
        yield from _side_by_side(blocks, each)
        return
    each_height = (height + 1) // len(series) - 1
    if len(series) > 1 and each_height >= _LEAST:
        for number, each_series in enumerate(series):
            yield from (BLANK,) * bool(number)
            yield from series_lines(each_series, width, min(_MOST, each_height))
        return
    others = series[1:] if height >= len(series) + 3 else series
    if others is not series:
        yield from series_lines(series[0], width, min(_MOST, height - len(others)))
    title = max(len(each_series.title) for each_series in others) if others else 0
    for each_series in others:
        yield series_line(each_series._replace(title=f"{each_series.title:<{title}}"), width)


def _side_by_side(blocks: Sequence[list[StyledLine]], width: int) -> Iterator[StyledLine]:
    """Yield blocks of lines beside each other."""
    lines = blocks[0]
    for number, block in enumerate(blocks[1:], 1):
        lines = list(beside(lines, block, number * width))
    yield from lines
