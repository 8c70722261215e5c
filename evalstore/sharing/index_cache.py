"""A copy of all index files of a remote in an SQLite file on this machine.

It only saves reading them again: when it is lost, damaged or of another format, they are read
again.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Self

from evalstore.errors import RemoteError
from evalstore.sharing.indexes import (
    LARGEST_INDEX,
    NO_KEY,
    DamagedIndexError,
    IndexedPack,
    IndexedRecord,
    IndexHeader,
    read_index,
)
from evalstore.sharing.layout import INDEXES, digest_of_index, sha256
from evalstore.sharing.packs import TABLE_NUMBERS, PackEntry
from evalstore.sharing.remote_files import MissingFileError, RemoteFiles
from evalstore.store.connection import harden

_FORMAT = 1
_BUSY_SECONDS = 10.0
_SCHEMA = """
CREATE TABLE origin (format INTEGER NOT NULL, address TEXT NOT NULL);
CREATE TABLE indexes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, writer TEXT NOT NULL,
    created INTEGER NOT NULL, records INTEGER NOT NULL
);
CREATE TABLE packs (
    number INTEGER PRIMARY KEY, source INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL
);
CREATE TABLE records (
    kind INTEGER NOT NULL, id BLOB NOT NULL, lookup BLOB, pack INTEGER NOT NULL,
    start INTEGER NOT NULL, length INTEGER NOT NULL, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE INDEX lookups ON records (lookup) WHERE lookup IS NOT NULL;
"""
_AT_ONCE = 30_000


class RecordPlace(NamedTuple):
    """Where a remote has a record."""

    pack: int
    """The number of the pack in the cache."""
    entry: PackEntry


class Push(NamedTuple):
    """An index file, which is what a push has written."""

    name: str
    writer: str
    created: int
    """Microseconds since 1970, UTC."""
    records: int
    """How many records no earlier index has."""


class IndexCache:
    """The records that a remote has, as far as its index files have been read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    @contextmanager
    def open(cls, path: Path | None, address: str) -> Iterator[Self]:
        """Open the cache at a path for a remote; in a temporary file without one."""
        connection = _open(path, address) if path else None
        if connection is None:
            connection = sqlite3.connect("", isolation_level=None)
            _make(connection, address)
        try:
            yield cls(connection)
        finally:
            connection.close()

    def refresh(self, files: RemoteFiles) -> int:
        """Read the index files that are not in the cache; returns how many bytes were read.

        Raises `RemoteError` for an index that is damaged.
        """
        known = {name for (name,) in self._connection.execute("SELECT name FROM indexes")}
        listed = {
            file.name for file in files.iterate(INDEXES) if digest_of_index(file.name) is not None
        }
        if known - listed:  # the remote was emptied, or cleaned up
            self._clear()
            known = set()
        read = 0
        for name in sorted(listed - known):
            try:
                data = files.read(name, LARGEST_INDEX)
            except MissingFileError:
                continue  # a clean-up of the remote has replaced it
            read += len(data)
            if sha256(data) != digest_of_index(name):
                raise RemoteError(
                    f"the remote '{files.address}' is damaged: '{name}' has other bytes than when "
                    "it was written",
                    hint=f"'evalstore fsck --remote' lists what is wrong; remove '{name}', and "
                    "push again from a store that has its rows",
                )
            try:
                self.add(name, *read_index(data))
            except DamagedIndexError as error:
                raise RemoteError(
                    f"the remote '{files.address}' is damaged: '{name}': {error}",
                    hint=f"remove '{name}', and push again from a store that has its rows",
                ) from error
        return read

    def _clear(self) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        with self._connection:
            for table in ("records", "packs", "indexes"):
                self._connection.execute(f"DELETE FROM {table}")

    def add(self, name: str, header: IndexHeader, records: Iterable[IndexedRecord]) -> None:
        """Add the records of an index; those that an earlier one has stay as they are."""
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if connection.execute("SELECT 1 FROM indexes WHERE name = ?", (name,)).fetchone():
                return  # another program was faster
            cursor = connection.execute(
                "INSERT INTO indexes (name, writer, created, records) VALUES (?, ?, ?, 0)",
                (name, header.writer, header.created),
            )
            source = cursor.lastrowid
            (last,) = connection.execute("SELECT coalesce(max(number), 0) FROM packs").fetchone()
            connection.executemany(
                "INSERT INTO packs VALUES (?, ?, ?, ?)",
                [
                    (last + position, source, *pack)
                    for position, pack in enumerate(header.packs, start=1)
                ],
            )
            added = connection.executemany(
                "INSERT OR IGNORE INTO records VALUES (?, ?, ?, ?, ?, ?)",
                (
                    (
                        entry.table,
                        entry.id,
                        None if key == NO_KEY else key,
                        last + 1 + pack,
                        entry.offset,
                        entry.length,
                    )
                    for pack, entry, key in records
                ),
            ).rowcount
            connection.execute(
                "UPDATE indexes SET records = ? WHERE number = ?", (max(added, 0), source)
            )

    def list_pushes(self) -> list[Push]:
        """Return the index files, oldest first."""
        query = "SELECT name, writer, created, records FROM indexes ORDER BY created, name"
        return [Push(*row) for row in self._connection.execute(query)]

    def find_pack(self, number: int) -> IndexedPack:
        """Return a pack by its number."""
        query = "SELECT digest, size FROM packs WHERE number = ?"
        return IndexedPack(*self._connection.execute(query, (number,)).fetchone())

    def find_range(self, table: str, first: bytes, last: bytes) -> set[tuple[bytes]]:
        """Return the ids of the records of a table from `first` up to `last`, each in a tuple."""
        query = "SELECT id FROM records WHERE kind = ? AND id BETWEEN ? AND ?"
        return set(self._connection.execute(query, (TABLE_NUMBERS[table], first, last)))

    def find_places(self, table: str, ids: Sequence[bytes]) -> Iterator[RecordPlace]:
        """Yield where the remote has these records of a table; those it lacks are left out."""
        number = TABLE_NUMBERS[table]
        query = "SELECT pack, id, start, length FROM records WHERE kind = ? AND id IN"
        for begin in range(0, len(ids), _AT_ONCE):
            batch = ids[begin : begin + _AT_ONCE]
            places = ", ".join("?" * len(batch))
            rows = self._connection.execute(f"{query} ({places})", (number, *batch))
            for pack, id, start, length in rows:
                yield RecordPlace(pack, PackEntry(number, id, start, length))

    def find_keyed(self, table: str, keys: Sequence[bytes]) -> set[bytes]:
        """Return the ids of the records of a table with one of these lookup keys."""
        return set(self.find_keys(table, keys))

    def find_keys(self, table: str, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the ids of the records of a table with one of these lookup keys -> the key."""
        query = "SELECT id, lookup FROM records WHERE kind = ? AND lookup IN"
        found: dict[bytes, bytes] = {}
        for begin in range(0, len(keys), _AT_ONCE):
            batch = keys[begin : begin + _AT_ONCE]
            places = ", ".join("?" * len(batch))
            rows = self._connection.execute(f"{query} ({places})", (TABLE_NUMBERS[table], *batch))
            found.update(rows)
        return found

    def find_newest_runs(self) -> set[bytes]:
        """Return the ids of the newest run, and of the newest that was about all cases."""
        query = "SELECT id, lookup FROM records WHERE kind = ? AND lookup IS NOT NULL"
        rows = self._connection.execute(query, (TABLE_NUMBERS["runs"],))
        runs = sorted(((lookup, id) for id, lookup in rows), reverse=True)
        whole = (id for lookup, id in runs if lookup[8:9] == b"\1")
        return {id for _, id in runs[:1]} | {id for id in (next(whole, None),) if id is not None}

    def list_runs(self) -> list[str]:
        """Return the ids of the runs of the remote, newest first, as the store orders them."""
        query = "SELECT id FROM records WHERE kind = ? ORDER BY substr(lookup, 1, 8) DESC, id DESC"
        rows = self._connection.execute(query, (TABLE_NUMBERS["runs"],))
        return [id.hex() for (id,) in rows]

    def count(self, table: str) -> int:
        """Return how many records of a table the remote has."""
        query = "SELECT count(*) FROM records WHERE kind = ?"
        return int(self._connection.execute(query, (TABLE_NUMBERS[table],)).fetchone()[0])

    def count_bytes(self) -> int:
        """Return the bytes of all packs of the remote."""
        query = "SELECT coalesce(sum(size), 0) FROM (SELECT DISTINCT digest, size FROM packs)"
        return int(self._connection.execute(query).fetchone()[0])


def _open(path: Path, address: str) -> sqlite3.Connection | None:
    """Open the file of a cache, made again if it cannot be used; None where nothing can be."""
    for again in (False, True):
        try:
            if again:
                for suffix in ("", "-wal", "-shm", "-journal"):
                    Path(f"{path}{suffix}").unlink(missing_ok=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            connection = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None)
        except (OSError, sqlite3.OperationalError):
            return None
        try:
            harden(connection)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            if _is_usable(connection, address):
                return connection
        except sqlite3.DatabaseError:
            pass
        with suppress(sqlite3.Error):
            connection.close()
    return None


def _is_usable(connection: sqlite3.Connection, address: str) -> bool:
    """Return whether a cache is one of this remote and format; makes an empty file one."""
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                _make(connection, address)
    foreign = "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')"
    if connection.execute(foreign).fetchone()[0]:
        return False
    rows = connection.execute("SELECT format, address FROM origin").fetchall()
    return rows == [(_FORMAT, address)]


def _make(connection: sqlite3.Connection, address: str) -> None:
    for statement in _SCHEMA.split(";"):
        connection.execute(statement)
    connection.execute("INSERT INTO origin VALUES (?, ?)", (_FORMAT, address))
