"""The line of a page of an old run that says which run is newer, and the way there."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.content import Content
from textual.widgets import Static

from evalstore.core.display import safe, short
from evalstore.interfaces.tui.screens.actions import CaseActionsPage
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.results.log.newer_results import NewerRun


class NewerLine(Static):
    """One line below the title; not there while nothing is newer."""

    DEFAULT_CSS = """
    NewerLine {
        height: 1; padding: 0 1; display: none; color: $text-warning;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """


class DatedPage(CaseActionsPage):
    """A page of a run, perhaps an old one, from which a key leads to a newer run."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("at", "newest", "Newest run", show=False, id="case.newest"),
    ]
    NEWER: ClassVar[str] = "{case.newest} shows its cases"
    """What the key does, as the line says it."""
    newer: NewerRun | None = None
    """The newer run that the line names."""

    @staticmethod
    def newer_line() -> NewerLine:
        """Return the line."""
        return NewerLine(markup=False)

    def look_for_newer(self, run: str | None, result: Result | None = None) -> None:
        """Show whether there is a newer run; with a result, one in which it is another."""
        if run is None:
            self._show_newer(None)
            return
        self.fetch(lambda: self.source.newer(run, result), self._show_newer, group="newer")

    def _show_newer(self, newer: NewerRun | None) -> None:
        self.newer = newer
        line = self.query_one(NewerLine)
        line.display = newer is not None
        if newer:
            line.update(Content(safe(f"{_newer_text(newer)}: {self.with_keys(self.NEWER)}")))
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Return whether the action is available."""
        if action == "newest":
            return self.newer is not None
        return super().check_action(action, parameters)

    def action_newest(self) -> None:
        """Show the newer run in place of this one."""
        if self.newer:
            self.open_newer(self.newer)

    def open_newer(self, newer: NewerRun) -> None:
        """Show a newer run in place of this one."""
        raise NotImplementedError


def _newer_text(newer: NewerRun) -> str:
    run = f"run {short(newer.run)}"
    if newer.result is None:
        return f"{'the partial ' if newer.is_partial else ''}{run} is newer"
    word = newer.result.word or "answered"
    return f"{run} has a newer result, {SIGNS.get(word, '')} {word}".replace("  ", " ")
