"""Tells what is new in a SQLite file by the numbers of its rows.

SQLite has one writer at a time, and numbers the rows of a table in the order in which they are
committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

from evalstore.store.driver import Connection, Extent
from evalstore.store.ids import as_digits
from evalstore.store.table_columns import FAILURES, RESULTS, RUNS

_RECORDED = (*RESULTS, FAILURES.name, RUNS.name)
"""The tables of what is recorded of runs."""


class RowNumbers:
    """The extents of SQLite files: numbers and ids of last rows, which must still be theirs."""

    def measure(self, connection: Connection) -> Extent:
        """Return the number and the id of the last rows; 0 and an empty id without rows."""
        return _last_rows(connection, RESULTS)

    def newest(self, connection: Connection, before: Extent | None) -> Extent:
        """Return the same of what is recorded of runs."""
        del before  # the last rows alone tell
        return _last_rows(connection, _RECORDED)

    def has_had(self, connection: Connection, extent: Extent) -> bool:
        """Return whether the last rows of an extent still have their numbers."""
        if list(map(type, extent)) != [int, str] * len(RESULTS):
            return False
        for table in RESULTS:
            number, id = _last(table, extent)
            query = f"SELECT id FROM {table} WHERE rowid = ?"
            row = connection.execute(query, (number,)).fetchone()
            if (as_digits(row[0]) if row else "") != id:
                return False
        return True

    def count(self, connection: Connection, table: str, before: Extent, after: Extent) -> int:
        """Return how many rows were added, without reading them."""
        return _last(table, after)[0] - _last(table, before)[0]

    def condition(self, table: str, since: Extent) -> tuple[str, tuple[int | str, ...]]:
        """Return that the number of a row is larger than that of the last one."""
        return "rowid > ?", (_last(table, since)[0],)


def _last_rows(connection: Connection, tables: Iterable[str]) -> Extent:
    extent: list[int | str] = []
    for table in tables:
        query = f"SELECT rowid, id FROM {table} ORDER BY rowid DESC LIMIT 1"
        row = connection.execute(query).fetchone()
        extent += (row[0], as_digits(row[1])) if row else (0, "")
    return tuple(extent)


def _last(table: str, extent: Extent) -> tuple[int, str]:
    """Return the number and the id of the last row of a table."""
    at = 2 * RESULTS.index(table)
    return cast("tuple[int, str]", extent[at : at + 2])
