"""Reads the verdicts of the shown run by test file, when the cursor has stayed on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from evalstore.core.errors import EvalstoreError

if TYPE_CHECKING:
    from textual.timer import Timer

    from evalstore.interfaces.tui.screens.base import Page
    from evalstore.results.flips.run_differences import RunDifferences
    from evalstore.results.table.file_verdicts import RunFiles

_PAUSE_SECONDS = 0.3
"""From the request to the reading."""
_GROUP = "files"
_KEPT = 8
"""Runs whose files are kept in memory, those that were read last."""


class FileReader:
    """Knows the verdicts by file of the runs that were read last; runs never change."""

    def __init__(self, page: Page, show: Callable[[], None]) -> None:
        """`show` is called when those of a run have been read."""
        self._page = page
        self._show = show
        self._known: dict[str, RunFiles | None] = {}
        """None: they cannot be read."""
        self._wanted: str | None = None
        """The run that is to be read, or is being read."""
        self._timer: Timer | None = None

    @property
    def is_due(self) -> bool:
        """Return whether a reading begins by itself."""
        return self._timer is not None

    def find(self, run: str, differences: RunDifferences | None) -> RunFiles | None:
        """Return the files of a run; without them, they are read if the cursor stays.

        Nothing is read while another screen is shown. Files with new failures, which the
        `differences` from earlier verdicts say, come first.
        """
        is_shown = self._page.app.screen is self._page
        if run not in self._known and run != self._wanted and is_shown:
            self.suspend()
            self._wanted = run
            self._timer = self._page.set_timer(_PAUSE_SECONDS, lambda: self._read(run, differences))
        return self._known.get(run)

    def suspend(self) -> None:
        """Stop reading: another run is shown, or another screen."""
        if self._timer is not None:
            self._timer.stop()
            self._timer = None
        self._wanted = None
        self._page.workers.cancel_group(self._page, _GROUP)

    def _read(self, run: str, differences: RunDifferences | None) -> None:
        self._timer = None
        location = self._page.source.location
        new_failures = dict(differences.new_failures) if differences else {}

        def read() -> tuple[str, RunFiles | None]:
            from evalstore.results.table.file_verdicts import read_file_verdicts

            worker = get_current_worker()
            try:
                found = read_file_verdicts(
                    location, run, new_failures, lambda: not worker.is_cancelled
                )
            except EvalstoreError:  # a damaged store: the page of the run says so
                found = None
            return run, found

        self._page.fetch(read, self._keep, group=_GROUP)

    def _keep(self, read: tuple[str, RunFiles | None]) -> None:
        run, found = read
        self._wanted = None
        self._known[run] = found
        for old in [*self._known][:-_KEPT]:
            del self._known[old]
        self._show()
