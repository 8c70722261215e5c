"""The screen with the statistics of a run by candidate, system prompt, tag and file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from evalstore.core.display import (
    BLANK,
    WORKSPACE,
    StyledLine,
    StyledSpan,
    clip,
    columns_of,
    half_up,
    heading,
    interval_bar,
    percent,
    plural,
    safe,
    short,
    short_names,
    text_lines,
    widest,
)
from evalstore.core.runs import SIMULATED
from evalstore.interfaces.tui.grid import GAP, Column, Grid, StyledCell
from evalstore.interfaces.tui.page_lines import PENDING, READING, FooterHint
from evalstore.interfaces.tui.render.charts import (
    PlottedLine,
    Series,
    plot_lines,
    series_line,
)
from evalstore.interfaces.tui.render.verdicts import rate_text
from evalstore.interfaces.tui.screens.actions import ActionsPage
from evalstore.interfaces.tui.screens.base import PanelPage
from evalstore.interfaces.tui.text_view import FittedView, TextView, wrap_line
from evalstore.planning.open_project import open_store
from evalstore.results.stats.groups import (
    ResultGroup,
    answers_cost,
    answers_cost_per_100,
    judging_cost,
)
from evalstore.store.revisions import WORK

if TYPE_CHECKING:
    from evalstore.results.report_overview import Trend
    from evalstore.results.stats.stats import Stats


_SEPARATORS = re.compile(r'["\s,]+')
_DIMENSIONS = ("model", "prompt", "tag", "file")
_NAMES = {"model": "candidate", "prompt": "system prompt", "tag": "tag", "file": "file"}
_TABLE_IDS = tuple(f"stats.{name}" for name in _DIMENSIONS)
"""The ids of the actions that show each table."""


class StatsPage(ActionsPage):
    """Shows rates, intervals, costs and latency, and how they changed."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_square_bracket", "turn(1)", "Next table", id="stats.next_table"),
        Binding(
            "left_square_bracket", "turn(-1)", "Previous table", show=False, id="stats.last_table"
        ),
        *(
            Binding(str(n + 1), f"table({n})", f"By {_NAMES[name]}", show=False, id=_TABLE_IDS[n])
            for n, name in enumerate(_DIMENSIONS)
        ),
    ]
    FOOTER = (
        "list.open",
        FooterHint("Table", ("stats.last_table", "stats.next_table")),
        FooterHint("Group by", _TABLE_IDS),
        FooterHint("Run", ("page.run",)),
        *(PENDING, "page.copy", "page.save"),
    )
    TITLE = "Statistics"
    WAY = "{history.stats} on a run, {cases.stats} on the cases"
    HELP = """\
Pass rates, costs and times of a run, by candidate, by system prompt, by tag and by file. Details of
the line under the cursor, and the trend of each candidate, are below. A hollow point is a partial
run. {list.open} shows the cases of the line.

Costs are those of all answers and verdicts, also when an earlier run paid for them. The list of
runs has what the run itself paid."""
    PANELS: ClassVar[Mapping[str, str]] = {"groups": "Results", "facts": "Details"}
    DETAILS = FittedView
    DEFAULT_CSS = "StatsPage > #tables { height: 1; background: $panel; }"
    HORIZONTAL_BREAKPOINTS = PanelPage.HORIZONTAL_BREAKPOINTS[:-1]  # the plot takes the width

    export_name = "statistics"

    def __init__(self, revision: str | None) -> None:
        """`revision` is a run; None: the workspace."""
        super().__init__()
        self.revision = revision
        self._subject = f"run {short(revision)}" if revision else "workspace"
        self._tables: Sequence[Stats] = ()
        self._trend: Trend | None = None
        self._shown = 0
        self._rows: list[tuple[StyledCell, ...]] = []
        """The cells of the table."""

    def compose_above(self) -> ComposeResult:
        """Lay out the names of the tables, too."""
        yield from super().compose_above()
        yield TextView(id="tables", is_fixed=True)

    def on_mount(self) -> None:
        """Read the run."""
        self.set_title("statistics", self._subject, READING)
        self.grid.focus()
        self.reload()

    def reload(self) -> None:
        """Read the statistics; those of a run do not change, but there may be more runs."""
        before = self._tables if self.revision else ()
        revision = self.revision or WORK
        self.fetch(lambda: before or self.source.stats(revision, _DIMENSIONS), self.show_data)

    def show_data(self, tables: Sequence[Stats]) -> None:
        """Show what was read, then read the trend."""
        self._tables = tables
        self.show_table(self.grid.cursor)
        location, by_candidate = self.source.location, tables[_DIMENSIONS.index("model")]

        def read() -> Trend:
            from evalstore.results.report_overview import trend_until

            with open_store(location) as store:
                return trend_until(location, store, by_candidate)

        def show(trend: Trend) -> None:
            self._trend = trend
            self.follow_cursor(stay=True)

        self.fetch(read, show, group="trend")

    # --- the tables

    @property
    def stats(self) -> Stats | None:
        """Return the table that is shown."""
        return self._tables[self._shown] if self._tables else None

    @property
    def group(self) -> ResultGroup | None:
        """Return the highlighted group."""
        return self.grid.at_cursor(self.stats.groups if self.stats else ())

    def show_table(self, cursor: int = 0) -> None:
        """Show the table of the chosen dimension."""
        stats = self.stats
        if stats is None:
            return
        total = stats.total
        rate = rate_text(total.rate, is_of_some=stats.leaves_out_cases)
        undecided = f"{total.undecided:,} undecided" if total.undecided else ""
        self.set_title("statistics", self._subject, (rate, rate.partition(" (")[0]), undecided)
        names = [
            f"{number} {_NAMES[name].removeprefix('system ')}  "
            for number, name in enumerate(_DIMENSIONS, 1)
        ]
        colours = ("heading" if n == self._shown else "faint" for n in range(len(names)))
        tabs = StyledLine(tuple(map(StyledSpan, names, colours)))
        self.query_one("#tables", TextView).show([tabs])
        grid = self.grid
        grid.opens = lambda row: _filter_of(stats.by[0], stats.groups[row]) != ""
        self._rows = [group_cells(stats, group) for group in stats.groups]
        columns = group_columns(_NAMES[stats.by[0]], self._rows)
        grid.show(columns, len(self._rows), self._rows.__getitem__, cursor=cursor)
        is_empty = not (total.rate.judged or total.sessions)
        self.set_empty(self.with_keys(_NOTHING) if is_empty else "")

    @on(Grid.Moved, "#groups")
    def move_cursor(self) -> None:
        """Show the details of the highlighted group."""
        self.follow_cursor()

    def follow_cursor(self, *, stay: bool = False) -> None:
        """Show the highlighted group; with `stay`, scrolled as it is."""
        group, stats, trend = self.group, self.stats, self._trend
        if group and stats:
            self.query_one("#facts", FittedView).fit(
                lambda width, height: group_lines(stats, group, trend, width, height), stay=stay
            )

    # --- keys

    @on(Grid.Chosen, "#groups")
    def open_group(self) -> None:
        """Show the cases of the run that belong to the group."""
        if self.group:
            self.browser.open(
                "cases",
                self.revision,
                _filter_of(_DIMENSIONS[self._shown], self.group),
            )

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the name of the highlighted group."""
        return (self.group.name, "the name") if self.group else ("", "")

    def action_table(self, number: int) -> None:
        """Show the table of a dimension."""
        self._shown = number % len(_DIMENSIONS)
        self.show_table()

    def action_turn(self, by: int) -> None:
        """Show the next table."""
        self.action_table(self._shown + by)


_NOTHING = """\
There are no answers yet.

{page.run} asks and judges what is missing."""


def _filter_of(dimension: str, group: ResultGroup) -> str:
    """Return the filter that lists the cases of a group; empty when there is none."""
    if dimension == "prompt":
        return f"prompt:{short(group.key[0])}" if group.key[0] else 'prompt:"no prompt"'
    if None in group.key:
        return ""
    if '"' in group.name:  # which cannot be typed within quotes: a part of it
        return f"{dimension}:{max(_SEPARATORS.split(group.name), key=len)}"
    return f'{dimension}:"{group.name}"' if group.name else ""


_BAR = 20
_NAME = 36
"""Columns of a name that there must be room for before a further column is shown."""
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


def group_cells(stats: Stats, group: ResultGroup) -> tuple[StyledCell, ...]:
    """Return the cells of a group; of a run of some cases, counts in the place of a rate."""
    rate, currency = group.rate, stats.currency
    colour = "faint" if rate.rate is None else ""
    texts = (
        rate.text,
        interval_bar(rate.interval, rate.rate, _BAR),
        f"{rate.passed:,}/{rate.judged:,}",
    )
    if stats.leaves_out_cases:
        texts = group.counts, "", ""
    return (
        StyledCell(group.name, "faint" if None in group.key else ""),
        *(StyledCell(text, colour) for text in texts),
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

    A column without a text is left out.
    """
    columns = [*zip(*cells, strict=True)] or [()] * (len(_TITLES) + 1)
    names, *widths = [widest(cell.text for cell in column) for column in columns]
    return [
        Column(title, max(names, len(title)), least=_NAME),
        *(
            Column(
                name,
                width and max(width, len(name)),
                rank=_PRIORITY.index(number),
                right=number != 2,
            )
            for number, (name, width) in enumerate(zip(_TITLES, widths, strict=True), 1)
        ),
    ]


# --- a group in detail


def group_lines(
    stats: Stats, group: ResultGroup, trend: Trend | None, width: int, height: int
) -> Iterator[StyledLine]:
    """Yield a group in detail, and below it the trend, once it is read."""
    details = list(_detail_lines(stats, group))
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
    is_of_some = stats.leaves_out_cases
    passed = rate_text(group.rate, is_of_some=is_of_some)
    yield from text_lines("; ".join(filter(None, (passed, covered))))
    if (rate := group.rate).unresolved and rate.rate is not None and not is_of_some:
        name = "undecided" if rate.unresolved == group.undecided else "undecided or error"
        between = f"between {half_up(100 * rate.rate)} and {percent(rate.best_rate)}"
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
        yield from text_lines(f"all groups: {rerolls}", "pending")
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
    counted = f"{plural(len(runs) - has_now, 'run')}{' and now' * has_now}"
    yield heading(f"pass rate by candidate, all cases, {counted}")
    names = short_names([line.candidate for line in lines])
    plotted = [
        PlottedLine(safe(name), line.points, trend.end_text(line))
        for name, line in zip(names, lines, strict=True)
    ]
    room = height - 1 - len(trend.notes)
    if room < _LEAST + 2 * len(plotted):  # lines would hide each other
        yield from _bar_lines(plotted, width)
        return
    yield from plot_lines(plotted, trend.dates, width, room)
    for note in trend.notes:
        yield from text_lines(clip(note, width), "faint")


def _bar_lines(lines: Sequence[PlottedLine], width: int) -> Iterator[StyledLine]:
    """Yield the rates of each name as bars in a line of its own, without those of some cases."""
    widest_name = widest(line.name for line in lines)
    for line in lines:
        rates = [point.rate for point in line.points if not point.is_partial]
        ends = (percent(rates[0]), percent(rates[-1])) if rates else ("", "no complete run")
        name = f"{line.name}{' ' * (widest_name - columns_of(line.name) + GAP)}"
        bars = series_line(Series(rates, *ends), width - columns_of(name))
        yield StyledLine((StyledSpan(name), *bars.spans))
