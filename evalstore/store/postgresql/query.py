"""Answers a statement of a person, which can only read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from evalstore.store.question import QueryError, QueryRows, refuse_writing, took_too_long


@contextmanager
def answer(connection: Any, statement: str, seconds: float) -> Iterator[QueryRows]:
    """Return the rows of a statement; raises `QueryError` as `Database.ask` does.

    The transaction of the connection must be one that only reads.
    """
    connection.execute(f"SET LOCAL statement_timeout TO {max(1, int(seconds * 1000))}")
    connection.execute("SET LOCAL enable_seqscan TO on")  # a query may read a whole table here
    try:
        with connection.raw.cursor("question", binary=True) as cursor:
            cursor.execute(statement.encode())
            yield QueryRows([str(column.name) for column in cursor.description or ()], iter(cursor))
    except psycopg.errors.QueryCanceled as error:
        raise took_too_long(seconds) from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        raise refuse_writing() from error
    except (psycopg.ProgrammingError, psycopg.NotSupportedError, psycopg.DataError) as error:
        raise QueryError(error.diag.message_primary or str(error)) from error
