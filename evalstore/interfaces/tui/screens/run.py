"""A run from the browser: its plan with the reasons and the price, its progress, its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from evalstore.core.display import status_word
from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.interfaces.tui.data_source import BackgroundRun
from evalstore.interfaces.tui.page_lines import READING
from evalstore.interfaces.tui.render.run import (
    plan_lines,
    progress_lines,
    records_only,
    result_lines,
)
from evalstore.interfaces.tui.screens.actions import ActionsPage, edit_place
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.screens.dialogs import Dialog
from evalstore.results.names import EditPlace

if TYPE_CHECKING:
    from evalstore.runs.run import PlanPreview, RunRequest


_OF_FILE = (
    "This is a partial run (~): the trend of the runs leaves it out. "
    "{page.run} plans all pending work."
)


class PlanPage(Dialog):
    """What would be done, why and at which price; Enter does it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "do", "Run", id="plan.do"),
        Binding("escape,backspace", "back", "Cancel", id="page.back"),
        Binding("e", "edit", "Edit the file", id="plan.edit"),
        Binding("R", "run", "Run pending work", id="page.run"),
        Binding("w", "status", "Pending work", show=False, id="history.status"),
    ]
    TITLE = "Plan of a run"
    WAY = "{page.run} where something is missing, {case.judge} on an answer"
    HELP = """\
What a run would do, why, and at which price. Nothing is called before {plan.do}. It is planned
again when a file changes. After an edit it is about the edited file only: a partial run, which the
trend leaves out. {page.run} plans all pending work, and {history.status} lists it."""

    def __init__(
        self, read: Callable[[], RunRequest], *, edit: Callable[[int | None], None] | None = None
    ) -> None:
        """`read` makes the request; `edit` opens the file that was edited, at a line."""
        super().__init__()
        self._read = read
        self._edit = edit
        self._request: RunRequest | None = None
        self._preview: PlanPreview | None = None
        self._line: int | None = None
        self._problem: EditPlace | None = None
        """The first problem that prevents a plan, if it is in a file."""
        self.is_planning = True

    def on_mount(self) -> None:
        """Plan."""
        self.set_title("plan", READING)
        self.body.focus()
        self.reload()

    def reload(self) -> None:
        """Plan again."""
        self.is_planning = True

        def show(text: str) -> None:
            if self._preview is None:  # else a plan is shown already
                self.set_title("plan", text)

        def plan() -> tuple[RunRequest, PlanPreview]:
            request = self._read()
            with self.telling(show):
                return request, self.source.plan(request)

        self.fetch(plan, self._show)

    def _end_planning(self) -> None:
        self.is_planning = False
        below = self.browser.shown_page
        if isinstance(below, ActionsPage):
            below.go_on_reading()

    def _show(self, plan: tuple[RunRequest, PlanPreview]) -> None:
        (self._request, self._preview), self._problem = plan, None
        self._end_planning()
        self.set_title(self._request.title)
        note = self.with_keys(_OF_FILE) if self._request.is_of_file else ""
        width = self.body.text_width
        list_key = self.browser.key_of("history.status")
        self.body.show(plan_lines(self._request, self._preview, width, note, list_key))
        self.refresh_bindings()

    def show_problem(self, problem: EvalstoreError) -> None:
        """Show the problem; nothing can be done then."""
        self._preview, self._problem = None, None
        self._end_planning()
        self.body.show(())
        self.set_title("plan", "nothing, until this is fixed")
        if isinstance(problem, WorkspaceError):
            self._line = next((entry.line for entry in problem.problems if entry.line), None)
            first = problem.problems[0]
            self._problem = EditPlace(first.file, first.line or 1)
        super().show_problem(problem)
        self.refresh_bindings()

    @property
    def can_do(self) -> bool:
        """Return whether there is something to do, and its price can be seen."""
        if self._preview is None or self._request is None or self.is_small:
            return False
        status = self._preview.status
        return status.is_any or records_only(self._request, status)

    @property
    def _waits_for_price(self) -> bool:
        """Return whether the first plan is still being read; its key then says so."""
        return self.is_planning and self._preview is None and not self.is_small

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action makes sense in this state of the plan."""
        if action == "do":
            return self.can_do or self._waits_for_price
        if action == "run":
            return self._request is not None and self._request.is_of_file
        if action == "edit":
            return self._edit is not None or self._problem is not None
        return True

    def action_do(self) -> None:
        """Begin the run, unless its price is not known yet."""
        if self._waits_for_price:
            text = "still reading: press {plan.do} again when the plan and its price are shown"
            self.notify(self.with_keys(text), markup=False)
        elif self._request is not None and self._preview is not None and self.can_do:
            self.app.pop_screen()
            self.browser.runs.begin(self._request, self._preview)

    def action_run(self) -> None:
        """Plan all pending work instead of that of one file."""
        self._read = self.source.missing
        self.reload()

    def action_status(self) -> None:
        """Show all pending work, each item with its reason, in place of the plan."""
        self.app.pop_screen()
        self.browser.open("pending")

    def action_edit(self) -> None:
        """Open the file that was edited, or the one with the problem, where that is."""
        below, place = self.app.screen_stack[-2], self._problem
        self.app.pop_screen()
        if self._edit is not None:
            self._edit(self._line)
        elif place is not None and isinstance(below, Page):
            edit_place(below, place)


# --- a run that the browser has started: its progress, then how it ended


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

    runner: BackgroundRun

    def __init__(self, runner: BackgroundRun) -> None:
        super().__init__(classes="-going")
        self.runner = runner

    def on_mount(self) -> None:
        """Show the progress; from now on it is drawn with that of all other screens."""
        self.body.focus()
        if self.runner.is_over:
            self.show_end()
        self.show_progress()

    def on_resize(self) -> None:
        """Draw bars of another width once the text has its new one; Textual calls this, too."""
        self.call_after_refresh(self.show_progress)

    def reload(self) -> None:
        """Draw the progress again."""
        self.browser.runs.draw()

    def show_progress(self) -> None:
        """Show the progress."""
        if self.runner.is_over:
            return
        progress = self.runner.shown
        self.set_title(self.runner.request.title, "stopping …" if progress.stops else "")
        self.body.show(progress_lines(progress, max(10, self.body.size.width - 40)), stay=True)

    def refresh_ages(self) -> None:
        """Draw the end of the run again, which says how long ago the run before it was."""
        if self.runner.end is not None:
            self.body.show(result_lines(self.runner.end), stay=True)

    def show_end(self) -> bool:
        """Show how the run ended."""
        self.remove_class("-going")
        runner = self.runner
        if runner.problem is not None:
            self.set_title(runner.request.title, "failed")
            self.show_problem(runner.problem)
            self.body.show(())
        if runner.end is not None:
            self.set_title(runner.request.title, status_word(runner.end.report.status))
            self.body.show(result_lines(runner.end))
        self.refresh_bindings()
        return True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether an action is available: `stop` during the run, its cases afterwards."""
        if action in ("stop", "hide"):
            return not self.runner.is_over
        if action == "cases":
            return self.runner.end is not None
        if action == "compare":
            return bool(self.runner.end and self.runner.end.report.changes)
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
            self.browser.show_new_run(self.runner.end.report.run)

    def action_back(self) -> None:
        """Leave; from the cases of an older run, to those of the new run if it had all cases."""
        from evalstore.runs.run import ALL

        is_whole = self.runner.end is not None and self.runner.request == ALL
        if is_whole and self.browser.is_above_run(self):
            self.action_cases()
        else:
            super().action_back()

    def action_compare(self) -> None:
        """Show what broke and what was fixed."""
        end = self.runner.end
        if end and (changes := end.report.changes):
            self.app.pop_screen()
            self.browser.open("compare", changes.since, end.report.run)
