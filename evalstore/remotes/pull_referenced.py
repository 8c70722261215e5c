"""Copies some rows of a remote, and all that they refer to."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING

from evalstore.remotes.arrivals import Arrivals
from evalstore.remotes.packs.pack_reader import PackReader
from evalstore.remotes.pull import Pulled
from evalstore.store.records import COPIED_TABLES, check_record

if TYPE_CHECKING:
    from evalstore.remotes.indexes.index_cache import IndexCache
    from evalstore.remotes.places.remote_files import RemoteFiles
    from evalstore.remotes.progress import CopyListener
    from evalstore.store import Store

_ROWS = 2_000
"""The most rows that are in memory, for each step from a row to what it refers to."""


class ReferencedPull:
    """Copies rows with what they refer to; nothing is stored before what it refers to.

    What the remote lacks is left out: it may come with another push.
    """

    def __init__(
        self, store: Store, files: RemoteFiles, cache: IndexCache, listener: CopyListener
    ) -> None:
        self._store = store
        self._files = files
        self._cache = cache
        self._reader = PackReader(files, cache, listener)
        self._seen: set[bytes] = set()
        self._walked: set[bytes] = set()
        """The nodes of the store whose references were followed."""
        opened = ExitStack()
        self._arrivals = opened.enter_context(Arrivals.open(store))
        weakref.finalize(self, opened.close)

    @property
    def pulled(self) -> Pulled:
        """Return what was read until now."""
        return Pulled.of(self._arrivals, self._reader)

    @property
    def by_table(self) -> Mapping[str, int]:
        """Return how many rows were stored in each table."""
        return self._arrivals.stored

    def find_keyed(self, table: str, keys: Iterable[str]) -> set[bytes]:
        """Return the rows of a table with these lookup keys that the remote has, the store not."""
        wanted = [bytes.fromhex(key) for key in keys]
        return self._lacking(table, set(self._cache.records.find_keys(table, wanted)))

    def find_newest_runs(self) -> set[bytes]:
        """Return the newest run, and the newest about all cases, if the store lacks them."""
        return self._lacking("runs", self._cache.records.find_newest_runs())

    def _lacking(self, table: str, ids: set[bytes]) -> set[bytes]:
        ids = ids - self._seen
        return ids - self._store.find_present(table, ids)

    def copy(self, table: str, ids: Iterable[bytes]) -> None:
        """Copy rows of a table; raises `RemoteError` and `StoreError` as `pull_records`."""
        waiting = sorted(set(ids))
        for start in range(0, len(waiting), _ROWS):
            wanted = [id for id in waiting[start : start + _ROWS] if id not in self._seen]
            self._seen.update(wanted)
            batch = list(self._reader.read_records(table, wanted))
            references = {bytes.fromhex(id) for checked in batch for id in checked.references}
            references |= self._find_below(references)
            for other, others in self._locate(references - self._seen):
                self.copy(other, others)
            if batch:
                self._arrivals.add(batch)

    def _find_below(self, ids: set[bytes]) -> set[bytes]:
        """Return what the nodes of the store among these ids refer to, at any depth.

        An interrupted pull may have stored a node without the nodes below it.
        """
        below: set[bytes] = set()
        waiting = self._store.find_present("nodes", ids - self._walked)
        while waiting:
            self._walked |= waiting
            nodes = self._store.load_records("nodes", [id.hex() for id in waiting])
            found = {bytes.fromhex(id) for node in nodes for id in check_record(node).references}
            below |= found
            waiting = self._store.find_present("nodes", found - self._walked)
        return below

    def _locate(self, ids: set[bytes]) -> Iterator[tuple[str, set[bytes]]]:
        """Yield the tables in which the remote has these ids, without those of the store."""
        for table in COPIED_TABLES:
            if not ids:
                return
            ids = ids - self._store.find_present(table, ids)
            places = self._cache.records.find_places(table, sorted(ids))
            found = {place.entry.id for place in places}
            ids = ids - found
            if found:
                yield table, found
