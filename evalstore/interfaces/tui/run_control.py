"""Runs that the browser starts, at most one at a time, in the background."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.tui.render.run import end_summary, run_texts
from evalstore.interfaces.tui.screens.base import Page
from evalstore.interfaces.tui.screens.dialogs.quit_confirmation import QuitConfirmation
from evalstore.interfaces.tui.screens.run import RunPage
from evalstore.interfaces.tui.state.background_run import BackgroundRun
from evalstore.interfaces.tui.widgets.fitted_view import FittedView
from evalstore.interfaces.tui.widgets.title_line import TitleLine

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from evalstore.interfaces.tui.state.data_source import WorkspaceSource
    from evalstore.runs.interactive_run import PlanPreview, RunRequest

_DRAW_SECONDS = 0.2
"""How often the progress is drawn."""


class BrowserRuns:
    """Starts runs, shows their progress and stops them before the browser ends."""

    def __init__(
        self, app: App[None], source: WorkspaceSource, key_of: Callable[[str], str]
    ) -> None:
        """`key_of` names the key of an action."""
        self._app = app
        self._source = source
        self._key_of = key_of
        self.runner: BackgroundRun | None = None
        self._drawn: tuple[str, ...] = ()
        """What is drawn of the run in titles and above the runs."""
        self.is_leaving = False
        """Whether the browser ends as soon as the run has stopped."""

    @property
    def is_running(self) -> bool:
        """Return whether a run is in progress."""
        return self.runner is not None and not self.runner.is_over

    @property
    def progress_text(self) -> str:
        """Return the progress in few characters; empty without a run."""
        if self.runner is None or self.runner.shown.is_over:
            return ""
        shown = self.runner.shown
        done, total = shown.counts
        progress = f"{done:,}/{total:,}" if shown.is_planned else "…"
        return f"▶ {progress}" + (" stopping" if shown.stops else "")

    @property
    def texts(self) -> Sequence[str]:
        """Return what the run does in ever fewer words; empty without a run."""
        if self.runner is None or self.runner.shown.is_over:
            return ()
        return run_texts(self.runner.shown)

    def draw(self) -> None:
        """Draw what all screens show of the run, as it is at this moment.

        Titles, and the state above the runs, are left as they are when they would not change.
        """
        if self.runner is None:
            return
        before = self._drawn
        self.runner.shown = self.runner.progress
        self._drawn = self.progress_text, *self.texts
        for page in self._app.screen_stack:
            if self._drawn != before:
                self._draw_lines(page)
            if isinstance(page, RunPage | QuitConfirmation) and page.is_mounted:
                page.show_progress()

    @staticmethod
    def _draw_lines(page: Screen[Any]) -> None:
        for line in page.query(TitleLine):
            line.refresh()
        for view in page.query("#dashboard").results(FittedView):
            view.refit()

    def refuse_second(self) -> bool:
        """Show a message if a run is in progress; returns whether there is one."""
        if self.is_running:
            key = self._key_of("page.run")
            text = f"A run is already in progress: {key} shows its progress."
            self._app.notify(text, severity="warning", markup=False)
        return self.is_running

    def begin(self, request: RunRequest, preview: PlanPreview) -> None:
        """Start what was planned, and show its progress."""
        if self.refuse_second():
            return
        self.runner = runner = BackgroundRun(request, preview)
        self._app.push_screen(RunPage(runner))
        self.draw()
        self._timer = self._app.set_interval(_DRAW_SECONDS, self.draw)
        work = partial(self._carry_out, runner)
        self._app.run_worker(work, thread=True, group="run", exit_on_error=False)

    def _carry_out(self, runner: BackgroundRun) -> None:
        try:
            runner.end = self._source.carry_out(runner.request, runner, runner.preview)
        except EvalstoreError as problem:
            runner.problem = problem
        except Exception as bug:  # noqa: BLE001 - the browser stays alive and says so
            runner.problem = EvalstoreError(f"a bug in evalstore: {bug!r}")
        finally:
            runner.is_over = True
            self._app.call_later(self._show_end, runner)

    def _show_end(self, runner: BackgroundRun) -> None:
        """Show how the run ended, and what it has changed."""
        self._timer.stop()
        self.draw()
        if self.is_leaving:
            self._app.exit()
            return
        is_shown = False
        for page in self._app.screen_stack:
            if isinstance(page, RunPage) and page.runner is runner:
                page.show_end()
                is_shown = True
            elif isinstance(page, Page):
                page.reload()
        if not is_shown:
            self._app.notify(end_summary(runner), markup=False, timeout=10)

    def show(self) -> None:
        """Show the progress on a screen of its own."""
        assert self.runner is not None
        if not any(isinstance(page, RunPage) for page in self._app.screen_stack):
            self._app.push_screen(RunPage(self.runner))

    # --- leaving

    def may_leave(self) -> bool:
        """Return whether the browser may end; during a run the user is asked, then it stops."""
        if self.runner is None or self.runner.is_over or self.is_leaving:
            return True
        questions = [page for page in self._app.screen_stack if isinstance(page, QuitConfirmation)]
        if not questions:
            self._app.push_screen(QuitConfirmation(self.runner))
            return False
        self.is_leaving = True
        if not self.runner.stops:
            self.runner.interrupt()
        self.draw()
        return False

    def stay(self) -> None:
        """Keep the browser open when the run has stopped."""
        self.is_leaving = False

    def leave(self) -> None:
        """End the browser; calls in flight of a run are finished and stored first."""
        if self.runner is None or self.runner.is_over or self.is_leaving:
            self._app.exit()
        else:
            self.is_leaving = True
            self.runner.interrupt()

    def stop(self) -> None:
        """Stop the run after the browser has ended, unless it was awaited before."""
        if self.runner is not None and not self.runner.is_over:
            self.runner.interrupt()
