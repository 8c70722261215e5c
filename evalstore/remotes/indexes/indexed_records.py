"""The records of a remote that count, as a cache of its indexes has them: which, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from evalstore.remotes.indexes.indexes import NO_KEY, IndexedPack
from evalstore.remotes.packs.packs import TABLE_NAMES, TABLE_NUMBERS, PackEntry
from evalstore.remotes.packs.range_hashes import hash_range

if TYPE_CHECKING:
    import sqlite3

_AT_ONCE = 30_000


class RecordPlace(NamedTuple):
    """Where a remote has a record."""

    pack: int
    """The number of the pack in the cache."""
    entry: PackEntry
    key: bytes
    """The lookup key that the index gives."""


class Push(NamedTuple):
    """An index file, which is what a push has written."""

    name: str
    writer: str
    created: int
    """Microseconds since 1970, UTC."""
    records: int
    """How many records no earlier index has."""


class IndexedRecords:
    """The queries over the records and packs of a cache of indexes."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def find_pack(self, number: int) -> IndexedPack:
        """Return a pack by its number."""
        query = "SELECT digest, size FROM packs WHERE number = ?"
        return IndexedPack(*self._connection.execute(query, (number,)).fetchone())

    def list_indexes(self, digest: str) -> list[str]:
        """Return the names of the index files that list a pack."""
        query = (
            "SELECT DISTINCT name FROM packs JOIN indexes ON indexes.number = source "
            "WHERE digest = ? ORDER BY name"
        )
        return [name for (name,) in self._connection.execute(query, (digest,))]

    def find_range(self, table: str, first: bytes, last: bytes) -> set[tuple[bytes]]:
        """Return the ids of the records of a table from `first` up to `last`, each in a tuple."""
        query = "SELECT id FROM records WHERE kind = ? AND id BETWEEN ? AND ?"
        return set(self._connection.execute(query, (TABLE_NUMBERS[table], first, last)))

    def hash_range(self, table: str, first: bytes, last: bytes) -> bytes | None:
        """Return the hash of the same ids; None if there is something else among them."""
        return hash_range(self._connection, TABLE_NUMBERS[table], first, last)

    def find_places(self, table: str, ids: Sequence[bytes]) -> Iterator[RecordPlace]:
        """Yield where the remote has these records of a table; those it lacks are left out."""
        number = TABLE_NUMBERS[table]
        query = "SELECT pack, id, start, length, lookup FROM records WHERE kind = ? AND id IN"
        for begin in range(0, len(ids), _AT_ONCE):
            batch = ids[begin : begin + _AT_ONCE]
            places = ", ".join("?" * len(batch))
            rows = self._connection.execute(f"{query} ({places})", (number, *batch))
            for pack, id, start, length, key in rows:
                yield RecordPlace(pack, PackEntry(number, id, start, length), key or NO_KEY)

    def find_pushes(self, table: str, ids: Sequence[bytes]) -> Iterator[tuple[bytes, Push]]:
        """Yield those of these records that the remote has, each with its first push.

        Where a clean-up has put pushes together, `created` is the time of the first one with the
        record.
        """
        query = (
            "SELECT id, name, writer, coalesce(pushed, created), indexes.records FROM records "
            "JOIN packs ON packs.number = pack JOIN indexes ON indexes.number = source "
            "WHERE kind = ? AND id IN"
        )
        for begin in range(0, len(ids), _AT_ONCE):
            batch = ids[begin : begin + _AT_ONCE]
            places = ", ".join("?" * len(batch))
            rows = self._connection.execute(f"{query} ({places})", (TABLE_NUMBERS[table], *batch))
            yield from ((id, Push(*row)) for id, *row in rows)

    def find_keyed(self, table: str, keys: Sequence[bytes]) -> set[bytes]:
        """Return the ids of the records of a table with one of these lookup keys."""
        return set(self.find_keys(table, keys))

    def find_keys(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the ids of the records of a table with one of these lookup keys -> the key.

        In place of those that were not loaded yet are others, which no record has.
        """
        query = (
            "SELECT id, lookup FROM (SELECT id, lookup, kind FROM records UNION ALL SELECT "
            "CAST(printf('%08x%08x', block, position) AS BLOB), lookup, kind FROM unread_records) "
            "WHERE kind = ? AND lookup IN"
        )
        found: dict[bytes, bytes] = {}
        for begin in range(0, len(keys), _AT_ONCE):
            batch = keys[begin : begin + _AT_ONCE]
            places = ", ".join("?" * len(batch))
            rows = self._connection.execute(f"{query} ({places})", (TABLE_NUMBERS[table], *batch))
            found.update(rows)
        return found

    def find_newest_runs(self) -> set[bytes]:
        """Return the ids of the newest run, and of the newest that was about all cases.

        Runs without a lookup key are returned, too: whoever reads them finds that it is wrong.
        """
        query = "SELECT id, coalesce(lookup, x'ff') FROM records WHERE kind = ?"
        rows = self._connection.execute(query, (TABLE_NUMBERS["runs"],))
        runs = sorted(((lookup, id) for id, lookup in rows), reverse=True)
        whole = (id for lookup, id in runs if lookup[8:9] == b"\1")
        return {id for _, id in runs[:1]} | {id for id in (next(whole, None),) if id is not None}

    def list_runs(self) -> list[str]:
        """Return the ids of the runs of the remote, newest first, as the store orders them."""
        query = "SELECT id FROM records WHERE kind = ? ORDER BY substr(lookup, 1, 8) DESC, id DESC"
        rows = self._connection.execute(query, (TABLE_NUMBERS["runs"],))
        return [id.hex() for (id,) in rows]

    def count(self, table: str, most: int = -1) -> int:
        """Return how many records of a table the remote has; not more than `most` if it is set."""
        query = "SELECT count(*) FROM (SELECT 1 FROM records WHERE kind = ? LIMIT ?)"
        return int(self._connection.execute(query, (TABLE_NUMBERS[table], most)).fetchone()[0])

    def count_unknown(self) -> int:
        """Return how many records are of tables that only a newer program knows."""
        numbers = ", ".join(map(str, TABLE_NAMES))
        tables = ("records", "unread_records")
        counts = [
            f"(SELECT count(*) FROM {table} WHERE kind NOT IN ({numbers}))" for table in tables
        ]
        return int(self._connection.execute(f"SELECT {' + '.join(counts)}").fetchone()[0])

    def count_bytes(self) -> int:
        """Return the bytes of all packs of the remote."""
        query = "SELECT coalesce(sum(size), 0) FROM (SELECT DISTINCT digest, size FROM packs)"
        return int(self._connection.execute(query).fetchone()[0])
