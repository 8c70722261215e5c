"""The server ends a statement that nobody waits for, whatever it waits for itself."""

from __future__ import annotations

import threading
from time import monotonic

import psycopg
import pytest

from evalstore.store import Store
from evalstore.store.driver import UnwantedError, while_wanted
from evalstore.store.postgresql.connection import CancellingConnection
from evalstore.store.search.index import SearchIndex
from tests.store.postgresql.conftest import Admin

_SECONDS = 60.0
_ACTIVE = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s"


def is_running(admin: Admin, words: str) -> bool:
    """Return whether the server carries out a statement of the program with these words."""
    end = f"{words}%"
    return bool(admin(f"{_ACTIVE} AND application_name = 'evalstore'", f"%{end}")[0][0])


def test_the_server_does_not_go_on_with_a_query(pg_store: Store, admin: Admin) -> None:
    wanted = threading.Event()
    wanted.set()
    raised: list[BaseException] = []

    def read() -> None:
        try:
            with while_wanted(wanted.is_set), pg_store.snapshot() as connection:
                connection.execute("SELECT pg_sleep(600) AS nap").fetchall()
        except UnwantedError as error:
            raised.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    end = monotonic() + _SECONDS
    while not is_running(admin, "AS nap"):
        assert monotonic() < end
    wanted.clear()
    reader.join(_SECONDS)
    assert not reader.is_alive()
    assert len(raised) == 1
    assert not is_running(admin, "AS nap")
    assert pg_store.find_runs() == []


def test_a_request_that_comes_late_ends_no_other_statement(
    pg_store: Store, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server has not answered the request in time, and carries it out later."""
    told: list[int] = []

    def tell_late(raw: CancellingConnection, *, timeout: float) -> None:
        told.append(raw.info.backend_pid)
        admin("SELECT pg_advisory_unlock(7)")  # and the statement ends by itself
        raise psycopg.errors.CancellationTimeout(f"no answer in {timeout} seconds")

    monkeypatch.setattr(CancellingConnection, "cancel_safe", tell_late)
    admin("SELECT pg_advisory_lock(7)")
    wanted = iter([True] * 3)
    with while_wanted(lambda: next(wanted, False)), pg_store._reading() as connection:
        connection.execute("SELECT pg_advisory_lock(7)")
    assert len(told) == 1
    with pg_store._reading() as connection:
        assert connection.execute("SELECT pg_backend_pid()").fetchall() != [(told[0],)]


def test_a_search_in_a_reading_that_is_not_wanted_says_so(pg_store: Store) -> None:
    index = SearchIndex.open(None)
    with while_wanted(lambda: False), pytest.raises(UnwantedError):
        index.update(pg_store)
