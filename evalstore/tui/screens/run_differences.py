"""The differences of runs from the runs before them: read in the background, as they are drawn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from evalstore.errors import EvalstoreError

if TYPE_CHECKING:
    from evalstore.operations.views.run_differences import RunDifferences, RunPair
    from evalstore.tui.screens.base import Page

_GROUP = "differences"
_AT_ONCE = 5
"""Pairs that are read before they are shown."""


class DifferenceReader:
    """Knows the differences of the pairs of runs that were asked for; runs never change."""

    def __init__(self, page: Page, show: Callable[[], None]) -> None:
        """`show` is called when some have been read."""
        self._page = page
        self._show = show
        self._known: dict[RunPair, RunDifferences | None] = {}
        """None: they cannot be read."""
        self._wanted: dict[RunPair, None] = {}
        self._is_reading = False

    def find(self, pair: RunPair) -> RunDifferences | None:
        """Return the differences of a pair; None until they have been read."""
        if pair not in self._known and pair not in self._wanted:
            self._wanted[pair] = None
            if not self._is_reading:
                self._is_reading = True
                self._page.call_later(self._read)
        return self._known.get(pair)

    def is_known(self, pair: RunPair) -> bool:
        """Return whether the differences of a pair have been read, or cannot be."""
        return pair in self._known

    def _read(self) -> None:
        source, pairs = self._page.source, [*self._wanted][:_AT_ONCE]

        def read() -> dict[RunPair, RunDifferences | None]:
            from evalstore.operations.views.run_differences import read_run_differences

            worker = get_current_worker()
            unread: dict[RunPair, RunDifferences | None] = dict.fromkeys(pairs)
            try:
                found = read_run_differences(
                    source.location, pairs, lambda: not worker.is_cancelled
                )
                return unread | found
            except EvalstoreError:  # a damaged store: the page of the run says so
                return unread

        self._page.fetch(read, self._keep, group=_GROUP)

    def _keep(self, found: dict[RunPair, RunDifferences | None]) -> None:
        self._known |= found
        for pair in found:
            self._wanted.pop(pair, None)
        self._is_reading = bool(self._wanted)
        self._show()
        if self._is_reading:
            self._read()
