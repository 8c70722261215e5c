"""Copies rows that a store lacks from a remote or another store, and checks every one of them."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from shlex import quote
from typing import NamedTuple, Self

from evalstore.core.errors import NewerError, RemoteError, StoreError
from evalstore.remotes.arrivals import Arrivals, find_below, split_records
from evalstore.remotes.differences import CopyListener, MissingIds, count_ids, split_ids
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.indexes import IndexedPack, IndexedRecord
from evalstore.remotes.pack_reader import PackReader
from evalstore.remotes.packs import PackEntry
from evalstore.remotes.places.layout import RemoteFiles
from evalstore.remotes.push import iterate_records
from evalstore.remotes.temporary_tables import open_tables
from evalstore.store import Store
from evalstore.store.records import COPIED_TABLES, CheckedRecord, check_record
from evalstore.store.schema.table_definitions import RUNS

_SCHEMA = """
CREATE TABLE wanted (
    pack INTEGER NOT NULL, kind INTEGER NOT NULL, id BLOB NOT NULL, start INTEGER NOT NULL,
    length INTEGER NOT NULL, lookup BLOB NOT NULL
);
"""


class Pulled(NamedTuple):
    """What was copied from a remote or another store."""

    stored: Counter[str]
    """How many rows were stored, by table."""
    bytes_received: int
    """Of packs, or parts of them, or of rows of another store."""
    left: Counter[str]
    """How many rows were left there, because it lacks rows that they refer to, by table."""
    missing: Counter[str]
    """How many rows are in packs that are not in the remote yet, or no longer, by table."""
    missing_packs: int

    @property
    def waiting(self) -> int:
        """Return how many runs were left in the remote."""
        return self.left.get(RUNS.name, 0)

    @classmethod
    def of(cls, arrivals: Arrivals, reader: PackReader) -> Self:
        """Return what was read until now."""
        return cls(
            arrivals.stored.copy(),
            reader.bytes_received,
            arrivals.waiting,
            reader.left,
            len(reader.missing_packs),
        )


def pull_records(
    store: Store,
    files: RemoteFiles,
    cache: IndexCache,
    missing: MissingIds,
    listener: CopyListener,
) -> Pulled:
    """Store these rows of a remote; runs come last, so that an interrupted pull shows no new run.

    Each pack is read once. A row that refers to rows which the remote does not have yet is left
    there, as are those in packs that are missing.

    Raises `RemoteError` for a pack that is damaged, and `StoreError` if a stored row has other
    content.
    """
    listener.start(count_ids(missing))
    reader = PackReader(files, cache, listener)
    numbers: dict[IndexedPack, int] = {}
    """The first number of each pack: two indexes may list the same."""
    with open_tables(_SCHEMA) as wanted, Arrivals.open(store) as arrivals:
        for table in missing:
            for ids in split_ids(missing[table]):
                places = cache.records.find_places(table, ids)
                rows = (
                    (numbers.setdefault(cache.records.find_pack(pack), pack), *entry, key)
                    for pack, entry, key, _ in places
                )
                statement = "INSERT INTO wanted VALUES (?, ?, ?, ?, ?, ?)"
                if wanted.executemany(statement, rows).rowcount < len(ids):
                    raise RemoteError(
                        f"what is known about the remote '{files.address}' changed during the pull",
                        hint="another program has read it at the same time; pull again",
                    )
        query = "SELECT pack, kind, id, start, length, lookup FROM wanted ORDER BY pack, start"
        found = (
            IndexedRecord(pack, PackEntry(*entry), key)
            for pack, *entry, key in wanted.execute(query)
        )
        arrivals.add_all(reader.read_places(found))
        return Pulled.of(arrivals, reader)


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
        wanted = {table: set(ids)}
        while wanted:
            below = set[bytes]()
            for name, others in wanted.items():
                fresh = sorted(others - self._seen)
                self._seen.update(fresh)
                for batch in split_records(self._reader.read_records(name, fresh)):
                    below.update(bytes.fromhex(id) for each in batch for id in each.references)
                    self._arrivals.add(batch)
            below |= self._find_below(below)
            wanted = dict(self._locate(below - self._seen))
        self._arrivals.finish()

    def _find_below(self, ids: set[bytes]) -> set[bytes]:
        """Return what the nodes of the store among these ids refer to, at any depth.

        An interrupted pull may have stored a node without the nodes below it.
        """
        below: set[bytes] = set()
        waiting = self._store.find_present("nodes", ids - self._walked)
        while waiting:
            self._walked |= waiting
            found = find_below(self._store, waiting)
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


# --- rows of another store


def copy_records(
    source: Store, target: Store, missing: MissingIds, listener: CopyListener, name: str
) -> Pulled:
    """Store these rows of another store, called `name`; each after all that it refers to.

    Raises `StoreError` for a damaged row, or if a stored row has other content. What was stored
    until then stays, and the next copy completes it.
    """
    listener.start(count_ids(missing))
    size = 0
    with Arrivals.open(target) as arrivals:
        for table in sorted(missing, key=COPIED_TABLES.index):
            rows = {table: missing[table]}
            for batch in split_records(_read_checked(source, rows, name)):
                arrivals.add(batch)
                copied = sum(checked.record.size for checked in batch)
                listener.advance(len(batch), copied)
                size += copied
        arrivals.finish()
        return Pulled(arrivals.stored.copy(), size, arrivals.waiting, Counter(), 0)


def _read_checked(source: Store, missing: MissingIds, name: str) -> Iterator[CheckedRecord]:
    """Yield these rows of a store, called `name`; raises `StoreError` for a damaged one."""
    try:
        for record in iterate_records(source, missing):
            yield check_record(record)
    except NewerError as error:
        raise NewerError(f"the store '{name}'", error.problem) from error
    except StoreError as error:
        problem = str(error).removeprefix("the store is damaged: ")
        raise StoreError(
            f"the store '{name}' is damaged: {problem}",
            hint=f"'evalstore fsck --store {quote(name)}' lists what is wrong",
        ) from error
