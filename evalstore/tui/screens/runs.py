"""All runs, newest first, above them the workspace as it is now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import Binding, BindingType

from evalstore.display import money, plural
from evalstore.operations.views.run_text import counts_text
from evalstore.operations.views.styled_text import (
    BLANK,
    StyledLine,
    StyledSpan,
    heading,
    text_lines,
)
from evalstore.tui.render.verdicts import bar, sparkline, when
from evalstore.tui.screens.actions import ActionsPage
from evalstore.tui.state.verdict_order import verdict_counts
from evalstore.tui.widgets.footer import FooterHint, KeyFooter
from evalstore.tui.widgets.grid import Grid
from evalstore.tui.widgets.grid_columns import NEVER, Column
from evalstore.tui.widgets.grid_lines import StyledCell
from evalstore.tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from evalstore.operations.views.cases import RunLine

_STATE = "state"
_COLUMNS = (
    Column("run", 9),
    Column("when", 14),
    Column("", 1),
    Column(_STATE, 11, since=51),
    Column("passed", 6, right=True),
    Column("change", 6, right=True, since=68),
    Column("of", 9, right=True, since=62),
    Column("cost", 8, right=True, since=104),
    Column("", 8, since=110),
    Column("asked", 6, right=True, since=120),
    Column("judged", 6, right=True, since=128),
    Column("reused", 6, right=True, since=136),
    Column("message", 12, grows=True, since=76),
)
_STOPPED = {
    "interrupted": ("■", "It was stopped before its end"),
    "over budget": ("$", "It was stopped at the cost or time limit"),
    "incomplete": ("!", "It came to its end, but calls failed or something waits"),
}
"""Of runs that are not complete the sign and the meaning."""
_SAME = StyledCell("=", "faint", "0.0")
_NO_RUNS = "there are no runs yet: {page.run} makes one"
_NEVER = """\
Nothing has been run yet.

{page.run} asks and judges what the workspace has; so does 'evalstore run'."""


class RunsPage(ActionsPage):
    """The runs and what the highlighted one did."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("R", "run", "Run", id="page.run"),
        Binding("w", "status", "Pending work", id="history.status"),
        Binding("d", "compare", "Compare", id="history.compare"),
        Binding("S", "stats", "Statistics", id="history.stats"),
    ]
    FOOTER = (
        FooterHint("", "list.open"),
        FooterHint("", "page.run"),
        FooterHint("", "history.status"),
        FooterHint("", "history.compare"),
        FooterHint("", "history.stats"),
        FooterHint("", "list.mark"),
        FooterHint("", "page.copy"),
        FooterHint("", "page.save"),
    )
    TITLE = "Runs"
    HELP = """\
All runs, the newest first; above them the workspace as it is now. A line has the share of judged
cases that passed, the price and the message, and of a run that is not complete its state: ■ was
interrupted, $ over budget, ! incomplete. 'change' compares the share, in points, with the run of
all cases before it. Also of these {list.open} shows the cases and their
results; {page.run} continues them. Below is what the run under the cursor did, and how the
share went up and down until then.

{list.mark} marks runs: {history.compare} compares two marked ones. Without marks it compares the
run under the cursor with the run before it, and the workspace with the newest run."""
    DEFAULT_CSS = """
    RunsPage > TextView { height: 9; border-top: solid $panel; }
    """

    export_name = "runs"

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[RunLine] = []

    def compose(self) -> ComposeResult:
        """The list above what the run did."""
        yield self.title_line()
        yield self.problem_line()
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
        """The id of the highlighted run; None: the workspace."""
        number = self.query_one("#runs", Grid).cursor - 1
        return self._runs[number].id if 0 <= number < len(self._runs) else None

    def show_runs(self, runs: list[RunLine], highlighted: str | None) -> None:
        """Show them; the first line is the workspace."""
        grid = self.query_one("#runs", Grid)
        marked = {self._runs[number - 1].id if number else "" for number in grid.marked}
        self._runs = runs
        cursor = next((n for n, run in enumerate(runs, 1) if run.id == highlighted), 0)
        self.set_title("evalstore", plural(len(runs), "run"))
        grid.show(_columns(runs), len(runs) + 1, self._cells, cursor=cursor)
        ids = ["", *(run.id for run in runs)]
        grid.marked = {number for number, id in enumerate(ids) if id in marked}
        if not grid.has_focus and self.focused is None:
            grid.focus()

    def _cells(self, row: int) -> Sequence[StyledCell]:
        if row == 0:
            text = "current cases" if self._runs else "no run yet"
            blank = [StyledCell("")] * (len(_COLUMNS) - 3)
            return (
                StyledCell("workspace", "group"),
                StyledCell("now"),
                *blank,
                StyledCell(text, "faint"),
            )
        run = self._runs[row - 1]
        rate = run.rate
        colour = "faint" if rate is None else ""
        return (
            StyledCell(run.id[:8]),
            StyledCell(when(run.started)),
            StyledCell(_STOPPED.get(run.status, ("",))[0], "pending"),
            StyledCell("" if run.status == "complete" else run.status, "pending"),
            StyledCell("-" if rate is None else f"{100 * rate:.1f}%", colour),
            self._change(row - 1),
            StyledCell(f"{run.verdicts['pass']:,}/{run.counted:,}"),
            StyledCell("" if run.cost is None else money(run.cost)),
            StyledCell(bar(rate, 8), colour),
            StyledCell(f"{run.asked:,}"),
            StyledCell(f"{run.judged:,}"),
            StyledCell(f"{run.reused:,}", "faint"),
            StyledCell(run.message, "faint"),
        )

    def _change(self, number: int) -> StyledCell:
        """By how many points the rate differs from that of the run before; not of a selection."""
        run = self._runs[number]
        earlier = (other for other in self._runs[number + 1 :] if not other.is_partial)
        before = next((other.rate for other in earlier if other.rate is not None), None)
        if run.is_partial or run.rate is None or before is None:
            return StyledCell("")
        points = round(100 * (run.rate - before), 1)
        return StyledCell(f"{points:+.1f}", "pass" if points > 0 else "fail") if points else _SAME

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
                self.with_keys(
                    "{list.open} shows the cases with the verdicts that stored answers give them "
                    "now."
                )
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
        failed = f", {run.failed:,} failed" if run.failed else ""
        seconds = (run.ended - run.started) / 1e6
        yield from text_lines(f"{counts_text(run)}, {money(run.cost)}{failed}, {seconds:.1f} s")
        if run.status in _STOPPED:
            why = _STOPPED[run.status][1]
            hint = self.with_keys("{list.open} shows its cases, {page.run} does what is left.")
            yield from text_lines(f"{why}: {hint}", "pending")
        yield from text_lines(", ".join(run.models), "faint")
        if run.is_partial:
            yield from text_lines(f"arguments: {run.selection}", "pending")
        yield BLANK
        shares = [other.rate for other in reversed(self._runs[number:]) if not other.is_partial]
        yield StyledLine((StyledSpan("trend  ", "faint"), StyledSpan(sparkline(shares, 60))))

    @property
    def copy_text(self) -> tuple[str, str]:
        """The id of the highlighted run."""
        return self.highlighted or "", "the id of the run"

    @on(Grid.Chosen, "#runs")
    def open_run(self) -> None:
        """Show its cases."""
        self.browser.show_cases(self.highlighted)

    # --- keys

    def action_compare(self) -> None:
        """Compare two marked runs, else the highlighted one with the run before it."""
        grid = self.query_one("#runs", Grid)
        if not self._runs:
            if grid.row_count:
                self.notify(self.with_keys(_NO_RUNS), markup=False)
            return
        newer, older = grid.cursor, grid.cursor + 1
        if len(grid.marked) == 2:
            newer, older = sorted(grid.marked)
        elif len(grid.marked) > 2:
            self.notify("mark two runs, or none", markup=False)
            return
        if older > len(self._runs):
            self.notify("there is no run before this one", markup=False)
            return
        now = self._runs[newer - 1].id if newer else None
        self.browser.show_comparison(self._runs[older - 1].id, now)

    def action_stats(self) -> None:
        """Show the statistics of the highlighted run; on the workspace, of the newest."""
        run = self.highlighted or (self._runs[0].id if self._runs else None)
        if run:
            self.browser.show_stats(run)
        elif self.query_one("#runs", Grid).row_count:
            self.notify(self.with_keys(_NO_RUNS), markup=False)


def _columns(runs: Sequence[RunLine]) -> list[Column]:
    """Without room for the state when all runs are complete; it is saved with the others."""
    is_shown = any(run.status != "complete" for run in runs)
    return [
        replace(column, since=NEVER) if column.title == _STATE and not is_shown else column
        for column in _COLUMNS
    ]
