"""The first screen: the state of the workspace, and all runs, newest first."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType

from evalstore.core.display import cost_text, percent, plural, status_word, verdict_counts
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.grid import Grid, StyledCell
from evalstore.interfaces.tui.page_lines import PENDING, READING, FooterHint
from evalstore.interfaces.tui.render.charts import verdict_strip
from evalstore.interfaces.tui.render.run_details import (
    FIRST,
    STOPPED,
    STRIP,
    change_cell,
    dashboard_lines,
    passed_text,
    run_columns,
    run_lines,
    state_cells,
    workspace_lines,
)
from evalstore.interfaces.tui.render.verdicts import when
from evalstore.interfaces.tui.screens.actions import NO_EARLIER_RUN, ActionsPage, OtherRuns
from evalstore.interfaces.tui.screens.dialogs import Dialog
from evalstore.interfaces.tui.text_view import FittedView, TextView
from evalstore.results.flips.verdict_changes import RunDifferences
from evalstore.results.table.cases import BROKE, RunLine

if TYPE_CHECKING:
    from evalstore.runs.status.dashboard import Dashboard

_PARTIAL = "~"
"""The sign of a run of a selection."""
_NO_RUNS = "no runs yet: {page.run} makes one"
_ON_MARK = "the cursor is on the marked line: move it to another one, or mark that with {list.mark}"

_HELP = """\
The state of the workspace, and below it all runs, the newest first. The state has the pass rate of
all stored answers with its 95 % interval; pending work and its price; what broke in the last runs
and was not fixed since; and the pass rates of the runs of all cases, from 0 to 100 %.

The line of a run has the share of judged cases that passed, a strip of their verdicts (█ pass, ░
fail), the price, its names, and the message, or what was edited since the run before. A partial
run, of some cases, has ~; one that did not complete has ■ interrupted, $ at limit or ! incomplete,
and {page.run} continues it. 'change' is the change of the share in points, by results
that broke or were fixed since the last verdict on each case; 0.0 if no verdict differs. * means
that some broke and others were fixed, or that some had no verdict before. Details of the run under
the cursor are below, or at the right in a wide terminal. A
line below the title (▶) names each run that another program carries out.
{history.broken} shows what broke in the run under the cursor; on the line of the workspace, what
broke in the last ten runs and was not fixed since.

{list.mark} marks runs: {history.compare} compares two marked ones, or a marked one with the one
under the cursor. Without marks it compares the run under the cursor with the previous run, and the
workspace with the newest run."""


_AT_ONCE = 5
"""Runs whose differences are read before they are shown."""
_PAUSE_SECONDS = 0.3
"""From the runs to the first reading: whoever opens a run at once does not wait for it."""
_REST = 4
"""After a reading there is a rest of so many times its duration."""
_REST_SECONDS = 5.0
"""The longest rest."""
_LONG_SECONDS = 1.0
"""A reading that takes longer says how far it has come."""
_GROUP = "dashboard"
_OLD = "old"
"""The note at figures that are old and are not being read."""


class RunsPage(ActionsPage):
    """Shows the state of the workspace, the runs, and what the highlighted one did."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "search", "Find", show=False, id="history.search"),
        Binding("d", "compare", "Compare", id="history.compare"),
        Binding("S", "stats", "Statistics", id="history.stats"),
        Binding("B", "broken", "What broke", show=False, id="history.broken"),
    ]
    FOOTER: ClassVar[Sequence[FooterHint | str]] = (
        "list.open",
        FooterHint("Run", ("page.run",)),
        PENDING,
        *("history.broken", "history.compare"),
        FooterHint("Find", ("history.search", "page.search")),
        *("history.stats", "list.mark", "page.copy", "page.save"),
    )
    TITLE = "Runs"
    HELP = _HELP
    PANELS: ClassVar[Mapping[str, str]] = {"runs": "Runs", "details": "Details"}
    MARKS = True
    DEFAULT_CSS = """
    RunsPage {
        & > #dashboard { height: 4; }
        &.-short > #dashboard { height: 1; }
        &.-tiny > #dashboard { display: none; }
    }
    """

    export_name = "runs"

    def __init__(self) -> None:
        super().__init__()
        self._runs: list[RunLine] = []
        self.state: Dashboard | None = None
        """The state of the workspace as it was read last."""
        self._is_old = False
        """Whether the state may have changed since it was read: its figures are faint."""
        self._is_awaited = False
        """Whether it has changed since the last reading began."""
        self._has_begun = False
        """Whether what is being read has not been shown yet."""
        self._progress = READING
        """How far the reading under way has come."""
        self._rests_until = 0.0
        """When the state may be read again, on the monotonic clock."""
        self._differences: dict[str, RunDifferences | None] = {}
        """Those of the runs that were asked for, which never change; None: they cannot be read."""
        self._undiffered: dict[str, None] = {}
        """The runs whose differences are to be read, or are being read."""

    def compose_above(self) -> ComposeResult:
        """Lay out the runs of other programs, and the state of the workspace."""
        yield from super().compose_above()
        yield OtherRuns(self.source.other_runs)
        dashboard = FittedView(id="dashboard")
        dashboard.can_focus = False
        yield dashboard

    def on_mount(self) -> None:
        """Read the runs."""
        self.set_title("evalstore", READING)
        self.reload()

    def reload(self) -> None:
        """Read the runs again."""
        self.fetch(self.source.runs, self.show_runs)

    @property
    def highlighted(self) -> str | None:
        """Return the id of the highlighted run; None for the workspace."""
        number = self.grid.cursor - 1
        return self._runs[number].id if 0 <= number < len(self._runs) else None

    def show_runs(self, runs: list[RunLine]) -> None:
        """Show runs; the first line is the workspace.

        The cursor stays on its run, also if it was moved while the runs were read.
        """
        highlighted = self.highlighted
        grid = self.grid
        marked = {self._runs[number - 1].id if number else "" for number in grid.marked}
        self._runs = runs
        cursor = next((n for n, run in enumerate(runs, 1) if run.id == highlighted), 0)
        grid.show(run_columns(runs, self.state), len(runs) + 1, self._cells, cursor=cursor)
        ids = ["", *(run.id for run in runs)]
        grid.marked = {number for number, id in enumerate(ids) if id in marked}
        self._show_title()
        if not grid.has_focus and self.focused is None:
            grid.focus()
        self._await_state()
        for number in range(min(len(runs), FIRST)):
            change_cell(runs, number, self._find_differences)

    @on(Grid.Marked, "#runs")
    def _show_title(self) -> None:
        """Show how many runs there are, and how many lines are marked."""
        marked = len(self.grid.marked)
        self.set_title(
            "evalstore", plural(len(self._runs), "run"), f"{marked} marked" if marked else ""
        )

    @on(OtherRuns.Changed)
    def draw_again(self) -> None:
        """Draw what was read of runs, and how far other programs are, in the list and below it."""
        self.grid.refresh()
        self._show_details(stay=True)

    def refresh_ages(self) -> None:
        """Draw the list again: how long ago the runs were is worked out as it is drawn."""
        self.grid.refresh()
        if self.grid.row_count:
            self._draw_state()

    def _cells(self, row: int) -> Sequence[StyledCell]:
        if row == 0:
            text = "current cases" if self._runs else "no run yet"
            return state_cells(self.state, text, self._note)
        run = self._runs[row - 1]
        rate, sign = run.rate, STOPPED.get(run.status, (_PARTIAL * run.is_partial,))[0]
        strip = verdict_strip(run.verdicts, STRIP)
        return (
            StyledCell(run.id[:8]),
            StyledCell(when(run.started)),
            StyledCell(sign, "pending"),
            StyledCell("" if run.status == "complete" else status_word(run.status), "pending"),
            StyledCell("" if run.is_partial else percent(rate), "faint" * (rate is None)),
            change_cell(self._runs, row - 1, self._find_differences),
            StyledCell(passed_text(run)),
            StyledCell(cost_text(run.cost, run.spending, brief=True)),
            StyledCell(verdict_counts(run.verdicts, signs=False), parts=strip),
            StyledCell(f"{run.asked:,}"),
            StyledCell(f"{run.judged:,}"),
            StyledCell(f"{run.reused:,}", "faint"),
            StyledCell(run.push.writer if run.push else "", "faint"),
            StyledCell(run.note, "faint"),
        )

    @on(Grid.Moved, "#runs")
    def follow_cursor(self) -> None:
        """Show the details of the highlighted run."""
        self._show_details()

    def _show_details(self, *, stay: bool = False) -> None:
        find, number = self._find_differences, self.grid.cursor - 1
        lines = (
            run_lines(self._runs, number, find, self.with_keys)
            if 0 <= number < len(self._runs)
            else workspace_lines(
                self.state,
                self._runs,
                self.query_one(OtherRuns).runs,
                self.with_keys,
                find,
            )
        )
        self.query_one("#details", TextView).show(lines, stay=stay)

    # --- the differences of runs from earlier verdicts, read in the background as they are drawn

    def _find_differences(self, run: str) -> RunDifferences | None:
        """Return the differences of a run; None until they have been read."""
        if run not in self._differences and run not in self._undiffered:
            if not self._undiffered:
                self.call_later(self._read_differences)
            self._undiffered[run] = None
        return self._differences.get(run)

    def _read_differences(self) -> None:
        location, runs = self.source.location, [*self._undiffered][:_AT_ONCE]

        def read() -> dict[str, RunDifferences | None]:
            from evalstore.results.flips.verdict_changes import read_run_differences

            with suppress(EvalstoreError):  # a damaged store: the page of the run says so
                return {**read_run_differences(location, runs)}
            return dict.fromkeys(runs)

        def keep(found: dict[str, RunDifferences | None]) -> None:
            self._differences |= found
            for run in found:
                self._undiffered.pop(run, None)
            has_more = bool(self._undiffered)
            self.draw_again()
            if has_more:
                self._read_differences()

        self.fetch(read, keep, group="differences")

    # --- the state of the workspace above the runs: read in the background, while nothing else is

    @property
    def _note(self) -> str:
        """Return what is said of figures that are old; empty when they are not."""
        if not self._is_old:
            return ""
        return self._progress if self._is_due or self.state is None else _OLD

    @property
    def _is_due(self) -> bool:
        """Return whether the state is being read, or will be after a pause; not after a bug."""
        return _GROUP in self.pauses or (self._has_begun and self.reads(_GROUP))

    @property
    def _is_seen(self) -> bool:
        """Return whether the page is shown; below a run, or a plan in the making, it can wait.

        With many cases, two readings at once would take twice the memory.
        """
        screen = self.app.screen
        waits = isinstance(screen, Dialog) and screen.is_planning
        is_below = self.browser.shown_page is self and not (waits or self.browser.runs.is_running)
        return screen is self or is_below

    def on_screen_resume(self) -> None:
        """Read the state again, as files may have been edited; Textual calls the other one, too."""
        self._await_state()
        self.refresh_ages()

    def on_screen_suspend(self) -> None:
        """Stop reading the state, unless the page is still seen below a dialog."""
        if not self._is_seen:
            self.end_pause(_GROUP)
            self._is_awaited, self._has_begun = self._is_old, False
            self.workers.cancel_group(self, _GROUP)

    def _await_state(self) -> None:
        """Read the state soon.

        A reading under way goes on, so that many changes in a row do not keep its end away.
        """
        if self.grid.row_count:  # the runs are known
            self._is_old = self._is_awaited = True
            self.go_on_reading()

    def go_on_reading(self) -> None:
        """Read the state if that has waited for a page above this one."""
        if self._is_awaited and self._is_seen and not self._is_due:
            rest = max(_PAUSE_SECONDS, self._rests_until - time.monotonic())
            self.pause(_GROUP, rest, self._read_state)
        if self._is_old:
            self._draw_state()

    def _read_state(self) -> None:
        begun, self._progress = time.monotonic(), READING
        self._is_awaited, self._has_begun = False, True

        def show_progress(text: str) -> None:
            if self._is_old:
                self._progress = text
                self._draw_state()

        def read() -> Dashboard | EvalstoreError:
            try:
                with self.telling(show_progress, after=_LONG_SECONDS):
                    return self.source.dashboard()
            except EvalstoreError as problem:
                return problem

        def show(state: Dashboard | EvalstoreError) -> None:
            """Show what was read, and read again what has changed meanwhile."""
            now, self._has_begun = time.monotonic(), False
            self._rests_until = now + min(_REST * (now - begun), _REST_SECONDS)
            if isinstance(state, EvalstoreError):
                self.report_problem(_GROUP, state)
            else:
                self.state, self._is_old = state, self._is_awaited
            self._draw_state()
            self.go_on_reading()

        self.fetch(read, show, group=_GROUP)

    def _draw_state(self) -> None:
        """Show the state above the runs, in its line, and in its details."""
        state, runs, note, running = self.state, self._runs, self._note, self.browser.runs
        self.query_one("#dashboard", FittedView).fit(
            lambda width, height: dashboard_lines(
                state, runs, width, height, note=note, running=running.text
            )
        )
        self.grid.set_columns(run_columns(runs, state))
        if not self.grid.cursor:
            self._show_details(stay=True)

    @property
    def copy_text(self) -> tuple[str, str]:
        """Return the id of the highlighted run."""
        return self.highlighted or "", "the id of the run"

    @on(Grid.Chosen, "#runs")
    def open_run(self) -> None:
        """Show the cases of the highlighted run."""
        self.browser.open("cases", self.highlighted)

    # --- keys

    def _has_runs(self) -> bool:
        """Return whether there is a run; a message says that there is none once that is known."""
        if not self._runs and self.grid.row_count:
            self.notify(self.with_keys(_NO_RUNS), markup=False)
        return bool(self._runs)

    def action_compare(self) -> None:
        """Compare two marked runs, or the marked one with the highlighted one.

        Without marks, compare the highlighted one with the previous run.
        """
        grid = self.grid
        if not self._has_runs():
            return
        marked = len(grid.marked)
        sides = sorted(grid.marked if marked == 2 else grid.marked | {grid.cursor})
        if not marked:
            sides = [grid.cursor, grid.cursor + 1]
        if len(sides) != 2:
            text = (
                _ON_MARK
                if marked == 1
                else f"{marked} lines are marked: mark only two of them to compare these"
            )
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
        self.browser.open("compare", self._runs[older - 1].id, now)

    def action_broken(self) -> None:
        """Show the cases that broke in the last runs, or in the highlighted run."""
        if self._has_runs():
            self.browser.open("cases", self.highlighted, f"verdict:{BROKE}")

    def action_stats(self) -> None:
        """Show the statistics of the highlighted run, or of the workspace."""
        if self._has_runs():
            self.browser.open("stats", self.highlighted)
