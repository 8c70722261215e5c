"""Inspects a store without creating, migrating or writing anything."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from evalstore.store.location import DatabaseAddress
from evalstore.store.schema.migrations import HEAD, KNOWN
from evalstore.store.sqlite.connection import harden
from evalstore.store.sqlite.schema_check import SCHEMA, find_foreign


@dataclass(frozen=True, slots=True)
class StoreState:
    """The state of a store."""

    size: int | None
    """The size in bytes, including the log; None when there is no store."""
    version: str | None = None
    """The migration of the store; None when it cannot be read or is empty."""
    writable: bool = False
    damage: str | None = None
    """The reason why it cannot be read; None if it can."""
    others: Sequence[str] = ()
    """The schemas of the database that have a store, if the one named in the address has none."""
    hint: str | None = None
    """What lets a user write to a database where all transactions only read."""

    @property
    def is_newer(self) -> bool:
        """Return whether a newer version of evalstore has written it."""
        return self.version is not None and self.version not in KNOWN

    @property
    def is_older(self) -> bool:
        """Return whether the next command will migrate it."""
        return self.version in KNOWN and self.version != HEAD


def inspect_database(address: DatabaseAddress) -> StoreState:
    """Return the state of a store in a database; raises `StoreError` if it cannot be reached."""
    from evalstore.store.postgresql import creation
    from evalstore.store.postgresql.driver import PostgreSQLDriver

    driver = PostgreSQLDriver(address, patience=0.0)
    with closing(driver), driver.reading() as connection:
        version = creation.find_version(connection, address)
        size, may_write = creation.measure(connection, address, is_there=version is not None)
        others = creation.find_stores(connection, address) if version is None else []
        hint = None if may_write else creation.why_read_only(connection)
        return StoreState(size, version, may_write, others=others, hint=hint)


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
