"""What a thread reads ends when nobody is waiting for it, in both databases."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import monotonic

import pytest

from evalstore.store import Store
from evalstore.store.driver import UnwantedError, is_unwanted, may_end, while_wanted
from tests.store.sessions import a_run

ENDLESS = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT 1 - x FROM n) SELECT max(x) FROM n"
"""A query that never ends, in little memory."""
_SECONDS = 60.0


def until(holds: Callable[[], bool]) -> None:
    end = monotonic() + _SECONDS
    while not holds():
        assert monotonic() < end


def test_a_query_ends_in_the_database_when_nobody_waits_for_it(store: Store) -> None:
    asked, wanted = threading.Event(), threading.Event()
    wanted.set()
    ended: list[BaseException] = []

    def go_on() -> bool:
        asked.set()
        return wanted.is_set()

    def read() -> None:
        with while_wanted(go_on):
            try:
                with store._reading() as connection:
                    asked.clear()
                    connection.execute(ENDLESS).fetchall()
            except UnwantedError as error:
                ended.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    assert asked.wait(_SECONDS)
    wanted.clear()
    reader.join(_SECONDS)
    assert not reader.is_alive()
    assert len(ended) == 1
    assert store.find_runs() == []  # the connection is of use again


def test_nothing_is_asked_for_what_nobody_waits_for(store: Store) -> None:
    with while_wanted(lambda: False), pytest.raises(UnwantedError):
        store.find_runs()
    assert store.find_runs() == []


def test_what_is_written_is_written_to_its_end(store: Store) -> None:
    with while_wanted(lambda: False):
        store.record_run(a_run(1))
    assert [run.started for run in store.find_runs()] == [1]


def test_a_block_in_another_has_its_own_answer() -> None:
    assert not may_end()
    with while_wanted(lambda: False):
        with while_wanted(None):
            assert not may_end()
            assert not is_unwanted()
        assert may_end()
        assert is_unwanted()
    assert not may_end()


def test_other_threads_read_on() -> None:
    found = []
    with while_wanted(lambda: False):
        other = threading.Thread(target=lambda: found.append(is_unwanted()))
        other.start()
        other.join()
    assert found == [False]
