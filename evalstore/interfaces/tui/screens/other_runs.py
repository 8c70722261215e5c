"""What pages show of other runs: those in progress, a newer one, the last verdicts of cases."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.widgets import Static

from evalstore.core.display import safe, short
from evalstore.interfaces.tui.render.run_details import other_run_texts
from evalstore.interfaces.tui.screens.actions import CaseActionsPage
from evalstore.results.log.runs_in_progress import in_progress_text
from evalstore.results.verdict_order import SIGNS

if TYPE_CHECKING:
    from textual.app import App
    from textual.geometry import Size

    from evalstore.core.results import Result
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.flips.result_history import NewerRun, RecentVerdicts
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


# --- that a run is newer than the one that a page shows, and the way there


class DatedPage(CaseActionsPage):
    """A page of a run, perhaps an old one, from which a key leads to a newer run."""

    DEFAULT_CSS = """
    DatedPage > .newer {
        height: 1; padding: 0 1; display: none; color: $text-warning;
        text-wrap: nowrap; text-overflow: ellipsis;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("at", "newest", "Newest run", show=False, id="case.newest")
    ]
    NEWER: ClassVar[str] = "{case.newest} shows its cases"
    """What the key does, as the line says it."""
    newer: NewerRun | None = None
    """The newer run that the line names."""

    def compose_above(self) -> ComposeResult:
        """Lay out what is between the title and the list, first the line."""
        yield Static(classes="newer", markup=False)
        yield from super().compose_above()

    def look_for_newer(self, run: str | None, result: Result | None = None) -> None:
        """Show whether there is a newer run; with a result, one in which it is another."""
        if run is None:
            self._show_newer(None)
            return
        location = self.source.location

        def read() -> NewerRun | None:
            from evalstore.results.flips.result_history import find_newer_result, find_newer_run

            if result is None:
                return find_newer_run(location, run)
            return find_newer_result(location, run, result)

        self.fetch(read, self._show_newer, group="newer")

    def _show_newer(self, newer: NewerRun | None) -> None:
        self.newer = newer
        line = self.query_one(".newer", Static)
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


# --- reads the last verdicts of the cases that are shown, while nothing else is done


_PAUSE_SECONDS = 0.3
"""From the last request to the reading."""
_GROUP = "history"


class HistoryReader:
    """Knows the last verdicts of the cases of files that were requested."""

    def __init__(self, page: Page, show: Callable[[], None]) -> None:
        """`show` is called when there is more to show."""
        self._page = page
        self._show = show
        self._run: str | None = None
        self._words: dict[tuple[str, str, str], Mapping[str | None, tuple[str, ...]]] = {}
        self._requested: list[str] = []
        """Files, the first one first."""
        self._read_files: set[str] = set()

    @property
    def has_several(self) -> bool:
        """Return whether a case is known to have been judged in several runs."""
        return any(len(it) > 1 for words in self._words.values() for it in words.values())

    def of(self, result: Result) -> Sequence[str]:
        """Return the last verdicts of a cell, the oldest first; empty when they are not known."""
        words = self._words.get((result.file, result.row, result.model), {})
        if result.prompt not in words and len(words) == 1 and not result.prompt_number:
            return next(iter(words.values()))  # the only system prompt was edited
        return words.get(result.prompt, ())

    def renew(self, run: str | None) -> None:
        """Read all files again when they are requested, up to a run."""
        self._run, self._read_files = run, set()

    def request(self, files: Iterable[str]) -> None:
        """Read the verdicts of these files soon, unless they are known."""
        self._requested = [file for file in dict.fromkeys(files) if file not in self._read_files]
        self._page.end_pause(_GROUP)
        if self._requested:
            self._page.pause(_GROUP, _PAUSE_SECONDS, self._read)

    def _read(self) -> None:
        files, run = self._requested, self._run

        def show(history: RecentVerdicts) -> None:
            if run == self._run:
                self._words |= history
                self._read_files.update(files)
                self._show()

        self._page.fetch(lambda: self._page.source.history(files, run), show, group=_GROUP)
