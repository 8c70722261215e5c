"""Tables in a temporary SQLite file, for what may be too much for memory."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from evalstore.core.errors import StoreError
from evalstore.store.sqlite.connection import is_locked

_FOLDERS = ("/var/tmp", "/usr/tmp", "/tmp")
_VARIABLES = ("SQLITE_TMPDIR", "TMPDIR")
_LACKS_ROOM = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR)


@contextmanager
def open_tables(schema: str) -> Iterator[sqlite3.Connection]:
    """Open new tables, which are removed at the end of the block.

    Raises `StoreError` when their file cannot be written, mostly as the disk is full.
    """
    with temporary_errors(), closing(sqlite3.connect("", isolation_level=None)) as connection:
        connection.executescript(schema)
        connection.execute("BEGIN")  # one transaction, which is never committed
        yield connection


@contextmanager
def temporary_errors() -> Iterator[None]:
    """Translate the errors of a temporary SQLite file into `StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        folder = _find_folder()
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LACKS_ROOM:
            text = f"no space left for temporary files in '{folder}'"
        else:
            text = f"a temporary file in '{folder}' cannot be used: {error}"
        raise StoreError(
            text, hint="free some space there, or name another folder in SQLITE_TMPDIR"
        ) from error


@contextmanager
def file_errors(path: Path) -> Iterator[None]:
    """Translate the errors of a SQLite file that can be made again into `StoreError`."""
    try:
        yield
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in _LACKS_ROOM:
            text, hint = f"no space left for '{path}'", "free some space and try again"
        elif is_locked(error):
            text = f"'{path}' is locked by another program"
            hint = "wait until it is done and try again"
        else:
            text, hint = f"'{path}' cannot be used: {error}", "remove it; it is created again"
        raise StoreError(text, hint=hint) from error


def _find_folder() -> str:
    """Return the folder in which SQLite makes temporary files."""
    named = [os.environ[name] for name in _VARIABLES if os.environ.get(name)]
    usable = (name for name in (*named, *_FOLDERS) if os.access(name, os.W_OK | os.X_OK))
    return next(usable, os.curdir)
