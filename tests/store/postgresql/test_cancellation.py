"""A reading in PostgreSQL that nobody waits for ends before its next statement."""

from __future__ import annotations

import pytest

from evalstore.store import Store
from evalstore.store.driver import UnwantedError, while_wanted
from evalstore.store.search.index import SearchIndex


def test_no_further_statement_is_executed(pg_store: Store) -> None:
    answers = iter([True] * 3)
    with while_wanted(lambda: next(answers, False)), pg_store.snapshot() as connection:
        assert connection.execute("SELECT 1").fetchall() == [(1,)]
        with pytest.raises(UnwantedError):
            connection.execute("SELECT 1")
    assert pg_store.find_runs() == []


def test_a_search_in_a_reading_that_is_not_wanted_says_so(pg_store: Store) -> None:
    index = SearchIndex.open(None)
    with while_wanted(lambda: False), pytest.raises(UnwantedError):
        index.update(pg_store)
