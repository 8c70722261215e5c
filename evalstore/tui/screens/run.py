"""A run from the browser: its plan with the price, how far it is, how it ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from evalstore.errors import EvalstoreError, WorkspaceError
from evalstore.tui.render.run import plan_lines, progress_lines, result_lines, words_of
from evalstore.tui.screens.base import Page, TitleLine
from evalstore.tui.screens.dialogs import Dialog
from evalstore.tui.screens.leave import LeavePage
from evalstore.tui.state.background_run import BackgroundRun

if TYPE_CHECKING:
    from evalstore.operations.views.interactive_run import PlanPreview, RunRequest, VerdictChanges
    from evalstore.tui.app import Browser

_LOOK_SECONDS = 0.2
"""How often the progress is drawn."""


class BrowserRuns:
    """The runs of a browser: one at a time."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self.runner: BackgroundRun | None = None
        self.is_leaving = False
        """Whether the browser ends as soon as the run has stopped."""
        self._told = ""
        """What the titles say."""

    @property
    def is_going(self) -> bool:
        """Whether one is under way."""
        return self.runner is not None and not self.runner.is_over

    @property
    def going(self) -> str:
        """How far it is, in few characters; empty when none is under way."""
        if self.runner is None or self.runner.is_over:
            return ""
        done, total = self.runner.progress
        how_far = f"{done:,}/{total:,}" if self.runner.is_planned else "…"
        return f"▶ {how_far}" + (" stopping" if self.runner.stops else "")

    @property
    def key(self) -> str:
        """The key that shows it."""
        return self._browser.key_of("page.run")

    def _tell(self) -> None:
        """Say in the titles of all pages how far it is, when it has moved on."""
        before, self._told = self._told, self.going
        if self._told != before:
            for page in self._browser.screen_stack:
                for line in page.query(TitleLine):
                    line.refresh()

    def refuse(self) -> bool:
        """Whether another one cannot begin now; the user is told."""
        if self.is_going:
            words = f"A run is already in progress: {self.key} shows its progress."
            self._browser.notify(words, severity="warning", markup=False)
        return self.is_going

    def begin(self, intent: RunRequest, planned: PlanPreview) -> None:
        """Do what was planned, and show how far it is."""
        if self.refuse():
            return
        self.runner = runner = BackgroundRun(intent, planned)
        self._browser.push_screen(RunPage(runner))
        self._timer = self._browser.set_interval(_LOOK_SECONDS, self._tell)
        work = partial(self._carry_out, runner)
        self._browser.run_worker(work, thread=True, group="run", exit_on_error=False)

    def _carry_out(self, runner: BackgroundRun) -> None:
        try:
            runner.ended = self._browser.source.carry_out(runner.intent, runner, runner.planned)
        except EvalstoreError as problem:
            runner.problem = problem
        except Exception as bug:  # noqa: BLE001 - the browser stays alive and says so
            runner.problem = EvalstoreError(f"a bug in evalstore: {bug!r}")
        finally:
            runner.is_over = True
            self._browser.call_later(self._end, runner)

    def _end(self, runner: BackgroundRun) -> None:
        """Show how it ended, and what it has changed."""
        self._timer.stop()
        self._tell()
        if self.is_leaving:
            self._browser.exit()
            return
        shown = False
        for page in self._browser.screen_stack:
            if isinstance(page, RunPage) and page.runner is runner:
                page.show_end()
                shown = True
            elif isinstance(page, Page):
                page.reload()
        if not shown:
            self._browser.notify(_summary(runner), markup=False, timeout=10)

    def show(self) -> None:
        """Show how far the run is."""
        assert self.runner is not None
        if not any(isinstance(page, RunPage) for page in self._browser.screen_stack):
            self._browser.push_screen(RunPage(self.runner))

    # --- leaving

    def may_leave(self) -> bool:
        """Whether the browser may quit: during a run only after a confirmation and its end."""
        if self.runner is None or self.runner.is_over or self.is_leaving:
            return True
        asking = [screen for screen in self._browser.screen_stack if isinstance(screen, LeavePage)]
        if not asking:
            self._browser.push_screen(LeavePage(self.runner))
            return False
        self.is_leaving = True
        if not self.runner.stops:
            self.runner.interrupt()
        asking[0].reload()
        return False

    def stay(self) -> None:
        """Do not end when the run has stopped."""
        self.is_leaving = False

    def leave(self) -> None:
        """End the browser; a run is stopped first, and what is in flight is finished and stored."""
        if self.runner is None or self.runner.is_over or self.is_leaving:
            self._browser.exit()
        else:
            self.is_leaving = True
            self.runner.interrupt()

    def stop(self) -> None:
        """The browser has ended: what is in flight may finish, unless it was waited for before."""
        if self.runner is not None and not self.runner.is_over:
            self.runner.interrupt()


def _summary(runner: BackgroundRun) -> str:
    if runner.ended is None:
        return words_of(runner.problem) if runner.problem else ""
    ended = runner.ended
    return f"run {ended.run[:8]} {ended.status}: {ended.asked:,} asked, {ended.judged:,} judged"


class PlanPage(Dialog):
    """What would be done, why and at which price; Enter does it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "do", "Run", id="plan.do"),
        Binding("escape,backspace", "back", "Cancel", id="page.back"),
        Binding("e", "edit", "Edit again", id="plan.edit"),
    ]
    TITLE = "Plan of a run"
    WAY = "{page.run} where something is missing, {case.judge} on an answer"
    HELP = "What would be done, why, and at which price. Nothing is called before {plan.do}."

    def __init__(
        self, read: Callable[[], RunRequest], *, edit: Callable[[int | None], None] | None = None
    ) -> None:
        """`read` says what is wanted; `edit` opens the file that was edited, at a line."""
        super().__init__()
        self._read = read
        self._edit = edit
        self._intent: RunRequest | None = None
        self._planned: PlanPreview | None = None
        self._line: int | None = None

    def on_mount(self) -> None:
        """Plan."""
        self.set_title("what would be done", "reading …")
        self.told.focus()
        self.reload()

    def reload(self, *, stay: bool = True) -> None:
        """Plan again."""
        self.fetch(self._plan, self._show)

    def _plan(self) -> tuple[RunRequest, PlanPreview]:
        intent = self._read()
        return intent, self.source.plan(intent)

    def _show(self, found: tuple[RunRequest, PlanPreview]) -> None:
        self._intent, self._planned = found
        self.set_title(self._intent.title)
        self.told.show(plan_lines(self._intent, self._planned))
        self.refresh_bindings()

    def show_problem(self, problem: EvalstoreError) -> None:
        """Say what is wrong; nothing can be done then."""
        self._planned = None
        self.told.show(())
        self.set_title("what would be done", "nothing, until this is fixed")
        if isinstance(problem, WorkspaceError):
            self._line = next((one.line for one in problem.problems if one.line), None)
        super().show_problem(problem)
        self.refresh_bindings()

    @property
    def can_do(self) -> bool:
        """Whether there is something to do, and its price can be seen."""
        if self._planned is None or self.is_small:
            return False
        return bool(self._planned.status.items)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what makes sense is offered."""
        if action == "do":
            return self.can_do
        if action == "edit":
            return self._edit is not None
        return True

    def action_do(self) -> None:
        """Do it."""
        if self._intent is not None and self._planned is not None and self.can_do:
            self.app.pop_screen()
            self.browser.runs.begin(self._intent, self._planned)

    def action_edit(self) -> None:
        """Open the file again, where the problem is."""
        if self._edit is not None:
            self.app.pop_screen()
            self._edit(self._line)


class RunPage(Dialog):
    """How far the run is, then how it ended; below it the cases go on changing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "cases", "Show cases", id="run.cases"),
        Binding("escape,backspace,b", "hide", "Continue browsing", id="run.hide"),
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
    going = ""

    DEFAULT_CSS = """
    RunPage.-going > #box { height: 9; }
    """

    def __init__(self, runner: BackgroundRun) -> None:
        super().__init__(classes="-going")
        self.runner = runner
        self._flips: VerdictChanges | None = None

    def on_mount(self) -> None:
        """Draw, again and again."""
        self.told.focus()
        if self.runner.is_over:
            self.show_end()
        self.show_progress()
        self.set_interval(_LOOK_SECONDS, self.show_progress)

    def reload(self, *, stay: bool = True) -> None:
        """Draw again."""
        self.show_progress()

    def show_progress(self) -> None:
        """Say how far it is."""
        if self.runner.is_over:
            return
        self.set_title(self.runner.intent.title, "stopping …" if self.runner.stops else "")
        self.told.show(progress_lines(self.runner, max(10, self.told.size.width - 40)), stay=True)

    def show_end(self) -> None:
        """Say how it ended."""
        self.remove_class("-going")
        runner = self.runner
        if runner.problem is not None:
            self.set_title(runner.intent.title, "failed")
            self.show_problem(runner.problem)
            self.told.show(())
        if runner.ended is not None:
            self.set_title(runner.intent.title, runner.ended.status)
            self.told.show(result_lines(runner.ended, self._flips))
            run = runner.ended.run
            self.fetch(lambda: self._read_flips(run), self._show_flips, group="flips")
        self.refresh_bindings()

    def _read_flips(self, run: str) -> VerdictChanges | None:
        try:
            return self.source.flips(run)
        except EvalstoreError:  # the run is told all the same; the comparison says what is wrong
            return None

    def _show_flips(self, flips: VerdictChanges | None) -> None:
        if flips is not None and self.runner.ended is not None:
            self._flips = flips
            self.told.show(result_lines(self.runner.ended, flips), stay=True)
            self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Stop while it goes, its cases afterwards."""
        if action in ("stop", "hide"):
            return not self.runner.is_over
        if action == "cases":
            return self.runner.ended is not None
        if action == "compare":
            return self._flips is not None
        return action != "back" or self.runner.is_over

    def action_stop(self) -> None:
        """Stop the run; a second time, at once."""
        self.runner.interrupt()
        self.show_progress()

    def action_hide(self) -> None:
        """Leave the run to itself."""
        self.app.pop_screen()
        words = f"The run continues; {self.browser.runs.key} leads back to it."
        self.notify(words, markup=False)

    def action_cases(self) -> None:
        """Show the cases of the run."""
        if self.runner.ended is not None:
            self.app.pop_screen()
            self.browser.show_cases(self.runner.ended.run)

    def action_compare(self) -> None:
        """Show what broke and what was fixed."""
        if self.runner.ended is not None and self._flips is not None:
            self.app.pop_screen()
            self.browser.show_comparison(self._flips.was, self.runner.ended.run)
