"""Which index files of a remote need not be read, because others replace them.

A clean-up of a remote writes one index in place of many, and names them in it. Where only some
writers count, an index is replaced only by one of the same writer: nobody hides what others have
pushed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

    from evalstore.remotes.indexes.unread_ids import UnreadIds

SCHEMA = """
CREATE TABLE replaced (
    name TEXT NOT NULL, writer TEXT NOT NULL, is_known INTEGER NOT NULL, PRIMARY KEY (name, writer)
) WITHOUT ROWID"""
"""The indexes that others replace, with the writers of these others. One is known to be replaced
when it was read, and is of the same writer."""


class ReplacedIndexes:
    """The part of an `IndexCache` about indexes that others replace."""

    def __init__(self, connection: sqlite3.Connection, unread: UnreadIds, *, by_all: bool) -> None:
        """Use a connection; with `by_all`, indexes of other writers may replace an index, too."""
        self._connection = connection
        self._unread = unread
        self._by_all = by_all

    def contains(self, name: str) -> bool:
        """Return whether an index need not be read."""
        query = "SELECT 1 FROM replaced WHERE name = ? AND (is_known OR ?)"
        return bool(self._connection.execute(query, (name, self._by_all)).fetchone())

    def settle(self, name: str, writer: str) -> bool:
        """Return whether an index of a writer is replaced; then it is never read again."""
        statement = "UPDATE replaced SET is_known = 1 WHERE name = ? AND (writer = ? OR ?)"
        return bool(self._connection.execute(statement, (name, writer, self._by_all)).rowcount)

    def add(self, names: Sequence[str], writer: str) -> None:
        """Note which indexes one of a writer replaces, and forget what they list."""
        numbers: list[int] = []
        for name in names:
            query = "SELECT number FROM indexes WHERE name = ? AND (writer = ? OR ?)"
            row = self._connection.execute(query, (name, writer, self._by_all)).fetchone()
            numbers += row or ()
            note = "INSERT OR IGNORE INTO replaced VALUES (?, ?, ?)"
            self._connection.execute(note, (name, writer, row is not None))
        if numbers:
            self._unread.forget(numbers)
            sources = ", ".join(map(str, numbers))
            packs = f"SELECT number FROM packs WHERE source IN ({sources})"
            self._connection.execute(f"DELETE FROM records WHERE pack IN ({packs})")
            self._connection.execute(f"DELETE FROM packs WHERE source IN ({sources})")
            self._connection.execute(f"DELETE FROM indexes WHERE number IN ({sources})")
