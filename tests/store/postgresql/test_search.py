"""The search index of a store in PostgreSQL: no transaction is missed, whenever it ends."""

from __future__ import annotations

import random
from contextlib import ExitStack, closing, suppress
from itertools import count
from pathlib import Path

import pytest

from evalstore.core.values import Question, Reply, Session
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress
from evalstore.store.records import append
from evalstore.store.schema.table_definitions import SESSIONS
from evalstore.store.search import index as search_index
from evalstore.store.search.index import SearchIndex
from tests.store.sessions import session_row

_numbers = count()


class Writer:
    """A transaction of another program that stores answers of one word."""

    def __init__(self, store: Store) -> None:
        self._ended = ExitStack()
        self.connection = self._ended.enter_context(store.writing())
        self.connection.execute("SELECT pg_current_xact_id()::text")
        self.words: set[str] = set()

    def add(self) -> str:
        word = f"word{next(_numbers)}x"
        question = Question("a" * 32, None, "f" * 32, 0)
        id, _, content = session_row(Session(question, (Reply(word),), 1, nonce=word))
        row = {"id": id, "content": content, "question": "a" * 32, "started": 1}
        append(self.connection, SESSIONS, {id: {**row, "token_limit": None}})
        self.words.add(word)
        return word

    def commit(self) -> set[str]:
        self._ended.close()
        return self.words

    def roll_back(self) -> None:
        """End it as a program does that fails."""
        with suppress(ZeroDivisionError), self._ended:
            raise ZeroDivisionError


@pytest.mark.parametrize("seed", range(3))
def test_a_search_finds_all_that_can_be_seen(
    pg_store: Store, tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions and searches begin, write and end in any order; some updates are stopped."""
    monkeypatch.setattr(search_index, "_BATCH", 2)
    draw = random.Random(seed)
    writers: list[Writer] = []
    seen: set[str] = set()
    with closing(SearchIndex.open(tmp_path / "search.db")) as index:
        for _ in range(60):
            step = draw.choice(("begin", "add", "add", "commit", "roll back", "search", "stopped"))
            if step == "begin" and len(writers) < 4:
                writers.append(Writer(pg_store))
            elif step == "stopped":
                most = draw.randrange(4)
                index.update(pg_store, lambda done, _total, most=most: done < most)  # type: ignore[misc]
            elif step == "search":
                assert index.update(pg_store)
                found = index.find_sessions(["word"])
                assert found is not None
                assert len(found) == len(seen)
                assert all(index.find_sessions([word]) for word in seen)
            elif writers:
                writer = draw.choice(writers)
                if step == "add":
                    writer.add()
                    continue
                writers.remove(writer)
                if step == "commit":
                    seen |= writer.commit()
                else:
                    writer.roll_back()
        for writer in writers:
            writer.roll_back()


def test_what_is_read_again_is_what_was_stored_in_the_meantime(
    pg_store: Store, tmp_path: Path
) -> None:
    first, late = Writer(pg_store), Writer(pg_store)
    word = late.add()
    first.add()
    first.commit()
    totals: list[int] = []
    with closing(SearchIndex.open(tmp_path / "search.db")) as index:
        for end in (lambda: None, late.commit, lambda: None):
            end()
            totals.append(0)
            index.update(pg_store, lambda _done, total: not totals.__setitem__(-1, total))
        assert index.find_sessions([word])
    assert totals == [1, 1, 0]


def test_another_store_at_the_same_address_is_read_from_its_beginning(
    address: DatabaseAddress, tmp_path: Path
) -> None:
    with closing(SearchIndex.open(tmp_path / "search.db")) as index:
        words = []
        for _ in range(2):
            with closing(Store.open(address, create=True)) as store:
                writer = Writer(store)
                words.append(writer.add())
                writer.commit()
                assert index.update(store)
                with store.writing() as connection:
                    connection.execute(f'DROP SCHEMA "{address.schema}" CASCADE')
        assert all(index.find_sessions([word]) for word in words)
