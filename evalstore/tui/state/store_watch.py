"""Notices what was recorded in the store: reading the files stores versions there, too."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evalstore.api import Workspace
    from evalstore.operations.runs_in_progress import RunInProgress
    from evalstore.store.driver import Extent

_LOOK_SECONDS = 5.0
"""How often runs in progress of others are looked at while nothing is written."""


class StoreWatch:
    """Tells whether answers, judgements, failures or runs were recorded since it was last asked.

    It also keeps the runs that other programs carry out.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._stamp: object = None
        self._newest: _Newest | None = None
        self.other_runs: tuple[RunInProgress, ...] = ()
        """The runs in progress of other programs."""
        self._is_running = False
        self._looked = 0.0
        """When these were looked at last, on the monotonic clock."""

    def has_changed(self) -> bool:
        """Return whether anything was recorded; False the first time.

        Raises `StoreError` when the store is gone or cannot be read.
        """
        from evalstore.operations.runs_in_progress import find_runs_of_others
        from evalstore.operations.views.cases import StoreStamp
        from evalstore.planning.open_project import open_store

        stamp, before = self._workspace.stamp(), self._stamp
        # A program that was killed writes nothing.
        is_late = bool(self.other_runs) and time.monotonic() - self._looked > _LOOK_SECONDS
        if stamp == before and not is_late:
            return False
        known = self._newest
        if isinstance(stamp, StoreStamp) and not stamp.is_there:  # to open it would make one
            self._newest, self.other_runs = None, ()
        else:
            with open_store(self._workspace.location) as store:
                newest = store.find_newest(known.extent if known else None)
                self._newest = _Newest(store.file, newest)
                self.other_runs = find_runs_of_others(store, is_running=self._is_running)
        self._stamp, self._looked = stamp, time.monotonic()
        return before is not None and self._newest != known

    @contextmanager
    def running(self) -> Iterator[None]:
        """Note that this program carries out a run in the block, which is none of another one."""
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False


class _Newest(NamedTuple):
    """How far the store reaches."""

    file: tuple[str, int, int] | None
    """Its path, device and inode; None in a database of a server."""
    extent: Extent
