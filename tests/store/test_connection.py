"""The pool: connections are used again, and none is left open or in a transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from evalstore.store import Store
from evalstore.store.sqlite.driver import SQLiteDriver
from tests.store.sessions import a_run, a_test, fill


@pytest.fixture
def pool(path: Path) -> Iterator[SQLiteDriver]:
    """Connections to a file with an empty table."""
    with closing(sqlite3.connect(path)) as raw:
        raw.execute("CREATE TABLE numbers (number)")
    with closing(SQLiteDriver(path, 1000)) as pool:
        yield pool


def is_open(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("SELECT 1")
    except sqlite3.ProgrammingError:
        return False
    return True


def test_a_connection_is_used_again_without_the_transaction_that_was_left_open(
    pool: SQLiteDriver,
) -> None:
    with pool.reading() as first:
        first.execute("BEGIN")
        first.execute("INSERT INTO numbers VALUES (1)")
    with pool.reading() as second:
        assert second is first
        assert not second.in_transaction
        assert second.execute("SELECT count(*) FROM numbers").fetchone() == (0,)


def test_no_more_connections_stay_open_than_a_few(pool: SQLiteDriver) -> None:
    with ExitStack() as stack:
        made = [stack.enter_context(pool.reading()) for _ in range(20)]
        assert len({id(connection) for connection in made}) == 20
    assert 0 < sum(map(is_open, made)) < 10


def test_all_connections_are_closed_those_in_use_when_they_are_given_back(
    pool: SQLiteDriver,
) -> None:
    with pool.reading() as idle:
        pass
    with pool.reading() as used, pool.reading() as other:
        assert used is idle
        pool.close()
        assert is_open(used)
    assert not is_open(used)
    assert not is_open(other)


def test_what_is_written_while_all_rows_are_read_is_not_among_them(path: Path) -> None:
    with (
        closing(Store.open(path, create=True)) as store,
        closing(Store.open(path)) as other,
    ):
        fill(store)
        count = sum(1 for _ in store.iterate())
        rows = store.iterate()
        next(rows)
        other.ensure_versions(a_test("another"))
        other.record_run(a_run(99))
        assert 1 + sum(1 for _ in rows) == count
        assert sum(1 for _ in store.iterate()) == count + 2


def test_texts_are_strict_again_after_all_rows_were_read_or_some(path: Path) -> None:
    with closing(Store.open(path, create=True)) as store:
        fill(store)
        for _ in store.iterate():
            break
        assert len(list(store.iterate())) > 10
        with store.writing() as connection, pytest.raises(sqlite3.OperationalError):
            connection.execute("SELECT CAST(x'80' AS TEXT)").fetchone()


def test_no_connection_keeps_many_pages_in_memory(pool: SQLiteDriver) -> None:
    with pool.reading() as first, pool.reading() as second, pool.reading() as third:
        sizes = [
            -each.execute("PRAGMA cache_size").fetchone()[0] // 1024
            for each in (first, second, third)
        ]
    assert sizes == [32, 32, 32]
