"""A connection whose statement nobody waits for any more is closed."""

from __future__ import annotations

import threading
from time import monotonic

import pytest

from evalstore.store import Store
from evalstore.store.driver import UnwantedError, while_wanted
from evalstore.store.search.index import SearchIndex
from tests.store.postgresql.conftest import Admin

_SECONDS = 60.0
_ACTIVE = "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND query LIKE %s"


def test_a_query_that_is_not_wanted_is_not_waited_for(pg_store: Store, admin: Admin) -> None:
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
    while not (running := admin(_ACTIVE, "SELECT pg_sleep(600) AS nap%")):
        assert monotonic() < end
    wanted.clear()
    reader.join(_SECONDS)
    assert not reader.is_alive()
    assert len(raised) == 1
    assert pg_store.find_runs() == []
    for (pid,) in running:
        admin("SELECT pg_terminate_backend(%s, 10000)", pid)


def test_a_search_in_a_reading_that_is_not_wanted_says_so(pg_store: Store) -> None:
    index = SearchIndex.open(None)
    with while_wanted(lambda: False), pytest.raises(UnwantedError):
        index.update(pg_store)
