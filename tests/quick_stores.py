"""Makes stores faster in tests: they are copies, and nothing waits until the disk has written."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from unittest import mock

from evalstore.store.schema import table_definitions
from evalstore.store.sqlite import driver as drivers
from evalstore.store.sqlite.driver import SQLiteDriver

_connect = SQLiteDriver._connect
_make_tables = drivers.make_tables
_head = table_definitions.HEAD


def _connect_quickly(driver: SQLiteDriver) -> sqlite3.Connection:
    if not (driver._immutable or driver._path.exists()):
        _copy_empty(driver._path)
    connection = _connect(driver)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def _copy_empty(path: Path) -> None:
    """Make the file of a new store at once, as the program does step by step.

    That is left to the program where the system cannot do it, and for other tables.
    """
    is_usual = drivers.make_tables is _make_tables and _head == table_definitions.HEAD
    if not (is_usual and hasattr(os, "O_TMPFILE")):
        return
    with suppress(OSError):
        nameless = os.open(path.parent, os.O_TMPFILE | os.O_WRONLY, 0o644)
        try:
            os.write(nameless, _empty())
            # With a folder that is not looked at, the link is followed, which has no name either.
            os.link(f"/proc/self/fd/{nameless}", path, src_dir_fd=nameless)
        finally:
            os.close(nameless)


@cache
def _empty() -> bytes:
    """What is in the file of a store without rows."""
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder, "store.db")
        made.touch()
        SQLiteDriver.open(made, create=True, busy=1).close()
        return made.read_bytes()


@contextmanager
def quick_stores() -> Iterator[None]:
    """Write stores quickly in this process."""
    with mock.patch.object(SQLiteDriver, "_connect", _connect_quickly):
        yield
