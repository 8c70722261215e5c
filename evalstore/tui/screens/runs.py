"""The first screen: the state of the workspace, and all runs, newest first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from evalstore.display import plural, short
from evalstore.operations.first_pushes import push_text
from evalstore.operations.views.run_text import run_counts_text
from evalstore.operations.views.styled_text import (
    BLANK,
    StyledLine,
    heading,
    text_lines,
)
from evalstore.operations.views.verdict_order import verdict_counts
from evalstore.tui.render.dashboard import rate_series
from evalstore.tui.render.plot import series_line, verdict_strip
from evalstore.tui.render.run_columns import STRIP, passed_text, run_columns, state_cells
from evalstore.tui.render.verdicts import when
from evalstore.tui.screens.actions import ActionsPage
from evalstore.tui.screens.choice import NO_EARLIER_RUN
from evalstore.tui.screens.dashboard import DashboardReader
from evalstore.tui.screens.run_differences import DifferenceReader
from evalstore.tui.widgets.footer import FooterHint, KeyFooter
from evalstore.tui.widgets.grid import Grid
from evalstore.tui.widgets.grid_lines import StyledCell
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.operations.views.cases import RunLine

_FIRST = 20
"""Runs that are compared with those before them at once, the others when they are drawn."""
_TREND = 70
"""The width of the trend below the list."""
_PARTIAL = "~"
"""The sign of a run of a selection."""
_STAR = "*"
"""The sign of a change in points that does not show all that differs."""
_STOPPED = {
    "interrupted": ("■", "It was stopped before its end"),
    "over budget": ("$", "It was stopped at the cost or time limit"),
    "incomplete": ("!", "It came to its end, but calls failed or something waits"),
}
"""The signs and the meanings of the states of runs that are not complete."""
_SAME = StyledCell("=", "faint", "0.0")
_NAMED = "the previous run of all cases,"
_NO_RUNS = "there are no runs yet: {page.run} makes one"
_ON_MARK = "the cursor is on the marked line: move it to another one, or mark that with {list.mark}"
_NEVER = """\
Nothing has been run yet.

{page.run} asks and judges what the workspace has; so does 'evalstore run'."""

_HELP = """\
The state of the workspace above all runs, the newest first: the pass rate that stored answers give
it now, with its 95 % interval; pending work and its price; cases that broke in the last runs and
were not fixed since; the pass rates of the runs of all cases, from 0 to 100 %. Of cases that broke
for which there is no room, {history.compare} on the run of that time lists all.

A line has the share of judged cases that passed, a strip of their verdicts (█ pass, ░ fail, others
by their signs), the price and the message, or what was edited since the run before. A run that is
not complete has its state (■ interrupted, $ over budget, ! incomplete): {list.open} shows its
cases, too, and {page.run} continues it. ~ is a partial run, of some cases. 'change' compares the
share, in points, with the previous run of all cases: = if no verdict differs. With * the points do
not tell all: some verdicts broke and others were fixed, or that run had other cases or candidates.
Below is what the run under the cursor did, and what * means there.

{list.mark} marks runs: {history.compare} compares two marked ones, or a marked one with the one
under the cursor, and removes the marks. Without marks it compares the run under the cursor with the
previous run, and the workspace with the newest run."""


class RunsPage(ActionsPage):
    """Shows the state of the workspace, the runs, and what the highlighted one did."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "run", "Run", id="page.run"),
        Binding("w", "status", "Pending work", id="history.status"),
        Binding("slash", "search", "Search all texts", show=False, id="history.search"),
        Binding("d", "compare", "Compare", id="history.compare"),
        Binding("S", "stats", "Statistics", id="history.stats"),
    ]
    FOOTER = (
        FooterHint("", "list.open"),
        FooterHint("", "page.run"),
        FooterHint("", "history.status"),
        FooterHint("", "history.compare"),
        FooterHint("", "history.stats"),
        FooterHint("Search", "history.search"),
        FooterHint("", "list.mark"),
        FooterHint("", "page.copy"),
        FooterHint("", "page.save"),
    )
    TITLE = "Runs"
    HELP = _HELP
    PANELS: ClassVar[Mapping[str, str]] = {"details": "Details"}
    DEFAULT_CSS = """
    RunsPage {
        & > #details { height: 35%; min-height: 9; }
        & > #dashboard { height: 4; }
        &.-short > #dashboard { height: 1; }
        &.-tiny > #dashboard { display: none; }
    }
    """

    export_name = "runs"

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[RunLine] = []
        self.dashboard = DashboardReader(self, self.show_state)
        self._differences = DifferenceReader(self, self._show_differences)

    def compose(self) -> ComposeResult:
        """Lay out the state of the workspace, the list, and what the highlighted run did."""
        yield self.title_line()
        yield self.problem_line()
        yield self.dashboard.view()
        yield Grid(id="runs", marks=True)
        yield TextView(id="details").add_class("detail")
        yield KeyFooter()

    def on_mount(self) -> None:
        """Read the runs."""
        self.set_title("evalstore", "runs")
        self.reload(stay=False)

    def reload(self, *, stay: bool = True) -> None:
        """Read the runs again."""
        highlighted = self.highlighted if stay else None
        self.fetch(self.source.runs, lambda runs: self.show_runs(runs, highlighted))

    @property
    def highlighted(self) -> str | None:
        """Return the id of the highlighted run; None for the workspace."""
        number = self.query_one("#runs", Grid).cursor - 1
        return self._runs[number].id if 0 <= number < len(self._runs) else None

    def show_runs(self, runs: list[RunLine], highlighted: str | None) -> None:
        """Show runs; the first line is the workspace."""
        grid = self.query_one("#runs", Grid)
        marked = {self._runs[number - 1].id if number else "" for number in grid.marked}
        self._runs = runs
        cursor = next((n for n, run in enumerate(runs, 1) if run.id == highlighted), 0)
        grid.show(
            run_columns(runs, self.dashboard.state), len(runs) + 1, self._cells, cursor=cursor
        )
        ids = ["", *(run.id for run in runs)]
        grid.marked = {number for number, id in enumerate(ids) if id in marked}
        self._show_title()
        if not grid.has_focus and self.focused is None:
            grid.focus()
        self.dashboard.follow(runs)
        for number in range(min(len(runs), _FIRST)):
            self._change(number)

    @on(Grid.Marked, "#runs")
    def _show_title(self) -> None:
        """Show how many runs there are, and how many lines are marked."""
        marked = len(self.query_one("#runs", Grid).marked)
        self.set_title(
            "evalstore", plural(len(self._runs), "run"), f"{marked} marked" if marked else ""
        )

    def on_screen_suspend(self) -> None:
        """Stop reading the state of the workspace while another screen is shown."""
        self.dashboard.suspend()

    def on_screen_resume(self) -> None:
        """Read the state of the workspace again; Textual calls the base class's method, too."""
        self.dashboard.resume()
        self.refresh_ages()

    def show_state(self) -> None:
        """Show the state of the workspace in its line, too."""
        self.query_one("#runs", Grid).set_columns(run_columns(self._runs, self.dashboard.state))

    def _show_differences(self) -> None:
        """Draw what differs from the runs before, in the list and below it."""
        grid = self.query_one("#runs", Grid)
        grid.refresh()
        if grid.cursor:
            self.query_one("#details", TextView).show(self._describe(grid.cursor - 1))

    def refresh_ages(self) -> None:
        """Draw the list again: how long ago the runs were is worked out as it is drawn."""
        self.query_one("#runs", Grid).refresh()
        self.dashboard.refresh_ages()

    def _cells(self, row: int) -> Sequence[StyledCell]:
        if row == 0:
            text = "current cases" if self._runs else "no run yet"
            return state_cells(self.dashboard.state, text, self.dashboard.note)
        run = self._runs[row - 1]
        rate = run.rate
        strip = verdict_strip(run.verdicts, STRIP)
        return (
            StyledCell(run.id[:8]),
            StyledCell(when(run.started)),
            StyledCell(_sign(run), "pending"),
            StyledCell("" if run.status == "complete" else run.status, "pending"),
            StyledCell("-" if rate is None else f"{100 * rate:.1f}%", "faint" * (rate is None)),
            self._change(row - 1),
            StyledCell(passed_text(run)),
            StyledCell(run.cost),
            StyledCell(verdict_counts(run.verdicts, signs=False), parts=strip),
            StyledCell(f"{run.asked:,}"),
            StyledCell(f"{run.judged:,}"),
            StyledCell(f"{run.reused:,}", "faint"),
            StyledCell(run.push.writer if run.push else "", "faint"),
            StyledCell(run.note, "faint"),
        )

    def _change(self, number: int) -> StyledCell:
        """Return the difference of the rate in points, or that the run is partial.

        With a star it does not show all that differs; with other cases or candidates it has no
        colour.
        """
        run = self._runs[number]
        if run.is_partial:
            return StyledCell("partial", "faint")
        before = _run_before(self._runs, number)
        if run.rate is None or before is None or before.rate is None:
            return StyledCell("")
        points = round(100 * (run.rate - before.rate), 1)
        differences = self._differences.find((run.id, before.id))
        if _other_basis(run, before):
            return StyledCell(f"{points:+.1f}{_STAR}", "faint")
        star = _STAR if differences and differences.is_hidden else ""
        if not points:
            return _SAME if differences and not star else StyledCell(f"0.0{star}", "faint")
        return StyledCell(f"{points:+.1f}{star}", "pass" if points > 0 else "fail")

    @on(Grid.Moved, "#runs")
    def follow_cursor(self, message: Grid.Moved) -> None:
        """Show the details of the highlighted run."""
        self.query_one("#details", TextView).show(
            self._describe(message.row - 1) if message.row else self._describe_workspace()
        )

    def _describe_workspace(self) -> Iterator[StyledLine]:
        yield heading("the workspace")
        if self._runs:
            yield from text_lines(
                self.with_keys("{list.open} shows the current verdicts of all cases.")
            )
            text = self.with_keys("{history.status} shows what a run would do, why, and its cost.")
            yield from text_lines(text, "faint")
        else:
            yield from text_lines(self.with_keys(_NEVER))

    def _describe(self, number: int) -> Iterator[StyledLine]:
        run = self._runs[number]
        note = f"  {run.message}" if run.message else ""
        git = f"  git {run.git}" if run.git else ""
        yield heading(f"run {run.id[:8]}{git}{note}")
        share = (
            "nothing judged" if run.rate is None else f"{100 * run.rate:.1f}% of {run.counted:,}"
        )
        yield from text_lines(f"{verdict_counts(run.verdicts)}: {share}")
        failed = f", {plural(run.failed, 'call')} failed" if run.failed else ""
        seconds = (run.ended - run.started) / 1e6
        yield from text_lines(f"{run_counts_text(run)}{failed}")
        yield from _difference_lines(self._runs, number, self._differences)
        if run.status in _STOPPED:
            why = _STOPPED[run.status][1]
            hint = self.with_keys("{list.open} shows its cases, {page.run} does what is left.")
            yield from text_lines(f"{why}: {hint}", "pending")
        yield from _origin_lines(run)
        yield from text_lines(f"candidates: {', '.join(run.models)}", "faint")
        yield from text_lines(f"cost: {run.shared_cost}; took {seconds:.1f} s", "faint")
        yield from _selection_lines(run)
        yield BLANK
        yield series_line(rate_series(self._runs[number:], "pass rate"), _TREND)

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the id of the highlighted run."""
        return self.highlighted or "", "the id of the run"

    @on(Grid.Chosen, "#runs")
    def open_run(self) -> None:
        """Show the cases of the highlighted run."""
        self.browser.show_cases(self.highlighted)

    # --- keys

    def action_compare(self) -> None:
        """Compare two marked runs, or the marked one with the highlighted one.

        Without marks, compare the highlighted one with the previous run.
        """
        grid = self.query_one("#runs", Grid)
        if not self._runs:
            if grid.row_count:
                self.notify(self.with_keys(_NO_RUNS), markup=False)
            return
        marked = len(grid.marked)
        sides = sorted(grid.marked if marked == 2 else grid.marked | {grid.cursor})
        if not marked:
            sides = [grid.cursor, grid.cursor + 1]
        if len(sides) != 2:
            text = _ON_MARK if marked == 1 else f"{marked} are marked, and two can be compared"
            self.notify(self.with_keys(text), markup=False)
            return
        newer, older = sides
        if older > len(self._runs):
            self.notify(NO_EARLIER_RUN, markup=False)
            return
        now = self._runs[newer - 1].id if newer else None
        grid.marked = set()
        grid.refresh()
        self._show_title()
        self.browser.show_comparison(self._runs[older - 1].id, now)

    def action_stats(self) -> None:
        """Show the statistics of the highlighted run, or of the workspace."""
        if self._runs:
            self.browser.show_stats(self.highlighted)
        elif self.query_one("#runs", Grid).row_count:
            self.notify(self.with_keys(_NO_RUNS), markup=False)


def _origin_lines(run: RunLine) -> Iterator[StyledLine]:
    """Yield who pushed a run, and who made it; nothing for a run of this machine."""
    if run.push:
        by = f", run by {run.author}" if run.author else ""
        yield from text_lines(f"{push_text(run.push)}{by}", "faint")


def _selection_lines(run: RunLine) -> Iterator[StyledLine]:
    """Yield the options of a run, if it has any."""
    if run.is_partial:
        yield from text_lines(f"partial run: {run.selection}", "pending")
    elif run.selection:
        yield from text_lines(f"arguments: {run.selection}", "faint")


def _run_before(runs: Sequence[RunLine], number: int) -> RunLine | None:
    """Return the previous run of all cases that judged some."""
    earlier = (run for run in runs[number + 1 :] if not run.is_partial)
    return next((run for run in earlier if run.rate is not None), None)


def _difference_lines(
    runs: Sequence[RunLine], number: int, reader: DifferenceReader
) -> Iterator[StyledLine]:
    """Yield what was edited, what differs from the previous run of all cases, and why a star."""
    run, before = runs[number], _run_before(runs, number)
    if run.edits:
        yield from text_lines(f"edits: {'; '.join(run.edits)}", "faint")
    if before is None or run.rate is None or run.is_partial:
        return
    basis = _other_basis(run, before)
    if basis:
        yield from text_lines(f"{_STAR} {basis}", "faint")
    differences = reader.find((run.id, before.id))
    if differences and differences.text:
        star = f"{_STAR} " if differences.is_hidden and not basis else ""
        since = "since that run" if basis else f"since {_NAMED} {short(before.id)}"
        yield from text_lines(f"{star}{since}: {differences.text}", "faint")


def _other_basis(run: RunLine, before: RunLine) -> str:
    """Return how the basis of the rates of two runs differs; empty if it does not."""
    differences = []
    if set(run.models) != set(before.models):
        differences.append("had other candidates")
    if run.counted != before.counted:
        differences.append(f"judged {plural(before.counted, 'result')}, not {run.counted:,}")
    if not differences:
        return ""
    return f"{_NAMED} {short(before.id)}, {' and '.join(differences)}"


def _sign(run: RunLine) -> str:
    """Return the sign of a run that is not complete, or partial."""
    if run.status in _STOPPED:
        return _STOPPED[run.status][0]
    return _PARTIAL if run.is_partial else ""
