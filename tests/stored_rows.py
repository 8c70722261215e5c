"""Reads and changes the rows of a store in either database, for tests."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from evalstore.store import Store
from evalstore.store.location import StoreLocation, read_location

Rows = dict[tuple[str, bytes], tuple[Any, ...]]
_TIMES = {"failures": "at", "sessions": "started", "evaluations": "started", "runs": "started"}


def locate(root: Path, url: str | None) -> StoreLocation:
    """Return where the store of a workspace is: its own file, unless a URL is given."""
    return read_location(url) if url else root / ".evalstore/store.db"


def is_there(location: StoreLocation) -> bool:
    """Return whether a store has been made."""
    if isinstance(location, Path):
        return location.exists()
    import psycopg

    with psycopg.connect("", **location.options) as raw:  # type: ignore[arg-type]
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = %s AND tablename = 'runs'"
        return raw.execute(query, (location.schema,)).fetchone() == (1,)


def read_rows(location: StoreLocation) -> Rows:
    """Return every row of the tables with permanent contents, by table and id."""
    with closing(Store.open(location)) as store:
        return {
            (table, bytes(row["id"])): tuple(row[name] for name in sorted(row))
            for table, row in store.iterate()
        }


def read_contents(store: Store, table: str) -> list[Any]:
    """Return the contents of a table, in the order in which they were stored.

    PostgreSQL knows no such order; there it is that of their times.
    """
    order = _TIMES[table] if store.is_remote else "rowid"
    with store.snapshot() as connection:
        rows = connection.execute(f"SELECT content FROM {table} ORDER BY {order}").fetchall()
    return [json.loads(content) for (content,) in rows]


def count_rows(store: Store, table: str) -> int:
    """Return how many rows a table has, also one without permanent contents."""
    with store.snapshot() as connection:
        (number,) = connection.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(number)


def execute(location: StoreLocation, *statements: str) -> None:
    """Execute statements on a database, without this program, in one transaction."""
    with _raw(location) as raw:
        for statement in statements:
            raw.execute(statement)
        raw.commit()


@contextmanager
def _raw(location: StoreLocation) -> Iterator[Any]:
    if isinstance(location, Path):
        with closing(sqlite3.connect(location)) as raw:
            yield raw
        return
    import psycopg

    options = {**location.options, "options": f"-c search_path={location.schema}"}
    with closing(psycopg.connect("", **options)) as connection:  # type: ignore[arg-type]
        yield connection
