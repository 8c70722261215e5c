"""Several processes and one store."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.errors import STORE_UNUSABLE, StoreError
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.driver import UnexpectedObject
from evalstore.store.schema import table_definitions
from evalstore.store.sqlite import driver as drivers
from evalstore.store.sqlite.connection import find_foreign
from evalstore.store.sqlite.driver import SQLiteDriver
from tests.store.sessions import a_run, a_test, fill

ROOT = Path(__file__).parent.parent.parent

FILL = """
import pathlib, sys
from evalstore.store import Store
from tests.store.sessions import fill
from tests.store.sessions import a_test

sys.stdin.readline()
store = Store.open(pathlib.Path(sys.argv[1]), create=True)
for number in range(40):
    store.ensure_versions(a_test(str(number)))
    fill(store)
store.close()
"""


def test_processes_that_store_the_same_store_it_once(path: Path) -> None:
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", FILL, str(path)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    for worker in workers:
        assert worker.stdin
        worker.stdin.write("\n")
        worker.stdin.flush()
    errors = [worker.communicate()[1] for worker in workers]
    assert errors == ["", "", ""]
    with closing(Store.open(path)) as store:
        before, damages = check_store(store)
        assert damages == []
        for number in range(40):
            store.ensure_versions(a_test(str(number)))
        fill(store)
        assert check_store(store) == (before, [])


def test_a_locked_store_is_a_clear_error(path: Path) -> None:
    Store.open(path, create=True).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(Store.open(path, busy=0.01)) as store:
            with pytest.raises(StoreError, match="is locked by another program") as caught:
                store.ensure_versions(a_test())
            assert caught.value.exit_code == STORE_UNUSABLE
            other.execute("ROLLBACK")
            store.ensure_versions(a_test())


def test_a_writer_never_keeps_others_from_reading(path: Path) -> None:
    with closing(Store.open(path, create=True)) as store:
        fill(store)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(Store.open(path, busy=0.01)) as store:
            assert store.count_runs() == 1


def test_a_store_that_is_replaced_while_it_is_open_takes_nothing_more(path: Path) -> None:
    with closing(Store.open(path, create=True)) as store:
        store.ensure_versions({})
        path.rename(path.with_suffix(".old"))
        with pytest.raises(StoreError, match="was removed or replaced while it was open"):
            store.record_run(a_run(1))
        Store.open(path, create=True).close()
        with pytest.raises(StoreError, match="was removed or replaced"):
            store.record_run(a_run(1))


def test_a_store_that_another_process_is_about_to_make_is_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")  # SQLite does not wait for it when it begins a log
        connect = SQLiteDriver._connect

        def watched(driver: SQLiteDriver) -> sqlite3.Connection:
            connection = connect(driver)
            connection.set_trace_callback(
                lambda statement: other.rollback() if statement == "BEGIN IMMEDIATE" else None
            )
            return connection

        monkeypatch.setattr(SQLiteDriver, "_connect", watched)
        Store.open(path, create=True).close()
        assert other.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    with closing(Store.open(path)) as store:
        assert check_store(store) == (0, [])


def test_a_store_that_nobody_gives_back_is_a_clear_error_when_it_is_made(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="is locked by another program"):
            Store.open(path, create=True, busy=0.01)


def test_a_store_that_another_process_makes_while_it_is_opened_is_a_store(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version_of, versions = drivers.version_of, []
    path.touch()

    def find(connection: sqlite3.Connection) -> str | None:
        versions.append(version_of(connection))
        if len(versions) == 1:
            with closing(sqlite3.connect(path)) as other, other:
                drivers.make_tables(other)
        return versions[-1]

    monkeypatch.setattr(drivers, "version_of", find)
    Store.open(path, create=True).close()
    assert versions[:2] == [None, table_definitions.HEAD]


def test_a_store_that_another_process_makes_while_it_is_opened_has_all_tables(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.touch()
    found: list[int] = []

    def find_first(connection: sqlite3.Connection) -> list[UnexpectedObject]:
        """Find what is missing, and make the store as another process does."""
        monkeypatch.setattr(drivers, "find_foreign", find_foreign)
        missing = find_foreign(connection)
        found.append(len(missing))
        SQLiteDriver.open(path, create=True, busy=1).close()
        return missing

    monkeypatch.setattr(drivers, "find_foreign", find_first)
    with closing(SQLiteDriver.open(path, create=True, busy=1)) as driver:
        assert found[0] > 0
        assert driver.foreign == []
