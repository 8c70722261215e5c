"""Notices what was recorded in the store: reading the files stores versions there, too."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from evalstore.api import Workspace
    from evalstore.planning.options import Location
    from evalstore.store.driver import Extent


class StoreWatch:
    """Tells whether answers, judgements, failures or runs were recorded since it was last asked."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._stamp: object = None
        self._newest: _Newest | None = None

    def has_changed(self) -> bool:
        """Return whether anything was recorded; False the first time.

        Raises `StoreError` when the store is gone or cannot be read.
        """
        stamp, before = self._workspace.stamp(), self._stamp
        if stamp == before:
            return False
        known = self._newest
        newest = _find_newest(self._workspace.location, stamp, known)
        self._stamp, self._newest = stamp, newest
        return before is not None and newest != known


class _Newest(NamedTuple):
    """How far the store reaches."""

    file: tuple[str, int, int] | None
    """Its path, device and inode; None in a database of a server."""
    extent: Extent


def _find_newest(location: Location, stamp: object, known: _Newest | None) -> _Newest | None:
    """Return how far the store reaches, or what is known if that is the same; None: no store."""
    from evalstore.operations.views.cases import StoreStamp
    from evalstore.planning.open_project import open_store

    if isinstance(stamp, StoreStamp) and not stamp.is_there:  # to open it would make one
        return None
    with open_store(location) as store:
        return _Newest(store.file, store.find_newest(known.extent if known else None))
