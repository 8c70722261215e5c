"""Tables in a temporary SQLite file, for what may be too much for memory."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager


@contextmanager
def open_tables(schema: str) -> Iterator[sqlite3.Connection]:
    """Open new tables, which are removed at the end of the block."""
    with closing(sqlite3.connect("", isolation_level=None)) as connection:
        connection.executescript(schema)
        connection.execute("BEGIN")  # one transaction, which is never committed
        yield connection
