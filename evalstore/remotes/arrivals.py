"""Stores rows that arrive from a remote, each only after all that it refers to.

A row whose references are neither stored nor in the remote waits there: a store that has it would
look damaged. Nodes refer to nodes, which may arrive after them, so they are kept until then in a
temporary SQLite file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from evalstore.core.errors import StoreError
from evalstore.core.runs import restore_run
from evalstore.remotes.completeness import Completeness, find_absent
from evalstore.remotes.temporary_tables import open_tables
from evalstore.store.records import CheckedRecord, StoredRecord, check_record
from evalstore.store.schema.table_columns import NODES, RUNS
from evalstore.store.trees.case_chunks import has_parts
from evalstore.store.trees.case_files import load_case_parts
from evalstore.store.trees.tree_sizes import TreeSizes

if TYPE_CHECKING:
    import sqlite3

    from evalstore.store import Store

_SCHEMA = """
CREATE TABLE held (id BLOB PRIMARY KEY, content TEXT NOT NULL, lacking INTEGER NOT NULL)
WITHOUT ROWID;
CREATE INDEX complete ON held (lacking) WHERE lacking = 0;
CREATE TABLE needs (target BLOB NOT NULL, id BLOB NOT NULL, PRIMARY KEY (target, id))
WITHOUT ROWID;
"""
_AT_ONCE = 100
"""Nodes whose references are in memory at once."""


class Arrivals:
    """Stores rows, counts those that wait, and refuses runs that describe too much to be read."""

    def __init__(self, store: Store, connection: sqlite3.Connection) -> None:
        self._store = store
        self._connection = connection
        self._sizes = TreeSizes(store)
        self._held = 0
        self._waiting = Counter[str]()
        self.stored = Counter[str]()
        """How many rows were stored, by table."""

    @classmethod
    @contextmanager
    def open(cls, store: Store) -> Iterator[Self]:
        """Begin with rows for a store; nodes that still wait at the end of the block are left."""
        with open_tables(_SCHEMA) as connection:
            yield cls(store, connection)

    @property
    def waiting(self) -> Counter[str]:
        """Return how many rows wait, by table."""
        return self._waiting + Counter({NODES.name: self._held})

    def add(self, batch: Sequence[CheckedRecord]) -> None:
        """Store those of these rows of a table that refer to stored rows only; raises `StoreError`.

        Runs are stored when all below them is stored, too.
        """
        table = batch[0].record.table
        if table == NODES.name:
            for start in range(0, len(batch), _AT_ONCE):
                self._add_nodes(batch[start : start + _AT_ONCE])
            return
        if table == RUNS.name:
            complete, _ = Completeness(self._store).split(batch)
        else:
            lacking = self._find_lacking(batch)
            complete = [checked for checked in batch if checked.record.id not in lacking]
        self._waiting[table] += len(batch) - len(complete)
        self._write(complete)

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
                hint="whoever has made it has a damaged store, or means harm",
            ) from error

    def _find_lacking(self, batch: Sequence[CheckedRecord]) -> dict[str, set[bytes]]:
        """Return what rows refer to and is not stored; those that lack nothing are left out."""
        references = {
            checked.record.id: {bytes.fromhex(id) for id in checked.references} for checked in batch
        }
        table = batch[0].record.table
        below = None if table == NODES.name else table
        absent = find_absent(self._store, set().union(*references.values()), below)
        return {id: ids & absent for id, ids in references.items() if absent and ids & absent}

    def _write(self, batch: Sequence[CheckedRecord]) -> None:
        if batch:
            self._require_bounded(batch)
            self._store.ensure_records(batch)
            self.stored[batch[0].record.table] += len(batch)

    def _add_nodes(self, batch: Sequence[CheckedRecord]) -> None:
        lacking = self._find_lacking(batch)
        complete = [checked for checked in batch if checked.record.id not in lacking]
        for checked in batch:
            if checked.record.id in lacking:
                self._hold(checked.record, lacking[checked.record.id])
        while complete:
            self._write(complete)
            complete = self._release([checked.record.id for checked in complete])

    def _hold(self, record: StoredRecord, lacking: set[bytes]) -> None:
        id = bytes.fromhex(record.id)
        self._connection.execute(
            "INSERT INTO held VALUES (?, ?, ?)", (id, record.content, len(lacking))
        )
        self._connection.executemany(
            "INSERT INTO needs VALUES (?, ?)", ((target, id) for target in lacking)
        )
        self._held += 1

    def _release(self, stored: Sequence[str]) -> list[CheckedRecord]:
        """Return some of the nodes that lack nothing, now that these are stored."""
        if not self._held:
            return []
        self._connection.executemany(
            "UPDATE held SET lacking = lacking - 1 "
            "WHERE id IN (SELECT id FROM needs WHERE target = ?)",
            ((bytes.fromhex(id),) for id in stored),
        )
        query = "SELECT id, content FROM held WHERE lacking = 0 LIMIT ?"
        found = self._connection.execute(query, (_AT_ONCE,)).fetchall()
        self._connection.executemany("DELETE FROM held WHERE id = ?", ((id,) for id, _ in found))
        self._held -= len(found)
        return [check_record(StoredRecord(NODES.name, id.hex(), content)) for id, content in found]
