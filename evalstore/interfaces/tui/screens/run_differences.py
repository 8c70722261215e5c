"""The differences of runs from earlier verdicts: read in the background, as they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from evalstore.core.errors import EvalstoreError

if TYPE_CHECKING:
    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.flips.run_differences import RunDifferences

_GROUP = "differences"
_AT_ONCE = 5
"""Runs that are read before they are shown."""


class DifferenceReader:
    """Knows the differences of the runs that were asked for; runs never change."""

    def __init__(self, page: Page, show: Callable[[], None]) -> None:
        """`show` is called when some have been read."""
        self._page = page
        self._show = show
        self._known: dict[str, RunDifferences | None] = {}
        """None: they cannot be read."""
        self._wanted: dict[str, None] = {}
        self._is_reading = False

    def find(self, run: str) -> RunDifferences | None:
        """Return the differences of a run; None until they have been read."""
        if run not in self._known and run not in self._wanted:
            self._wanted[run] = None
            if not self._is_reading:
                self._is_reading = True
                self._page.call_later(self._read)
        return self._known.get(run)

    def is_known(self, run: str) -> bool:
        """Return whether the differences of a run have been read, or cannot be."""
        return run in self._known

    def _read(self) -> None:
        source, runs = self._page.source, [*self._wanted][:_AT_ONCE]

        def read() -> dict[str, RunDifferences | None]:
            from evalstore.results.flips.run_differences import read_run_differences

            worker = get_current_worker()
            unread: dict[str, RunDifferences | None] = dict.fromkeys(runs)
            try:
                found = read_run_differences(source.location, runs, lambda: not worker.is_cancelled)
                return unread | found
            except EvalstoreError:  # a damaged store: the page of the run says so
                return unread

        self._page.fetch(read, self._keep, group=_GROUP)

    def _keep(self, found: dict[str, RunDifferences | None]) -> None:
        self._known |= found
        for run in found:
            self._wanted.pop(run, None)
        self._is_reading = bool(self._wanted)
        self._show()
        if self._is_reading:
            self._read()
