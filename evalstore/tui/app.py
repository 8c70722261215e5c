"""The browser: which screen comes when."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from evalstore.errors import EvalstoreError
from evalstore.tui.cases import CasesPage
from evalstore.tui.compare import ComparePage
from evalstore.tui.dialog import Dialog
from evalstore.tui.history import History
from evalstore.tui.page import Page
from evalstore.tui.running import Runs
from evalstore.tui.session import SessionPage
from evalstore.tui.stats import StatsPage
from evalstore.tui.status import StatusPage
from evalstore.tui.versions import VersionsPage

if TYPE_CHECKING:
    from evalstore.operations.browsing import CaseRow, Cases
    from evalstore.tui.source import Source

_LOOK_SECONDS = 1.0
"""How often it is looked whether somebody has written to the store."""


class Browser(App[None]):
    """Browses what a store holds, and follows it while others write to it."""

    TITLE = "evalstore"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit", id="quit"),
        Binding("question_mark", "help", "Help", key_display="?", id="help"),
    ]

    def __init__(self, source: Source, revision: str | None = None) -> None:
        """With a revision its cases are shown first."""
        super().__init__()
        self.source = source
        self._revision = revision
        self.runs = Runs(self)
        self._stamp: object = None
        self._is_behind = False

    def on_mount(self) -> None:
        """Show the runs, and begin to look at the store."""
        self.push_screen(History())
        if self._revision is not None:
            self.show_cases(self._revision)
        self.set_interval(_LOOK_SECONDS, self.look)

    def look(self) -> None:
        """Read again when somebody has written to the store."""
        self.run_worker(self._look, thread=True, exclusive=True, group="look", exit_on_error=False)

    def _look(self) -> None:
        try:
            stamp = self.source.stamp()
        except EvalstoreError:
            return
        before, self._stamp = self._stamp, stamp
        if before is not None and (before != stamp or self._is_behind):
            self.call_from_thread(self.follow)

    def follow(self) -> None:
        """Read again what is shown, also below a dialog; what is being read is waited for."""
        pages = [one for one in self.screen_stack if isinstance(one, Page)]
        page = next((one for one in reversed(pages) if not isinstance(one, Dialog)), None)
        self._is_behind = page is not None and page.is_reading
        if page is not None and not self._is_behind:
            page.reload()

    async def action_quit(self) -> None:
        """Leave; a run that is under way is stopped first, unless it is said twice."""
        if self.runs.is_going and not self.runs.is_leaving:
            self.runs.leave()
        else:
            await super().action_quit()

    def on_unmount(self) -> None:
        """Stop what is still under way."""
        self.runs.end_at_once()

    # --- from screen to screen

    def show_cases(self, revision: str | None) -> None:
        """The cases of a run, or of the workspace."""
        self.push_screen(CasesPage(revision))

    def show_status(self) -> None:
        """What is to do."""
        self.push_screen(StatusPage())

    def show_session(
        self, cases: Cases, listed: Sequence[CaseRow], number: int, model: str
    ) -> None:
        """What a candidate answered to a case, among those that are listed."""
        self.push_screen(SessionPage(cases, listed, number, model))

    def show_versions(self, file: str, row: str) -> None:
        """The runs at which a test changed."""
        self.push_screen(VersionsPage(file, row))

    def show_comparison(
        self, was: str | None, now: str | None, models: tuple[str, str] | None = None
    ) -> None:
        """A run beside a run or the workspace (None), or two candidates of one of them."""
        self.push_screen(ComparePage(was, now, models))

    def show_stats(self, run: str) -> None:
        """What a run comes to by candidate, system prompt, tag and file."""
        self.push_screen(StatsPage(run))

    def go_back(self) -> None:
        """Leave the screen; the first one stays."""
        if len(self.screen_stack) > 2:
            self.pop_screen()
