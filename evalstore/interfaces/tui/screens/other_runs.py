"""Lines that name the runs that other programs carry out at this moment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from evalstore.interfaces.tui.render.run_details import other_run_texts
from evalstore.results.log.runs_in_progress import in_progress_text

if TYPE_CHECKING:
    from textual.app import App
    from textual.geometry import Size

    from evalstore.store.work.runs_in_progress import RunInProgress

_LINES, _FEW_LINES = 3, 1
"""The most lines, and those in a terminal of few lines."""


class OtherRuns(Static):
    """The runs of other programs; not there while there are none."""

    DEFAULT_CSS = """
    OtherRuns {
        height: auto; padding: 0 1; display: none; color: $text-primary; text-wrap: nowrap;
    }
    """

    class Changed(Message):
        """What is known of the runs has changed."""

    def __init__(self, runs: tuple[RunInProgress, ...]) -> None:
        super().__init__(markup=False)
        self.runs = runs
        self.display = bool(runs)

    def show(self, runs: tuple[RunInProgress, ...]) -> None:
        """Show these runs, drawn again only where their words are other ones."""
        was, self.runs = self.runs, runs
        self.display = bool(runs)
        if [*map(in_progress_text, was)] != [*map(in_progress_text, runs)]:
            self.refresh(layout=len(was) != len(runs))
            self.post_message(self.Changed())

    def _text(self, width: int) -> str:
        is_short = self.screen.has_class("-short")
        return "\n".join(other_run_texts(self.runs, width, _FEW_LINES if is_short else _LINES))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return a line for each run that is named."""
        del container, viewport
        return self._text(width).count("\n") + 1

    def render(self) -> Content:
        """Draw them in the words that the width has room for."""
        return Content(self._text(self.content_size.width))


def show_other_runs(app: App[None], runs: tuple[RunInProgress, ...]) -> None:
    """Show the runs of other programs on all screens that have room for them."""
    for screen in app.screen_stack:
        for line in screen.query(OtherRuns):
            line.show(runs)
