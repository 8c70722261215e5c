"""The browser: which screen comes when."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.widgets import Input, TextArea

from evalstore.errors import EvalstoreError
from evalstore.tui.keys.keymap import Appearance, key_name
from evalstore.tui.screens.answer import AnswerPage
from evalstore.tui.screens.base import LOOK, Page
from evalstore.tui.screens.cases import CasesPage
from evalstore.tui.screens.compare import ComparePage
from evalstore.tui.screens.dialogs import Dialog
from evalstore.tui.screens.run import BrowserRuns
from evalstore.tui.screens.runs import RunsPage
from evalstore.tui.screens.stats import StatsPage
from evalstore.tui.screens.status import StatusPage
from evalstore.tui.screens.test_history import TestHistoryPage

if TYPE_CHECKING:
    from types import FrameType

    from textual import events
    from textual.command import Provider

    from evalstore.operations.views.cases import CaseRow, Cases
    from evalstore.tui.state.data_source import DataSource

_LOOK_SECONDS = 1.0
"""How often it is looked whether somebody has written to the store."""


def _actions() -> type[Provider]:
    from evalstore.tui.keys.palette import ActionCommands

    return ActionCommands


def _places() -> type[Provider]:
    from evalstore.tui.keys.palette import PlaceCommands

    return PlaceCommands


class Browser(App[None]):
    """Browses what a store holds, and follows it while others write to it."""

    TITLE = "evalstore"
    ENABLE_COMMAND_PALETTE = True
    COMMANDS: ClassVar[set[type[Provider] | Callable[[], type[Provider]]]] = {_actions, _places}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", id="quit"),
        Binding("ctrl+p", "command_palette", "Commands", show=False, priority=True, id="commands"),
    ]
    CSS = """
    Page:nocolor > .title { text-style: bold reverse; }
    Grid:nocolor > .grid--header { text-style: bold underline; }
    Grid:nocolor > .grid--cursor { text-style: bold; }
    Grid:nocolor:focus > .grid--cursor { text-style: reverse; }
    """

    def __init__(
        self, source: DataSource, revision: str | None = None, look: Appearance | None = None
    ):
        """With a revision its cases are shown first."""
        # Without colours the terminal's own are used, and nothing is painted grey instead.
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        # A picture that moves is seen torn where the terminal is slow, and keys wait for it.
        self.animation_level = "none"
        self.source = source
        self.chosen = look or Appearance()
        self._revision = revision
        self.runs = BrowserRuns(self)
        self._stamp: object = None
        self.problem: EvalstoreError | None = None
        """What the last look found."""
        self._is_behind = False
        self.lost: list[str] = []
        """What could not be stored, as long as nobody has been told."""
        self._served_by = os.getppid() if "TEXTUAL_DRIVER" in os.environ else None
        """The process that shows this one on a web page."""

    def on_mount(self) -> None:
        """Show the runs, and begin to look at the store."""
        self.set_keymap(dict(self.chosen.keys))
        if self.chosen.theme:
            self.theme = self.chosen.theme
        self.push_screen(RunsPage())
        if self._revision is not None:
            self.show_cases(self._revision)
        self._end_at_signals()
        self.set_interval(_LOOK_SECONDS, self.look)
        self.look()

    def look(self) -> None:
        """Read again when somebody has written to the store."""
        self.run_worker(self._look, thread=True, exclusive=True, group=LOOK, exit_on_error=False)

    def _look(self) -> None:
        if self._served_by not in (None, os.getppid()):
            self.call_from_thread(self.exit)  # nobody can see it any more
            return
        try:
            stamp = self.source.stamp()
        except EvalstoreError as problem:
            if str(problem) != str(self.problem):
                self.call_from_thread(self.tell, problem)
            return
        told = self.problem
        if told:
            self.call_from_thread(self.tell, None)
        before, self._stamp = self._stamp, stamp
        if told or (before is not None and (before != stamp or self._is_behind)):
            self.call_from_thread(self.follow)

    def tell(self, problem: EvalstoreError | None) -> None:
        """Say on the screen why there is nothing to read any more, until there is (None)."""
        self.problem = problem
        for page in self.screen_stack:
            if isinstance(page, Page) and problem is None:
                page.mend(LOOK)
            elif page is self.screen and isinstance(page, Page) and problem:
                page.fail(LOOK, problem)

    def follow(self) -> None:
        """Read again what is shown, also below a dialog; what is being read is waited for."""
        pages = [screen for screen in self.screen_stack if isinstance(screen, Page)]
        page = next((one for one in reversed(pages) if not isinstance(one, Dialog)), None)
        self._is_behind = page is not None and page.is_reading
        if page is not None and not self._is_behind:
            self.mark_stale(page)
            page.reload()

    def mark_stale(self, page: Page) -> None:
        """Let all other pages read again when they are shown again."""
        for screen in self.screen_stack:
            if isinstance(screen, Page) and screen is not page:
                screen.is_stale = True

    async def action_quit(self) -> None:
        """Quit; during a run, after a confirmation."""
        if self.runs.may_leave():
            await super().action_quit()

    def _fatal_error(self) -> None:
        """A bug: where it is, without the values of variables, which may hold keys and answers."""
        from rich.console import Group
        from rich.traceback import Traceback

        self.panic(Group(Traceback(show_locals=False, width=None), "this is a bug in evalstore"))

    def on_unmount(self) -> None:
        """Stop what is still under way."""
        self.runs.stop()

    def _end_at_signals(self) -> None:
        """Leave the terminal as it was, and what is paid stored, also when told to from outside."""
        with suppress(NotImplementedError, RuntimeError, ValueError):  # Windows, another thread
            for name in ("SIGTERM", "SIGHUP"):
                asyncio.get_running_loop().add_signal_handler(
                    getattr(signal, name), self.runs.leave
                )
            self._resume_after_stops_only()

    def _resume_after_stops_only(self) -> None:
        """Let the driver take the terminal again only when it has given it away before.

        A terminal that is closed sends `SIGCONT` behind `SIGHUP`, and so does who likes. Textual
        then reads the keys in a second thread, and the process does not end any more.
        """
        stops, resumes = signal.getsignal(signal.SIGTSTP), signal.getsignal(signal.SIGCONT)
        if not callable(stops) or not callable(resumes):
            return  # not in a terminal
        is_stopped = False

        def stop(number: int, frame: FrameType | None) -> None:
            nonlocal is_stopped
            is_stopped = True
            stops(number, frame)

        def resume(number: int, frame: FrameType | None) -> None:
            nonlocal is_stopped
            if is_stopped:
                is_stopped = False
                resumes(number, frame)

        signal.signal(signal.SIGTSTP, stop)
        signal.signal(signal.SIGCONT, resume)

    # --- keys and commands

    def key_of(self, id: str) -> str:
        """The first key of an action, as people read it."""
        from evalstore.tui.keys.registry import actions

        keys = self.chosen.keys.get(id)
        return key_name(keys.split(",")[0] if keys else actions()[id].keys[0])

    def on_key(self, event: events.Key) -> None:
        """Give what was typed quickly to the line that a key before it has opened.

        Such keys were sent to where the focus was then, and nobody there wanted them.
        """
        if event.character and event.is_printable:
            if isinstance(self.focused, Input):
                self.focused.insert_text_at_cursor(event.character)
                event.prevent_default()
            elif isinstance(self.focused, TextArea):
                self.focused.insert(event.character)
                event.prevent_default()

    def action_help(self) -> None:
        """Help on this screen; on itself it ends."""
        from evalstore.tui.screens.help import HelpPage

        if isinstance(self.screen, HelpPage):
            self.go_back()
            return
        self.push_screen(HelpPage(self.screen))

    def action_help_quit(self) -> None:
        """Ctrl-C ends other programs; this one says what ends it."""
        self.notify(f"{self.key_of('quit')} quits", markup=False)

    # --- from screen to screen

    def show_cases(
        self, revision: str | None, typed: str = "", place: tuple[str, str] | None = None
    ) -> None:
        """The cases of a run, or of the workspace; with a filter as typed, at a row of a file."""
        self.push_screen(CasesPage(revision, typed, place))

    def show_file(self, file: str) -> None:
        """The cases of a test file: of the run that is shown, or of the workspace."""
        typed = f'file:"{file}"'
        if isinstance(self.screen, CasesPage):
            self.screen.filter_by(typed)
        else:
            self.show_cases(None, typed)

    def show_status(self) -> None:
        """The pending work."""
        self.push_screen(StatusPage())

    def show_session(
        self, cases: Cases, listed: Sequence[CaseRow], number: int, model: str
    ) -> None:
        """What a candidate answered to a case, among those that are listed."""
        self.push_screen(AnswerPage(cases, listed, number, model))

    def show_versions(self, file: str, row: str) -> None:
        """The runs at which a test changed."""
        self.push_screen(TestHistoryPage(file, row))

    def show_comparison(
        self, was: str | None, now: str | None, models: tuple[str, str] | None = None
    ) -> None:
        """A run beside a run or the workspace (None), or two candidates of one of them."""
        self.push_screen(ComparePage(was, now, models))

    def show_stats(self, run: str) -> None:
        """What a run comes to by candidate, system prompt, tag and file."""
        self.push_screen(StatsPage(run))

    def can_leave(self, page: Page) -> bool:
        """Whether there is a screen below."""
        return page not in self.screen_stack[:2]

    def go_back(self) -> None:
        """Leave the screen; the first one stays."""
        if len(self.screen_stack) > 2:
            self.pop_screen()
