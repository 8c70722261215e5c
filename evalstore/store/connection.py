"""Opens the file of a store with limits, because its origin may be unknown."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

LARGEST_VALUE = 256 * 2**20
"""The most bytes of a value or a row: files have at most 32 MiB, old nodes may have more."""

_CACHE = 32 * 1024
"""KiB of pages in memory: ids are random, so writes are spread over the file."""
_KEPT = 5
"""The number of idle connections that stay open."""


def harden(connection: sqlite3.Connection) -> None:
    """Disable on a connection what a file of unknown origin could exploit."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)  # no triggers run
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


def is_on_read_only_media(path: Path) -> bool:
    """Return whether the disk of a store is read-only, so that it must be opened as immutable."""
    log = Path(f"{path}-wal")
    return (
        path.is_file()
        and not os.access(path.parent, os.W_OK)
        and not (log.exists() and log.stat().st_size)
    )


class Pool:
    """A pool of connections to one file; each is used by one thread at a time."""

    def __init__(self, path: Path, busy: int, *, immutable: bool = False) -> None:
        """`busy` is the milliseconds to wait for writers; an `immutable` file never changes."""
        self._path = path
        self._busy = busy
        self._immutable = immutable
        self._idle: list[sqlite3.Connection] | None = []
        """None when the pool is closed; connections that are returned later are closed, too."""
        self._lock = Lock()

    @contextmanager
    def connect(self) -> Iterator[sqlite3.Connection]:
        """Return a connection for a `with` block; uncommitted changes are rolled back.

        Raises errors of sqlite3.
        """
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is None:
            connection = self._make()
        try:
            yield connection
        finally:
            self._give_back(connection)

    def close(self) -> None:
        """Close the connections; those in use are closed when they are returned."""
        with self._lock:
            idle, self._idle = self._idle, None
        for connection in idle or ():
            connection.close()

    def _give_back(self, connection: sqlite3.Connection) -> None:
        try:
            if connection.in_transaction:
                connection.rollback()
        except (
            sqlite3.ProgrammingError
        ):  # SQLAlchemy closes the connection of an interrupted migration
            return
        except BaseException:
            connection.close()
            raise
        with self._lock:
            is_kept = self._idle is not None and len(self._idle) < _KEPT
            if self._idle is not None and is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()

    def _make(self) -> sqlite3.Connection:
        path = self._path.absolute()
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=ro&immutable=1" if self._immutable else path,
            timeout=self._busy / 1000,
            isolation_level=None,
            check_same_thread=False,
            uri=self._immutable,
        )
        try:
            harden(connection)
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{_CACHE}")
        except BaseException:
            connection.close()
            raise
        return connection
