"""Finds runs that refer to rows which have not arrived yet: they must not be stored before."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from evalstore.store.records import COPIED_TABLES, CheckedRecord, check_record

if TYPE_CHECKING:
    from evalstore.store import Store

_NODES = "nodes"
_LOOKED_UP = 500
"""Ids of a query: SQLite keeps the statements for each number of ids, and long ones are large."""
_AT_ONCE = 500
"""Nodes that are in memory at once."""


def find_absent(store: Store, ids: set[bytes], below: str | None = None) -> set[bytes]:
    """Return those of these ids that a store lacks; with `below`, in the tables before this one."""
    tables = COPIED_TABLES[: COPIED_TABLES.index(below)] if below else COPIED_TABLES
    absent = set(ids)
    for table in reversed(tables):  # most references are to answers and judgements
        waiting = sorted(absent)
        for start in range(0, len(waiting), _LOOKED_UP):
            absent -= store.find_present(table, waiting[start : start + _LOOKED_UP])
    return absent


class Completeness:
    """Follows the references of runs through the nodes of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._complete: set[bytes] = set()
        """Rows that are stored with all that they refer to."""

    def split(
        self, records: Iterable[CheckedRecord]
    ) -> tuple[list[CheckedRecord], list[CheckedRecord]]:
        """Return the runs whose rows are all stored, and those that lack one."""
        complete: list[CheckedRecord] = []
        waiting: list[CheckedRecord] = []
        for checked in records:
            references = {bytes.fromhex(id) for id in checked.references}
            (complete if self._is_complete(references) else waiting).append(checked)
        return complete, waiting

    def _is_complete(self, ids: set[bytes]) -> bool:
        """Return whether these rows, and all below them, are stored."""
        reached: set[bytes] = set()
        pending = ids - self._complete
        while pending:
            reached |= pending
            nodes = self._store.find_present(_NODES, pending)
            if find_absent(self._store, pending - nodes):
                return False
            pending = self._below(sorted(nodes)) - reached - self._complete
        self._complete |= reached
        return True

    def _below(self, nodes: list[bytes]) -> set[bytes]:
        below: set[bytes] = set()
        for start in range(0, len(nodes), _AT_ONCE):
            digits = [id.hex() for id in nodes[start : start + _AT_ONCE]]
            for record in self._store.load_records(_NODES, digits):
                below |= {bytes.fromhex(id) for id in check_record(record).references}
        return below
