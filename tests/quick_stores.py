"""Stores that are made quickly and written without waiting for the disk.

Migrating from nothing takes ten times as long as making what comes of it. And no test switches
the machine off, which is all that waiting for the disk guards against.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import Pool, StaticPool

from evalstore.store import migrate

migrated = migrate.upgrade
"""What the program itself does."""


@cache
def _statements() -> tuple[str, ...]:
    """The statements that make what all migrations together make."""
    engine = create_engine("sqlite://", poolclass=StaticPool)
    with engine.begin() as connection:
        migrated(connection)
        rows = connection.exec_driver_sql(
            "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
        ).all()
    engine.dispose()
    return tuple(sql for (sql,) in rows)


def upgrade(connection: Connection, folder: Path | None = None, head: str | None = None) -> None:
    """Bring a store up to date: a new one at once, any other by its migrations."""
    if folder or head or migrate.version_of(connection) is not None:
        migrated(connection, folder, head)
        return
    for statement in _statements():
        connection.exec_driver_sql(statement)
    connection.exec_driver_sql("INSERT INTO alembic_version VALUES (?)", (migrate.HEAD,))


def _do_not_wait(connection: sqlite3.Connection, _record: Any, _proxy: Any) -> None:
    with suppress(sqlite3.Error):  # a damaged file is told of by whoever reads it
        connection.execute("PRAGMA synchronous = OFF")


@contextmanager
def quick_stores() -> Iterator[None]:
    """Make and write stores quickly in this process."""
    event.listen(Pool, "checkout", _do_not_wait)
    with mock.patch.object(migrate, "upgrade", upgrade):
        yield
    event.remove(Pool, "checkout", _do_not_wait)
