"""Inspects the file of a store without creating, migrating or writing anything."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from evalstore.store.inspection import StoreState
from evalstore.store.sqlite.connection import harden
from evalstore.store.sqlite.schema_check import SCHEMA, find_foreign


def inspect_store(path: Path) -> StoreState:
    """Return the state of the store at a path."""
    try:
        size = path.stat().st_size
    except OSError:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
        return StoreState(None, writable=os.access(folder, os.W_OK))
    log = Path(f"{path}-wal")
    size += log.stat().st_size if log.exists() else 0
    # SQLite writes its log beside the store.
    writable = os.access(path, os.W_OK) and os.access(path.parent, os.W_OK)
    # On read-only media SQLite can only read a file that is opened as immutable.
    mode = "mode=rw" if writable else "mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)) as connection:
            harden(connection)
            rows = connection.execute(SCHEMA).fetchall()
            tables = {name for _, name, _ in rows}
            unreadable = [extra.words for extra in find_foreign(rows) if extra.blocks_reading]
            if unreadable:
                return StoreState(size, None, writable, unreadable[0])
            if tables and "alembic_version" not in tables:
                return StoreState(size, None, writable, "it is not a store of evalstore")
            row = (
                connection.execute("SELECT version_num FROM alembic_version").fetchone()
                if tables
                else None
            )
    except sqlite3.Error as error:
        return StoreState(size, None, writable, str(error))
    return StoreState(size, row[0] if row else None, writable)
