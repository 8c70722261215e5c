"""Reads the last verdicts of the cases that are shown, while nothing else is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from textual.timer import Timer

    from evalstore.core.results import Result
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.flips.result_history import RecentVerdicts
    from evalstore.results.growing_results import CellKey

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
        self._words: dict[CellKey, tuple[str, ...]] = {}
        self._requested: list[str] = []
        """Files, the first one first."""
        self._read_files: set[str] = set()
        self._timer: Timer | None = None

    @property
    def is_due(self) -> bool:
        """Return whether a reading begins by itself."""
        return self._timer is not None

    @property
    def has_several(self) -> bool:
        """Return whether a case is known to have been judged in several runs."""
        return any(len(words) > 1 for words in self._words.values())

    def of(self, result: Result) -> Sequence[str]:
        """Return the last verdicts of a cell, the oldest first; empty when they are not known."""
        cell = result.file, result.row, result.prompt_number, result.model
        return self._words.get(cell, ())

    def renew(self, run: str | None) -> None:
        """Read all files again when they are requested, up to a run."""
        self._run, self._read_files = run, set()

    def request(self, files: Iterable[str]) -> None:
        """Read the verdicts of these files soon, unless they are known."""
        self._requested = [file for file in dict.fromkeys(files) if file not in self._read_files]
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        if self._requested:
            self._timer = self._page.set_timer(_PAUSE_SECONDS, self._read)

    def _read(self) -> None:
        self._timer = None
        files, run = self._requested, self._run

        def show(history: RecentVerdicts) -> None:
            if run == self._run:
                self._words |= history
                self._read_files.update(files)
                self._show()

        self._page.fetch(lambda: self._page.source.history(files, run), show, group=_GROUP)
