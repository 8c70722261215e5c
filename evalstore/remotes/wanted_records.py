"""The records that a pull copies, by pack, so that each pack is read once.

They are copied table by table, and a pack may have records of several tables. Those of later
tables are kept until their turn. All is in a temporary SQLite file, so that many records need no
more memory than few.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Self

from evalstore.remotes.indexes.indexed_records import IndexedRecords, RecordPlace
from evalstore.remotes.packs.packs import TABLE_NUMBERS, PackEntry
from evalstore.remotes.temporary_tables import open_tables
from evalstore.store.records import COPIED_TABLES

if TYPE_CHECKING:
    import sqlite3

    from evalstore.remotes.indexes.indexes import IndexedPack

_TURNS = {TABLE_NUMBERS[table]: turn for turn, table in enumerate(COPIED_TABLES)}
_SCHEMA = """
CREATE TABLE wanted (
    pack INTEGER NOT NULL, turn INTEGER NOT NULL, kind INTEGER NOT NULL, id BLOB NOT NULL,
    start INTEGER NOT NULL, length INTEGER NOT NULL, lookup BLOB NOT NULL
);
CREATE TABLE kept (
    turn INTEGER NOT NULL, pack INTEGER NOT NULL, data BLOB NOT NULL, PRIMARY KEY (turn, pack)
);
"""
_COLUMNS = "kind, id, start, length, lookup"


class WantedRecords:
    """Where the wanted records are, and those that were read before the turn of their table."""

    def __init__(self, connection: sqlite3.Connection, indexed: IndexedRecords) -> None:
        self._connection = connection
        self._indexed = indexed
        self._numbers: dict[IndexedPack, int] = {}
        """The first number of each pack: two indexes may list the same."""
        self._packs: dict[int, IndexedPack] = {}

    @classmethod
    @contextmanager
    def open(cls, indexed: IndexedRecords) -> Iterator[Self]:
        """Begin without any record; what is kept goes at the end of the block."""
        with open_tables(_SCHEMA) as connection:
            yield cls(connection, indexed)

    def add(self, places: Iterable[RecordPlace]) -> int:
        """Add records; returns how many."""
        rows = (
            (self._number(pack), _TURNS[entry.table], *entry[:2], entry.offset, entry.length, key)
            for pack, entry, key in places
        )
        statement = "INSERT INTO wanted VALUES (?, ?, ?, ?, ?, ?, ?)"
        return max(self._connection.executemany(statement, rows).rowcount, 0)

    def _number(self, pack: int) -> int:
        if pack not in self._packs:
            self._packs[pack] = self._indexed.find_pack(pack)
        return self._numbers.setdefault(self._packs[pack], pack)

    def find_pack(self, number: int) -> IndexedPack:
        """Return a pack by its number."""
        return self._packs[number]

    def order(self) -> None:
        """Order the records, after all were added."""
        self._connection.execute("CREATE INDEX packs ON wanted (pack, start)")

    def list_packs(self, table: str) -> list[int]:
        """Return the packs with records of a table, but of none before it."""
        query = "SELECT pack FROM wanted GROUP BY pack HAVING min(turn) = ? ORDER BY pack"
        return [pack for (pack,) in self._connection.execute(query, (COPIED_TABLES.index(table),))]

    def list_places(self, pack: int, table: str | None = None) -> list[RecordPlace]:
        """Return the wanted records of a pack by their offset; of all its tables, or of one."""
        query = f"SELECT {_COLUMNS} FROM wanted WHERE pack = ? AND turn BETWEEN ? AND ?"
        turns = (COPIED_TABLES.index(table),) * 2 if table else (0, len(COPIED_TABLES))
        rows = self._connection.execute(f"{query} ORDER BY start", (pack, *turns))
        return [
            RecordPlace(pack, PackEntry(kind, id, start, length), key)
            for kind, id, start, length, key in rows
        ]

    def keep(self, pack: int, records: Iterable[tuple[RecordPlace, bytes]]) -> None:
        """Keep records of a pack, by their offset, until the turns of their tables."""
        by_turn: dict[int, list[bytes]] = {}
        for place, data in records:
            by_turn.setdefault(_TURNS[place.entry.table], []).append(data)
        rows = ((turn, pack, b"".join(parts)) for turn, parts in by_turn.items())
        self._connection.executemany("INSERT INTO kept VALUES (?, ?, ?)", rows)

    def iterate_kept(self, table: str) -> Iterator[tuple[RecordPlace, bytes]]:
        """Yield the records of a table that were kept."""
        query = "SELECT pack, data FROM kept WHERE turn = ? ORDER BY pack"
        for pack, data in self._connection.execute(query, (COPIED_TABLES.index(table),)):
            start = 0
            for place in self.list_places(pack, table):
                yield place, data[start : start + place.entry.length]
                start += place.entry.length
