"""A run that the browser has started: its progress, then how it ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.render.run import progress_lines, result_lines
from evalstore.interfaces.tui.screens.dialogs.dialogs import Dialog

if TYPE_CHECKING:
    from evalstore.interfaces.tui.state.background_run import BackgroundRun
    from evalstore.results.flips.verdict_changes import VerdictChanges


class RunPage(Dialog):
    """How far the run is, then how it ended; below it the cases go on changing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "cases", "Show cases", id="run.cases"),
        Binding("escape,backspace", "hide", "Continue browsing", id="run.hide"),
        Binding("c", "stop", "Cancel the run", id="run.stop"),
        Binding("escape,backspace", "back", "Close", id="page.back"),
        Binding("d", "compare", "Compare", id="run.compare"),
    ]
    TITLE = "Run in progress"
    WAY = "{plan.do} on the plan of a run; {page.run} during a run"
    HELP = """\
The progress of the run. It continues while you browse: the right end of each title shows the
progress, and {page.run} leads back here. What is finished is stored, also when you cancel or quit.
At its end it shows what broke or was fixed since the previous run; {run.compare} compares them."""
    run_progress = ""

    DEFAULT_CSS = """
    RunPage.-going > #box { height: 10; }
    """

    def __init__(self, runner: BackgroundRun) -> None:
        super().__init__(classes="-going")
        self.runner = runner
        self._changes: VerdictChanges | None = None

    def on_mount(self) -> None:
        """Show the progress; from now on it is drawn with that of all other screens."""
        self.body.focus()
        if self.runner.is_over:
            self.show_end()
        self.show_progress()

    def on_resize(self) -> None:
        """Draw bars of another width once the text has its new one; Textual calls this, too."""
        self.call_after_refresh(self.show_progress)

    def reload(self, *, stay: bool = True) -> None:
        """Draw the progress again."""
        self.browser.runs.draw()

    def show_progress(self) -> None:
        """Show the progress, as far as all screens show it."""
        if self.runner.is_over:
            return
        progress = self.runner.shown
        self.set_title(self.runner.request.title, "stopping …" if progress.stops else "")
        self.body.show(progress_lines(progress, max(10, self.body.size.width - 40)), stay=True)

    def refresh_ages(self) -> None:
        """Draw the end of the run again, which says how long ago the run before it was."""
        if self.runner.end is not None:
            self.body.show(result_lines(self.runner.end, self._changes), stay=True)

    def show_end(self) -> None:
        """Show how the run ended."""
        self.remove_class("-going")
        runner = self.runner
        if runner.problem is not None:
            self.set_title(runner.request.title, "failed")
            self.show_problem(runner.problem)
            self.body.show(())
        if runner.end is not None:
            self.set_title(runner.request.title, runner.end.summary.status)
            self.body.show(result_lines(runner.end, self._changes))
            run = runner.end.summary.run
            self.fetch(lambda: self._read_changes(run), self._show_changes, group="changes")
        self.refresh_bindings()

    def _read_changes(self, run: str) -> VerdictChanges | None:
        try:
            return self.source.flips(run)
        except EvalstoreError:  # the end is shown all the same; the comparison shows the problem
            return None

    def _show_changes(self, changes: VerdictChanges | None) -> None:
        if changes is not None and self.runner.end is not None:
            self._changes = changes
            self.body.show(result_lines(self.runner.end, changes), stay=True)
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: `stop` during the run, its cases afterwards."""
        if action in ("stop", "hide"):
            return not self.runner.is_over
        if action == "cases":
            return self.runner.end is not None
        if action == "compare":
            return self._changes is not None
        return action != "back" or self.runner.is_over

    def action_stop(self) -> None:
        """Stop the run; a second time, at once."""
        self.runner.interrupt()
        self.browser.runs.draw()

    def action_hide(self) -> None:
        """Leave the run to itself."""
        self.app.pop_screen()
        key = self.browser.key_of("page.run")
        self.notify(f"The run continues; {key} leads back to it.", markup=False)

    def action_cases(self) -> None:
        """Show the cases of the run."""
        if self.runner.end is not None:
            self.app.pop_screen()
            self.browser.show_new_run(self.runner.end.summary.run)

    def action_back(self) -> None:
        """Leave; from the cases of an older run, to those of the new run if it had all cases."""
        from evalstore.runs.interactive_run import ALL

        is_whole = self.runner.end is not None and self.runner.request == ALL
        if is_whole and self.browser.is_above_run(self):
            self.action_cases()
        else:
            super().action_back()

    def action_compare(self) -> None:
        """Show what broke and what was fixed."""
        if self.runner.end is not None and self._changes is not None:
            self.app.pop_screen()
            self.browser.show_comparison(self._changes.since, self.runner.end.summary.run)
