"""What a run comes to by candidate, system prompt, tag and file, and how runs went before it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual import on
from textual.binding import Binding, BindingType

from evalstore.display import interval_bar, money, plural, short
from evalstore.operations.views.styled_text import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    text_lines,
)
from evalstore.tui.render.reading import READING
from evalstore.tui.render.verdicts import rate_text, sparkline
from evalstore.tui.screens.actions import ActionsPage
from evalstore.tui.state.verdict_order import verdict_counts
from evalstore.tui.widgets.footer import FooterHint, KeyFooter
from evalstore.tui.widgets.grid import Grid
from evalstore.tui.widgets.grid_columns import Column
from evalstore.tui.widgets.grid_lines import StyledCell
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.operations.stats import Stats
    from evalstore.operations.views.cases import RunLine
    from evalstore.reports.group_totals import ResultGroup

_BAR = 20
_TREND = 60
"""Runs that the trend shows."""
_SEPARATORS = re.compile(r'["\s,]+')
_DIMENSIONS = ("model", "prompt", "tag", "file")
_NAMES = {"model": "candidate", "prompt": "system prompt", "tag": "tag", "file": "file"}
_TITLES = {name: f"{word}s" for name, word in _NAMES.items()}


class _PageData(NamedTuple):
    """What the page shows."""

    stats: Sequence[Stats]
    runs: Sequence[RunLine]
    """Newest first."""


class StatsPage(ActionsPage):
    """Rates, intervals, costs and latency of a run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_square_bracket", "turn(1)", "Next table", id="stats.next_table"),
        Binding(
            "left_square_bracket", "turn(-1)", "Previous table", show=False, id="stats.last_table"
        ),
        *(
            Binding(str(number), f"table('{name}')", _TITLES[name], show=False, id=f"stats.{name}")
            for number, name in enumerate(_DIMENSIONS, 1)
        ),
    ]
    FOOTER = (
        FooterHint("", "list.open"),
        FooterHint("Table", "stats.last_table", "stats.next_table"),
        FooterHint("", "page.save"),
    )
    TITLE = "Statistics"
    WAY = "{history.stats} on a run, {cases.stats} on the cases"
    HELP = """\
Pass rates with their 95 % intervals, costs and times of a run, by candidate, by system prompt, by
tag and by file. {list.open} shows the cases that a line is about."""
    DEFAULT_CSS = """
    StatsPage {
        & > #tables { height: 1; padding: 0 1; background: $panel; }
        & > #facts { height: 11; border-top: solid $panel; }
    }
    """

    export_name = "statistics"

    def __init__(self, revision: str) -> None:
        super().__init__()
        self.revision = revision
        self._data: _PageData | None = None
        self._shown = 0

    def compose(self) -> ComposeResult:
        """The names of the tables, a table, and the details of a group and of the runs."""
        yield self.title_line()
        yield self.problem_line()
        tables = TextView(id="tables")
        tables.can_focus = False
        yield tables
        yield self.empty_state()
        yield Grid(id="groups")
        yield TextView(id="facts").add_class("detail")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the run."""
        self.set_title("statistics", f"run {self.revision[:8]}", READING)
        self.query_one(Grid).focus()
        self.reload(stay=False)

    def reload(self, *, stay: bool = True) -> None:
        """Read it; what a run holds stays as it is, but the runs become more."""
        before = self._data.stats if self._data else None

        def read() -> _PageData:
            return _PageData(
                before or self.source.stats(self.revision, _DIMENSIONS), self.source.runs()
            )

        self.fetch(read, self.show_data)

    def show_data(self, data: _PageData) -> None:
        """Show it."""
        self._data = data
        self.show_table(self.query_one("#groups", Grid).cursor)

    # --- the tables

    @property
    def stats(self) -> Stats | None:
        """The table that is shown."""
        return self._data.stats[self._shown] if self._data else None

    @property
    def group(self) -> ResultGroup | None:
        """The highlighted group."""
        number = self.query_one("#groups", Grid).cursor
        groups = self.stats.groups if self.stats else ()
        return groups[number] if number < len(groups) else None

    def show_table(self, cursor: int = 0) -> None:
        """Show the table of the chosen dimension."""
        stats = self.stats
        if stats is None:
            return
        total = stats.total
        self.set_title("statistics", f"run {self.revision[:8]}", rate_text(total.rate))
        self.query_one("#tables", TextView).show([self._tabs()])
        grid = self.query_one("#groups", Grid)
        grid.opens = lambda row: _filter_of(stats.by[0], stats.groups[row]) != ""
        grid.show(_columns(stats), len(stats.groups), self._cells, cursor=cursor)
        nothing = not total.rate.judged
        self.set_empty(self.with_keys(_NOTHING) if nothing and not total.sessions else "")
        grid.display = not (nothing and not total.sessions)

    def _tabs(self) -> StyledLine:
        return StyledLine(
            tuple(
                StyledSpan(
                    f"{number + 1} {_TITLES[name]}   ",
                    "heading" if number == self._shown else "faint",
                )
                for number, name in enumerate(_DIMENSIONS)
            )
        )

    def _cells(self, row: int) -> Sequence[StyledCell]:
        assert self.stats
        group, currency = self.stats.groups[row], self.stats.currency
        rate = group.rate
        colour = "faint" if rate.rate is None else ""
        return (
            StyledCell(group.name, "faint" if None in group.key else ""),
            StyledCell("-" if rate.rate is None else f"{100 * rate.rate:.1f}%", colour),
            StyledCell(interval_bar(rate.interval, rate.rate, _BAR), colour),
            StyledCell(f"{rate.passed:,}/{rate.judged:,}"),
            StyledCell(f"{group.cases:,}"),
            StyledCell(f"{group.sessions:,}"),
            StyledCell("" if group.latency is None else f"{group.latency:.2f}s"),
            StyledCell(_money(group.per_100(group.answering), currency)),
            StyledCell(_money(group.cost, currency)),
            StyledCell("" if group.flip is None else f"{100 * group.flip:.0f}%"),
        )

    @on(Grid.Moved, "#groups")
    def follow_cursor(self) -> None:
        """Show the details of the highlighted group."""
        if self.group:
            self.query_one("#facts", TextView).show(self._group_lines(self.group))

    def _group_lines(self, group: ResultGroup) -> Iterator[StyledLine]:
        assert self._data
        assert self.stats
        currency = self.stats.currency
        yield heading(group.name)
        covered = f"{100 * group.coverage:.0f}% judged" if group.coverage is not None else ""
        yield from text_lines(
            f"{rate_text(group.rate)}; {covered} of {plural(group.results, 'result')}"
        )
        yield from text_lines(
            f"{plural(group.tests, 'test')}, {plural(group.cases, 'case')}, "
            f"{plural(group.sessions, 'session')}, {plural(group.evaluations, 'judgement')}"
        )
        yield from text_lines(
            f"answers {_money(group.answering, currency)}, "
            f"judging {_money(group.judging, currency)}; for 100 sessions "
            f"{_money(group.per_100(group.answering), currency)} and "
            f"{_money(group.per_100(group.judging), currency)}"
            + (f"; {group.unpriced:,} without a known price" if group.unpriced else "")
        )
        if group.attempted:
            yield from text_lines(
                f"flaky: two attempts at the same case differ in {100 * (group.flip or 0):.0f}%; "
                f"attempts disagree in {group.flaky:,} of {plural(group.attempted, 'result')}"
            )
        rerolls = self.stats.rerolls.text(self.stats.total.rate.passed)
        if rerolls:
            yield from text_lines(f"in all, {rerolls}", "pending")
        yield BLANK
        yield from self._trend_lines()

    def _trend_lines(self) -> Iterator[StyledLine]:
        """How the runs went until this one; those of a selection are left out."""
        assert self._data
        runs = self._data.runs
        number = next((n for n, run in enumerate(runs) if run.id == self.revision), 0)
        this = runs[number : number + 1]
        before = [run for run in reversed(runs[number:]) if not run.is_partial][-_TREND:]
        if len(before) > 1:
            shares = sparkline([run.rate for run in before], _TREND)
            yield StyledLine((StyledSpan("rate by run  ", "faint"), StyledSpan(shares)))
            costs = [run.cost for run in before]
            most = max((cost for cost in costs if cost), default=0.0)
            if most:
                heights = [None if cost is None else cost / most for cost in costs]
                line = sparkline(heights, _TREND)
                yield StyledLine(
                    (
                        StyledSpan("cost by run  ", "faint"),
                        StyledSpan(line),
                        StyledSpan(f"  at most {money(most)}"),
                    )
                )
        else:
            which = " of all cases" if runs[number + 1 :] else ""
            yield from text_lines(f"no trend: there is no earlier run{which}", "faint")
        for run in this:
            if run.is_partial:
                yield from text_lines(f"arguments of this run: {run.selection}", "pending")
            cost = f"this run has paid {money(run.cost)}"
            yield from text_lines(f"{cost}; {verdict_counts(run.verdicts)}", "faint")

    # --- keys

    @on(Grid.Chosen, "#groups")
    def open_group(self) -> None:
        """Show the cases of the run that belong to the group."""
        if self.group:
            self.browser.show_cases(self.revision, _filter_of(_DIMENSIONS[self._shown], self.group))

    @property
    def copy_text(self) -> tuple[str, str]:
        """The name of the highlighted group."""
        return (self.group.name, "the name") if self.group else ("", "")

    def action_table(self, name: str) -> None:
        """Show the table of a dimension."""
        self._shown = _DIMENSIONS.index(name)
        self.show_table()

    def action_turn(self, by: int) -> None:
        """Show the next table."""
        self._shown = (self._shown + by) % len(_DIMENSIONS)
        self.show_table()


_NOTHING = """\
The run has no answers.

{page.run} asks and judges what is missing."""


def _columns(stats: Stats) -> list[Column]:
    return [
        Column(_NAMES[stats.by[0]], 14, grows=True),
        Column("passed", 6, right=True),
        Column("", _BAR, since=60),
        Column("of", 11, right=True, since=38),
        Column("cases", 7, right=True, since=86),
        Column("sessions", 8, right=True, since=96),
        Column("latency", 8, right=True, since=106),
        Column("per 100", 12, right=True, since=120),
        Column("cost", 12, right=True, since=76),
        Column("flaky", 5, right=True, since=128),
    ]


def _filter_of(dimension: str, group: ResultGroup) -> str:
    """The filter that lists its cases; empty when there is none."""
    if dimension == "prompt":
        return f"prompt:{short(group.key[0])}" if group.key[0] else 'prompt:"no prompt"'
    if None in group.key:
        return ""
    if '"' in group.name:  # which cannot be typed within quotes: a part of it
        return f"{dimension}:{max(_SEPARATORS.split(group.name), key=len)}"
    return f'{dimension}:"{group.name}"' if group.name else ""


def _money(amount: float | None, currency: str) -> str:
    return "unknown" if amount is None else money(amount, currency)
