"""How a store's file is opened: with limits, as it may come from a stranger."""

from __future__ import annotations

import logging
import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event

# An interrupt while a connection is closed is logged with a traceback, and raised as well.
logging.getLogger("sqlalchemy").addHandler(logging.NullHandler())

LARGEST_VALUE = 256 * 2**20
"""Bytes of a value, and of a row: files have at most 32 MiB, and old nodes may have more."""


_CACHE = 32 * 1024
"""KiB of pages in memory: ids are random, so what is written lies everywhere."""


def harden(connection: sqlite3.Connection) -> None:
    """Take from a connection what a file of unknown origin could make use of."""
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LARGEST_VALUE)
    connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
    connection.setlimit(sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH, 0)  # no trigger is executed
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA cell_size_check = ON")
    if sys.version_info >= (3, 12):
        connection.setconfig(sqlite3.SQLITE_DBCONFIG_DEFENSIVE, True)


def is_on_read_only_media(path: Path) -> bool:
    """Whether nobody can write a store: then SQLite must be told, or it cannot even read it."""
    log = Path(f"{path}-wal")
    return (
        path.is_file()
        and not os.access(path.parent, os.W_OK)
        and not (log.exists() and log.stat().st_size)
    )


def make_engine(path: Path, busy: int, *, immutable: bool = False) -> Engine:
    """An engine for the store at a path, which waits `busy` milliseconds for other writers.

    `immutable`: nobody writes to it.
    """
    # Made from parts: as a text, a path with a question mark would be cut off there.
    url = URL.create("sqlite", database=str(path))
    if immutable:
        name = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
        url = URL.create("sqlite", database=name, query={"uri": "true"})
    engine = create_engine(url, connect_args={"timeout": busy / 1000})

    @event.listens_for(engine, "connect")
    def _configure(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        harden(connection)
        cursor.execute(f"PRAGMA busy_timeout = {busy}")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute(f"PRAGMA cache_size = -{_CACHE}")
        cursor.close()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        write = connection.get_execution_options().get("evalstore_write")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if write else "BEGIN")

    return engine
