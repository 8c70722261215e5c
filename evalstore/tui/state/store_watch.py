"""Notices what was recorded in the store: reading the files stores versions there, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.api import Workspace
    from evalstore.planning.options import Location


class StoreWatch:
    """Tells whether answers, judgements, failures or runs were recorded since it was last asked.

    For a database that cannot tell what is new, whatever is written counts.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._stamp: object = None
        self._newest: object = None

    def has_changed(self) -> bool:
        """Return whether anything was recorded; False the first time.

        Raises `StoreError` when the store is gone or cannot be read.
        """
        stamp, before = self._workspace.stamp(), self._stamp
        if stamp == before:
            return False
        newest, known = _find_newest(self._workspace.location, stamp), self._newest
        self._stamp, self._newest = stamp, newest
        return before is not None and (newest is None or newest != known)


def _find_newest(location: Location, stamp: object) -> object:
    """Return the file of the store with what is newest in it; None where that is not known."""
    from evalstore.operations.views.cases import StoreStamp
    from evalstore.planning.open_project import open_store

    if isinstance(stamp, StoreStamp) and not stamp.is_there:  # to open it would make one
        return None
    with open_store(location) as store:
        newest = store.find_newest()
        return None if newest is None else (store.file, newest)
