"""Makes stores faster in tests, by not waiting until the disk has written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from evalstore.store.sqlite.connection import Pool

_make = Pool._make


def _make_quick(pool: Pool) -> sqlite3.Connection:
    connection = _make(pool)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


@contextmanager
def quick_stores() -> Iterator[None]:
    """Write stores quickly in this process."""
    with mock.patch.object(Pool, "_make", _make_quick):
        yield
