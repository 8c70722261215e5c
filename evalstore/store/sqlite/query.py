"""Answers a statement of a person, which can only read."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from evalstore.store.question import QueryError, QueryRows, refuse_writing, took_too_long

_STEPS = 100_000
"""Steps of SQLite, some milliseconds, after which the time is looked at."""
_READING = (
    *(sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION),
    sqlite3.SQLITE_RECURSIVE,
)


@contextmanager
def answer(connection: Any, statement: str, seconds: float) -> Iterator[QueryRows]:
    """Return the rows of a statement; raises `QueryError` as `Database.ask` does."""
    ends = monotonic() + seconds
    # Our views use functions for JSON, and what a statement may do is decided here.
    connection.execute("PRAGMA trusted_schema = ON")
    connection.set_authorizer(_allow_reading)
    connection.set_progress_handler(lambda: monotonic() > ends, _STEPS)
    try:
        cursor = connection.execute(statement)
        if cursor.description is None:
            raise refuse_writing()
        yield QueryRows([str(column[0]) for column in cursor.description], cursor)
    except sqlite3.Error as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise took_too_long(seconds) from error
        if "not authorized" in str(error) or "prohibited" in str(error):
            raise refuse_writing() from error
        raise QueryError(str(error)) from error
    finally:
        connection.set_authorizer(None)
        connection.set_progress_handler(None, _STEPS)
        connection.execute("PRAGMA trusted_schema = OFF")


def _allow_reading(action: int, first: str | None, *_rest: object) -> int:
    """Allow what a query does; functions that load code are not allowed."""
    is_reading = action in _READING and first != "load_extension"
    return sqlite3.SQLITE_OK if is_reading else sqlite3.SQLITE_DENY
