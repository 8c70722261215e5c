"""Stores rows that arrive from a remote, each only after all that it refers to.

They may arrive in any order: until then they are kept in a temporary SQLite file. A row whose
references are neither stored nor in the remote waits there: a store that has it would look damaged.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Self

from evalstore.core import batches
from evalstore.core.batches import in_small_batches
from evalstore.core.errors import StoreError
from evalstore.core.runs import restore_run
from evalstore.remotes.temporary_tables import open_tables
from evalstore.store import Store
from evalstore.store.records import COPIED_TABLES, CheckedRecord, StoredRecord, check_record
from evalstore.store.schema.table_definitions import NODES, RUNS
from evalstore.store.trees.case_chunks import has_parts
from evalstore.store.trees.case_files import load_case_parts
from evalstore.store.trees.tree_nodes import TreeSizes

_SCHEMA = """
CREATE TABLE held (
    id BLOB PRIMARY KEY, kind TEXT NOT NULL, content TEXT NOT NULL, data BLOB,
    lacking INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX complete ON held (lacking) WHERE lacking = 0;
CREATE TABLE needs (target BLOB NOT NULL, id BLOB NOT NULL, PRIMARY KEY (target, id))
WITHOUT ROWID;
"""
_ROWS, _BYTES = 5_000, 16 * 2**20
"""The most rows, and roughly the most bytes, that are written in one transaction."""


class Arrivals:
    """Stores rows, counts those that wait, and refuses runs that describe too much to be read."""

    def __init__(self, store: Store, connection: sqlite3.Connection) -> None:
        self._store = store
        self._connection = connection
        self._sizes = TreeSizes(store)
        self._holds = False
        self.stored = Counter[str]()
        """How many rows were stored, by table."""

    @classmethod
    @contextmanager
    def open(cls, store: Store) -> Iterator[Self]:
        """Begin with rows for a store; those that still wait at the end of the block are left."""
        with open_tables(_SCHEMA) as connection:
            yield cls(store, connection)

    @property
    def waiting(self) -> Counter[str]:
        """Return how many rows wait, by table."""
        query = "SELECT kind, count(*) FROM held GROUP BY kind"
        return Counter(dict(self._connection.execute(query)))

    def add_all(self, records: Iterable[CheckedRecord]) -> None:
        """Add rows, and then store the runs whose rows are all stored; raises `StoreError`."""
        for batch in split_records(records):
            self.add(batch)
        self.finish()

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
            lacking = references[checked.record.id] & absent
            if lacking or checked.kind == "run":
                self._hold(checked.record, lacking)
            else:
                complete.append(checked)
        self._write(complete)
        stored = [checked.record.id for checked in complete]
        while self._holds and stored:
            stored = self._release(stored)

    def finish(self) -> None:
        """Store the runs whose rows are all stored."""
        complete: list[CheckedRecord] = []
        known: set[bytes] = set()
        for checked in self._take("kind = ?", RUNS.name, -1):
            if self._is_complete({bytes.fromhex(id) for id in checked.references}, known):
                complete.append(checked)
            else:
                self._hold(checked.record, set())
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
            pending = find_below(self._store, nodes) - reached - known
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

    def _hold(self, record: StoredRecord, lacking: set[bytes]) -> None:
        id = bytes.fromhex(record.id)
        self._connection.execute(
            "INSERT OR IGNORE INTO held VALUES (?, ?, ?, ?, ?)",
            (id, record.table, record.content, record.data, len(lacking)),
        )
        self._connection.executemany(
            "INSERT OR IGNORE INTO needs VALUES (?, ?)", ((target, id) for target in lacking)
        )
        self._holds = True

    def _release(self, stored: Sequence[str]) -> list[str]:
        """Store what lacks nothing, now that these are stored; returns the ids."""
        self._connection.executemany(
            "UPDATE held SET lacking = lacking - 1 "
            "WHERE id IN (SELECT id FROM needs WHERE target = ?)",
            ((bytes.fromhex(id),) for id in stored),
        )
        released = list[str]()
        while found := self._take("lacking = 0 AND kind <> ?", RUNS.name, batches.SMALL_SIZE):
            for _, group in itertools.groupby(found, key=lambda checked: checked.record.table):
                self._write(list(group))
            released += [checked.record.id for checked in found]
        return released

    def _take(self, condition: str, table: str, most: int) -> list[CheckedRecord]:
        """Return some of the rows that are held, which are so no longer."""
        query = f"SELECT kind, id, content, data FROM held WHERE {condition} LIMIT ?"
        found = self._connection.execute(query, (table, most)).fetchall()
        statement = "DELETE FROM held WHERE id = ?"
        self._connection.executemany(statement, ((id,) for _, id, *_ in found))
        return [
            check_record(StoredRecord(table, id.hex(), content, data))
            for table, id, content, data in found
        ]


def split_records(records: Iterable[CheckedRecord]) -> Iterator[list[CheckedRecord]]:
    """Yield records in the parts that are each written in one transaction."""
    batch: list[CheckedRecord] = []
    size = 0
    for checked in records:
        batch.append(checked)
        size += checked.record.size
        if len(batch) >= _ROWS or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def find_absent(store: Store, ids: set[bytes], below: str | None = None) -> set[bytes]:
    """Return those of these ids that a store lacks; with `below`, in the tables before this one."""
    tables = COPIED_TABLES[: COPIED_TABLES.index(below)] if below else COPIED_TABLES
    absent = set(ids)
    for table in reversed(tables):  # most references are to answers and judgements
        absent -= store.find_present(table, absent)
    return absent


def find_below(store: Store, nodes: Iterable[bytes]) -> set[bytes]:
    """Return what these nodes of a store refer to."""
    return {
        bytes.fromhex(id)
        for some in in_small_batches(sorted(nodes))
        for record in store.load_records(NODES.name, [id.hex() for id in some])
        for id in check_record(record).references
    }
