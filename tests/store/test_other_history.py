"""A store that is replaced by an earlier copy while a program uses it gets no more rows."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.errors import StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.location import read_address
from evalstore.store.schema.table_definitions import TABLES
from tests.postgresql_server import PostgreSQLServer
from tests.store.sessions import a_test, fill

GONE = "has lost its newest rows: an earlier copy seems"


def _put(source: Path, target: Path) -> None:
    """Copy a store into the file of another one."""
    with closing(sqlite3.connect(source)) as read, closing(sqlite3.connect(target)) as written:
        read.backup(written)


def test_a_file_that_is_overwritten_with_an_earlier_copy_gets_no_more_rows(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with closing(Store.open(path, create=True)) as store:
        fill(store)
        _put(path, copy)
        store.ensure_versions(a_test("1"))
        _put(copy, path)
        with pytest.raises(StoreError, match=GONE):
            store.ensure_versions(a_test("2"))
        assert check_store(store)[1] == []
    with closing(Store.open(path)) as store:
        store.ensure_versions(a_test("2"))


def test_a_row_that_the_earlier_copy_has_is_not_the_one_that_must_stay(tmp_path: Path) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with closing(Store.open(path, create=True)) as store:
        fill(store)
        store.ensure_versions(a_test("1"))
        with store.snapshot() as connection:
            (known,) = connection.execute("SELECT * FROM tests ORDER BY rowid DESC LIMIT 1")
        _put(path, copy)
        store.ensure_versions(a_test("2"))
        with store.writing() as connection:
            assert connection.insert(TABLES["tests"], [known]) == 0
        _put(copy, path)
        with pytest.raises(StoreError, match=GONE):
            store.ensure_versions(a_test("3"))


def test_a_file_that_goes_back_before_the_first_write_gets_no_rows(
    tmp_path: Path,
) -> None:
    path, copy = tmp_path / "store.db", tmp_path / "copy.db"
    with closing(Store.open(copy, create=True)) as store:
        store.ensure_versions(a_test("1"))
    with closing(Store.open(path, create=True)) as store:
        fill(store)
    with closing(Store.open(path)) as store:
        _put(copy, path)
        with pytest.raises(StoreError, match=GONE):
            store.ensure_versions(a_test("2"))


@pytest.mark.parametrize("has_written", [True, False])
def test_a_database_that_lacks_what_was_stored_gets_no_more_rows(
    has_written: bool, postgresql_server: PostgreSQLServer
) -> None:
    """As after a failover to an earlier copy, the connections are lost and a row is gone."""
    url = postgresql_server.url()
    with closing(Store.open(read_address(url), create=True)) as store:
        fill(store)
    with closing(Store.open(read_address(url))) as store:
        if has_written:
            store.ensure_versions(a_test("1"))
        with closing(Store.open(read_address(url))) as other, other.writing() as connection:
            for table in ("sessions", "evaluations", "tests", "evaluation_versions", "prompts"):
                connection.execute(f"DELETE FROM {table}")
        with closing(Store.open(read_address(url))) as other, other.snapshot() as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity "
                "WHERE pid <> pg_backend_pid() AND datname = current_database()"
            )
        with pytest.raises(StoreError, match=GONE):
            store.ensure_versions(a_test("2"))
