"""Confirms before the browser quits during a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from textual.binding import Binding, BindingType

from evalstore.core.display import StyledLine, text_lines
from evalstore.interfaces.tui.screens.dialogs.dialogs import Dialog
from evalstore.interfaces.tui.state.background_run import BackgroundRun


class QuitConfirmation(Dialog):
    """How far the run is, and what quitting would do with it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,backspace", "back", "Continue", id="page.back"),
        Binding("q", "app.quit", "Stop it and quit", id="quit"),
    ]
    TITLE = "Quit during a run"
    WAY = "{quit} during a run"
    HELP = """\
{quit} asks before it quits during a run. {quit} again stops the run, waits for the calls that have
begun, stores their answers and quits; a third time it quits at once. {page.back} continues the run.
"""

    def __init__(self, runner: BackgroundRun) -> None:
        super().__init__()
        self._runner = runner

    def on_mount(self) -> None:
        """Show the progress; from now on it is drawn with that of all other screens."""
        self.body.focus()
        self.show_progress()

    def reload(self, *, stay: bool = True) -> None:
        """Draw again."""
        self.show_progress()

    def show_progress(self) -> None:
        """Show the progress, as far as all screens show it, and what quitting would do."""
        self.set_title("quit")
        self.body.show(self._lines(), stay=True)
        self._make_room()

    def on_resize(self) -> None:
        """Stand above the progress of the run again; Textual calls the base class's, too."""
        self.call_after_refresh(self._make_room)

    def _make_room(self) -> None:
        """Stand above a window that is open below this one, where there is room for both."""
        below = next(iter(self.app.screen_stack[-2:-1]), None)
        height = 0
        if isinstance(below, Dialog) and below is not self:
            height = below.query_one("#box").outer_size.height
        box = self.query_one("#box")
        has_room = height + box.outer_size.height < self.size.height
        box.styles.margin = (0, 0, height if has_room else 0, 0)

    def _lines(self) -> Iterator[StyledLine]:
        key = self.browser.key_of("quit")
        shown = self._runner.shown
        done, total = shown.counts
        progress = f"{done:,} of {total:,} are done" if shown.is_planned else "it is planned"
        if self._runner.is_over:
            yield from text_lines(f"The run has ended meanwhile. {key} quits.")
        elif self.browser.runs.is_leaving:
            yield from text_lines(f"The run is being stopped: {progress}.")
            yield from text_lines(
                "Calls that have begun are finished and stored, then the browser quits; "
                f"{key} once more quits at once."
            )
        else:
            back = self.browser.key_of("page.back")
            yield from text_lines(f"A run is in progress: {progress}.")
            yield from text_lines(
                f"{key} again stops it and quits; what was answered is kept. "
                f"{back} continues the run."
            )

    def action_back(self) -> None:
        """Keep the browser open; a run that is being stopped still ends."""
        self.browser.runs.stay()
        self.app.pop_screen()
