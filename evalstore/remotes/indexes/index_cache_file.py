"""The file of a cache of indexes: opened, made again where it cannot be used, or left out."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from evalstore.remotes.indexes.replaced_indexes import SCHEMA as REPLACED
from evalstore.remotes.indexes.unread_ids import SCHEMA as UNREAD
from evalstore.remotes.packs.range_hashes import SCHEMA as RANGE_HASHES
from evalstore.store.sqlite.connection import harden

FORMAT = 6
_BUSY_SECONDS = 10.0
_SCHEMA = """
CREATE TABLE origin (format INTEGER NOT NULL, address TEXT NOT NULL, rules TEXT NOT NULL);
CREATE TABLE indexes (
    number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, writer TEXT NOT NULL,
    created INTEGER NOT NULL, records INTEGER NOT NULL
);
CREATE TABLE packs (
    number INTEGER PRIMARY KEY, source INTEGER NOT NULL, digest TEXT NOT NULL, size INTEGER NOT NULL
);
CREATE TABLE records (
    kind INTEGER NOT NULL, id BLOB NOT NULL, lookup BLOB, pack INTEGER NOT NULL,
    start INTEGER NOT NULL, length INTEGER NOT NULL, pushed INTEGER, PRIMARY KEY (kind, id)
) WITHOUT ROWID;
CREATE TABLE refused (
    name TEXT PRIMARY KEY, writer TEXT NOT NULL, created INTEGER NOT NULL, records INTEGER NOT NULL,
    reason TEXT NOT NULL, signature TEXT
) WITHOUT ROWID;
CREATE INDEX lookups ON records (lookup) WHERE lookup IS NOT NULL;
"""


class Origin(NamedTuple):
    """What a cache is a copy of."""

    format: int
    address: str
    rules: str


def open_file(path: Path, origin: Origin) -> sqlite3.Connection | None:
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
            if _is_usable(connection, origin):
                return connection
        except sqlite3.OperationalError:  # another program uses it
            connection.close()
            return None
        except sqlite3.DatabaseError:
            pass
        with suppress(sqlite3.Error):
            connection.close()
    return None


def read_origin(path: Path) -> Origin | None:
    """Return what the file of a cache is a copy of; None if it cannot be read."""
    try:
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as connection:
            harden(connection)
            return Origin(*connection.execute("SELECT * FROM origin").fetchone())
    except (sqlite3.Error, TypeError):
        return None


def _is_usable(connection: sqlite3.Connection, origin: Origin) -> bool:
    """Return whether a cache is one of this remote, format and rules; makes an empty file one."""
    if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        connection.execute("BEGIN IMMEDIATE")
        with connection:
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                make_tables(connection, origin)
    foreign = "SELECT count(*) FROM sqlite_master WHERE type IN ('trigger', 'view')"
    if connection.execute(foreign).fetchone()[0]:
        return False
    rows = connection.execute("SELECT * FROM origin").fetchall()
    return rows == [origin]


def make_tables(connection: sqlite3.Connection, origin: Origin) -> None:
    """Make the tables of a cache."""
    for statement in [*_SCHEMA.split(";"), *UNREAD.split(";"), REPLACED, RANGE_HASHES]:
        connection.execute(statement)
    connection.execute("INSERT INTO origin VALUES (?, ?, ?)", origin)
