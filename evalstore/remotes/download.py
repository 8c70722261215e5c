"""Copies rows that a store lacks from a remote or another store, and checks every one of them.

Each is stored only after all that it refers to. They may arrive in any order: until then they are
kept in a temporary SQLite file. A row whose references are neither stored nor in the remote waits
there: a store that has it would look damaged.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from shlex import quote
from typing import NamedTuple, Self

from evalstore.core import batches
from evalstore.core.batches import in_small_batches, in_weighed_batches
from evalstore.core.errors import NewerError, StoreError
from evalstore.core.runs import restore_run
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import RemoteFiles
from evalstore.remotes.pack_reader import PackReader
from evalstore.remotes.packs import TABLE_NUMBERS
from evalstore.remotes.upload import find_absent, iterate_records
from evalstore.store import Store
from evalstore.store.records import (
    COPIED_TABLES,
    CheckedRecord,
    CopyListener,
    MissingIds,
    StoredRecord,
    check_record,
    count_ids,
)
from evalstore.store.schema.table_definitions import NODES, RUNS
from evalstore.store.sqlite.connection import open_tables
from evalstore.store.trees.case_chunks import has_parts
from evalstore.store.trees.tree_nodes import TreeSizes, load_case_parts

_HELD = """
CREATE TABLE held (
    kind TEXT NOT NULL, id BLOB NOT NULL, content TEXT NOT NULL, data BLOB, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
"""
_ROWS, _BYTES = 5_000, 16 * 2**20
"""The most rows, and roughly the most bytes, that are written in one transaction."""


class Arrivals:
    """Stores rows, counts those that wait, and refuses runs that describe too much to be read."""

    def __init__(self, store: Store, connection: sqlite3.Connection) -> None:
        self._store = store
        self._connection = connection
        self._sizes = TreeSizes(store)
        self.stored = Counter[str]()
        """How many rows were stored, by table."""

    @classmethod
    @contextmanager
    def open(cls, store: Store) -> Iterator[Self]:
        """Begin with rows for a store; those that still wait at the end of the block are left."""
        with open_tables(_HELD) as connection:
            yield cls(store, connection)

    @property
    def waiting(self) -> Counter[str]:
        """Return how many rows wait, by table."""
        query = "SELECT kind, count(*) FROM held GROUP BY kind"
        return Counter(dict(self._connection.execute(query)))

    def add(self, batch: Iterable[CheckedRecord]) -> None:
        """Store those of these rows that refer to stored rows only, but no runs."""
        ordered = sorted(batch, key=lambda checked: COPIED_TABLES.index(checked.record.table))
        for table, group in itertools.groupby(ordered, key=lambda checked: checked.record.table):
            rows = list(group)
            for some in in_small_batches(rows) if table == NODES.name else [rows]:
                self._add(some)

    def _add(self, batch: Sequence[CheckedRecord]) -> None:
        references = {
            checked.record.id: {bytes.fromhex(id) for id in checked.references} for checked in batch
        }
        table = batch[0].record.table
        below = None if table == NODES.name else table
        absent = find_absent(self._store, set().union(*references.values()), below)
        complete = list[CheckedRecord]()
        for checked in batch:
            if references[checked.record.id] & absent or checked.kind == "run":
                self._hold(checked.record)
            else:
                complete.append(checked)
        self._write(complete)

    def finish(self) -> None:
        """Store what waits only for rows that are stored; at last runs whose rows all are."""
        before = -1
        while self.stored.total() > before:
            before = self.stored.total()
            for table in COPIED_TABLES:
                for held in self._take(table) if table != RUNS.name else ():
                    self._add(held)
        known: set[bytes] = set()
        for held in self._take(RUNS.name):
            complete: list[CheckedRecord] = []
            for checked in held:
                if self._is_complete({bytes.fromhex(id) for id in checked.references}, known):
                    complete.append(checked)
                else:
                    self._hold(checked.record)
            self._write(complete)

    def _is_complete(self, ids: set[bytes], known: set[bytes]) -> bool:
        """Return whether these rows, and all below them, are stored; those are added to `known`."""
        reached: set[bytes] = set()
        pending = ids - known
        while pending:
            reached |= pending
            nodes = self._store.find_present(NODES.name, pending)
            if find_absent(self._store, pending - nodes):
                return False
            pending = {
                bytes.fromhex(id)
                for record in iterate_records(self._store, {NODES.name: b"".join(sorted(nodes))})
                for id in check_record(record).references
            }
            pending -= reached | known
        known |= reached
        return True

    def _require_bounded(self, batch: Sequence[CheckedRecord]) -> None:
        """Raise `StoreError` for a run that describes too much to be read, and for wrong counts."""
        try:
            for checked in batch:
                id, content = checked.record.id, checked.content
                if checked.kind == "run":
                    self._sizes.require_bounded(restore_run(id, content))
                elif checked.kind == "cases" and has_parts(content):
                    load_case_parts(id, content, self._store.load_cases)
        except StoreError as error:
            problem = str(error).removeprefix("the store is damaged: ")
            raise StoreError(
                f"what arrives is refused: {problem}",
                hint="its writer has a damaged store, or is malicious",
            ) from error

    def _write(self, batch: Sequence[CheckedRecord]) -> None:
        if batch:
            self._require_bounded(batch)
            self._store.ensure_records(batch)
            self.stored[batch[0].record.table] += len(batch)

    def _hold(self, record: StoredRecord) -> None:
        self._connection.execute(
            "INSERT OR IGNORE INTO held VALUES (?, ?, ?, ?)",
            (record.table, bytes.fromhex(record.id), record.content, record.data),
        )

    def _take(self, table: str) -> Iterator[list[CheckedRecord]]:
        """Yield the rows of a table that are held, some at a time; they are so no longer."""
        query = "SELECT id, content, data FROM held WHERE kind = ? AND id > ? ORDER BY id LIMIT ?"
        last = b""
        while rows := self._connection.execute(query, (table, last, batches.SMALL_SIZE)).fetchall():
            last = rows[-1][0]
            self._connection.execute(
                "DELETE FROM held WHERE kind = ? AND id BETWEEN ? AND ?", (table, rows[0][0], last)
            )
            yield [check_record(StoredRecord(table, id.hex(), *row)) for id, *row in rows]


def split_records(records: Iterable[CheckedRecord]) -> Iterator[list[CheckedRecord]]:
    """Yield records in the parts that are each written in one transaction."""
    return in_weighed_batches(records, lambda checked: checked.record.size, _BYTES, _ROWS)


# --- rows of a remote, or of another store


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


class Pull:
    """Copies rows of a remote; runs come last, so that an interrupted pull shows no new run.

    Nothing is stored before what it refers to. What the remote lacks, or refers to rows which it
    lacks, is left there: it may come with another push.
    """

    def __init__(
        self, store: Store, cache: IndexCache, reader: PackReader, arrivals: Arrivals
    ) -> None:
        self._store = store
        self._cache = cache
        self._reader = reader
        self._arrivals = arrivals
        self._seen: set[bytes] = set()
        """The rows that were copied with what they refer to."""

    @classmethod
    @contextmanager
    def open(
        cls, store: Store, files: RemoteFiles, cache: IndexCache, listener: CopyListener
    ) -> Iterator[Self]:
        """Begin to copy; rows that still wait at the end of the block are left."""
        with Arrivals.open(store) as arrivals:
            yield cls(store, cache, PackReader(files, cache, listener), arrivals)

    @property
    def pulled(self) -> Pulled:
        """Return what was read until now."""
        arrivals, reader = self._arrivals, self._reader
        size, missing = reader.bytes_received, len(reader.missing_packs)
        return Pulled(arrivals.stored.copy(), size, arrivals.waiting, reader.left, missing)

    def find_keyed(self, table: str, keys: Iterable[str]) -> set[bytes]:
        """Return the rows of a table with these lookup keys that the remote has, the store not."""
        wanted = [bytes.fromhex(key) for key in keys]
        return self._lacking(table, set(self._cache.find_keys(table, wanted)))

    def find_newest_runs(self) -> set[bytes]:
        """Return the newest run, and the newest about all cases, if the store lacks them."""
        return self._lacking("runs", self._cache.find_newest_runs())

    def _lacking(self, table: str, ids: set[bytes]) -> set[bytes]:
        ids = ids - self._seen
        return ids - self._store.find_present(table, ids)

    def copy_all(self, missing: MissingIds) -> Pulled:
        """Copy these rows, each pack read once.

        Raises `RemoteError` for a pack that is damaged, and `StoreError` if a stored row has other
        content.
        """
        self._reader.listener.start(count_ids(missing))
        for batch in split_records(self._reader.read_records(missing)):
            self._arrivals.add(batch)
        self._arrivals.finish()
        return self.pulled

    def copy(self, table: str, ids: Iterable[bytes]) -> None:
        """Copy rows of a table with what they refer to; raises as `copy_all`."""
        wanted = {table: set(ids)}
        while wanted:
            below = set[bytes]()
            fresh = {name: b"".join(sorted(some - self._seen)) for name, some in wanted.items()}
            self._seen.update(*wanted.values())
            for batch in split_records(self._reader.read_records(fresh)):
                below.update(bytes.fromhex(id) for each in batch for id in each.references)
                self._arrivals.add(batch)
            wanted = dict(self._locate(below - self._seen))
        self._arrivals.finish()

    def _locate(self, ids: set[bytes]) -> Iterator[tuple[str, set[bytes]]]:
        """Yield the tables in which the remote has these ids, without those of the store."""
        for table in COPIED_TABLES:
            if not ids:
                return
            ids = ids - self._store.find_present(table, ids)
            places = self._cache.find_places(TABLE_NUMBERS[table], sorted(ids))
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
