"""Copies rows that a store does not have from a remote, and checks every one of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, Self

from evalstore.core.errors import RemoteError
from evalstore.remotes.arrivals import Arrivals
from evalstore.remotes.differences import MissingIds, count_ids, split_ids
from evalstore.remotes.indexes.index_cache import IndexedRecords, RecordPlace
from evalstore.remotes.packs.batches import split_records
from evalstore.remotes.packs.pack_reader import PackReader
from evalstore.remotes.packs.packs import TABLE_NUMBERS, PackEntry
from evalstore.remotes.temporary_tables import open_tables
from evalstore.store.records import COPIED_TABLES, CheckedRecord
from evalstore.store.schema.table_columns import RUNS

if TYPE_CHECKING:
    import sqlite3

    from evalstore.remotes.indexes.index_cache import IndexCache
    from evalstore.remotes.indexes.indexes import IndexedPack
    from evalstore.remotes.places.remote_files import RemoteFiles
    from evalstore.remotes.progress import CopyListener
    from evalstore.store import Store


_AT_ONCE = 30_000


class Pulled(NamedTuple):
    """What a pull has read."""

    stored: Mapping[str, int]
    """How many rows were stored, by table."""
    bytes_received: int
    """Of packs, or parts of them."""
    left: Mapping[str, int]
    """How many rows were left in the remote, because it lacks rows that they refer to, by table."""
    missing: Mapping[str, int]
    """How many rows are in packs that are not in the remote yet, or no longer, by table."""
    missing_packs: int

    @property
    def records(self) -> int:
        """Return how many rows were stored."""
        return sum(self.stored.values())

    @property
    def waiting(self) -> int:
        """Return how many runs were left in the remote."""
        return self.left.get(RUNS.name, 0)

    @classmethod
    def of(cls, arrivals: Arrivals, reader: PackReader) -> Self:
        """Return what was read until now."""
        return cls(
            dict(arrivals.stored),
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
    with WantedRecords.open(cache.records) as wanted, Arrivals.open(store) as arrivals:
        for table in sorted(missing, key=COPIED_TABLES.index):
            for ids in split_ids(missing[table], _AT_ONCE):
                if wanted.add(cache.records.find_places(table, ids)) < len(ids):
                    raise RemoteError(
                        f"what is known of the remote '{files.address}' changed during the pull",
                        hint="another program has read it at the same time; pull again",
                    )
        wanted.order()
        for table in sorted(missing, key=COPIED_TABLES.index):
            for batch in split_records(_read_table(reader, wanted, table)):
                arrivals.add(batch)
        return Pulled.of(arrivals, reader)


def _read_table(reader: PackReader, wanted: WantedRecords, table: str) -> Iterator[CheckedRecord]:
    """Yield the checked records of a table; those of later tables in its packs are kept."""
    for place, data in wanted.iterate_kept(table):
        yield reader.check(wanted.find_pack(place.pack), place, data)
    for number in wanted.list_packs(table):
        pack = wanted.find_pack(number)
        later: list[tuple[RecordPlace, bytes]] = []
        for place, data in reader.read_pack(pack, wanted.list_places(number)):
            if place.entry.table == TABLE_NUMBERS[table]:
                yield reader.check(pack, place, data)
            else:
                later.append((place, data))
        wanted.keep(number, later)


# --- the records that a pull copies, by pack, so that each pack is read once


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
