"""What a search takes in: all that is committed, in any order, and little more than is new."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from evalstore.core import batches
from evalstore.core.results import Session
from evalstore.core.values import Question, Reply
from evalstore.store import Store
from evalstore.store.database import append
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.postgresql.connection import connect
from evalstore.store.postgresql.schema import SEARCH_LOCK
from evalstore.store.schema import migrations
from evalstore.store.schema.table_definitions import EVALUATIONS, SESSIONS, VERSIONS
from evalstore.store.search.tables import IndexState, SearchTables, look
from evalstore.store.search.texts import KINDS
from tests.postgresql_server import PostgreSQLServer
from tests.store.postgresql.conftest import READS, USES, Admin, As
from tests.store.postgresql.test_growth import copied, dump, load
from tests.store.sessions import a_test, an_evaluation, session_row, versions

TABLES = ("tests", "evaluation_versions", "sessions", "evaluations")
STEPS = ("begin", "add", "commit", "roll back", "search", "two at once", "stopped")
MARK = "SELECT token::text, snapshot FROM {0}.search_marks"
WRITES = "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}"
_numbers = count()


def next_word() -> str:
    """A word that no other text has."""
    return f"word{next(_numbers)}x"


def an_answer(word: str) -> tuple[str, Session, str]:
    question = Question("a" * 32, None, "f" * 32, 0)
    return session_row(Session(question, (Reply(word),), 1, nonce=word))


def add(store: Store) -> str:
    """Store an answer of one word; returns the word."""
    word = next_word()
    id, _, content = an_answer(word)
    store.record({id: content})
    return word


def texts(store: Store) -> set[str]:
    """The ids of all texts that can be seen."""
    query = " UNION ALL ".join(f"SELECT id FROM {table}" for table in TABLES)
    with store.snapshot() as connection:
        return {id.hex() for (id,) in connection.execute(query)}


def indexed(store: Store) -> set[str]:
    with store.snapshot() as connection:
        rows = connection.execute("SELECT id FROM search_texts WHERE part = 0")
        return {id.hex() for (id,) in rows}


def state_of(store: Store) -> IndexState:
    with store.snapshot() as connection:
        return look(connection)


def found(store: Store, word: str) -> bool:
    return bool(SearchTables(store).find_sessions((word,)))


def search(store: Store) -> int:
    """Update the index as a search does; returns how many texts were missing."""
    totals = [0]
    assert SearchTables(store).update(store, lambda _done, total: not totals.append(total))  # type: ignore[func-returns-value]
    return max(totals)


class Writer:
    """A transaction of another program that stores texts of all kinds."""

    def __init__(self, store: Store) -> None:
        self._ended = ExitStack()
        self.connection = self._ended.enter_context(store.writing())
        self.connection.execute("SELECT pg_current_xact_id()::text")
        self.ids: set[str] = set()

    def add(self, table: str = "sessions") -> str:
        word = next_word()
        if table in ("tests", "evaluation_versions"):
            [(id, (_, content))] = (
                a_test(word) if table == "tests" else versions(("evaluation", _instructions(word)))
            ).items()
            kind = VERSIONS["test" if table == "tests" else "evaluation"]
            append(self.connection, kind, {id: {"id": id, "content": content}})
        elif table == "sessions":
            id, _, content = an_answer(word)
            row = {"id": id, "content": content, "question": "a" * 32, "started": 1}
            append(self.connection, SESSIONS, {id: {**row, "token_limit": None}})
        else:
            id, judged, content = an_evaluation("a" * 32, feedback=word)
            row = {"id": id, "content": content, "subject": "a" * 32, "started": 1}
            row |= {"evaluation": judged.evaluation, "evaluator": judged.evaluator}
            row |= {"verdict": "pass", "score": None}
            append(self.connection, EVALUATIONS, {id: row})
        self.ids.add(id)
        return word

    def commit(self) -> None:
        self._ended.close()

    def roll_back(self) -> None:
        """End it as a program does that fails."""
        with suppress(ZeroDivisionError), self._ended:
            raise ZeroDivisionError


def _instructions(word: str) -> dict[str, object]:
    from evalstore.core import hashing
    from evalstore.core.values import EvaluationVersion, Text

    return hashing.describe_evaluation(EvaluationVersion((Text(word),)))


# --- transactions


def test_what_was_written_while_a_search_updated_the_index_is_found_by_the_next_one(
    pg_store: Store,
) -> None:
    first = add(pg_store)
    late = Writer(pg_store)
    word = late.add()
    assert search(pg_store) == 1
    assert state_of(pg_store).mark is not None
    late.commit()
    assert search(pg_store) == 1
    assert found(pg_store, word)
    assert found(pg_store, first)


def test_what_is_committed_between_a_look_and_its_mark_is_found_by_the_next_search(
    pg_store: Store,
) -> None:
    add(pg_store)
    late = Writer(pg_store)
    word = late.add()

    def commit(done: int, total: int) -> bool:
        if done < total:
            late.commit()
        return True

    assert SearchTables(pg_store).update(pg_store, commit)
    assert not found(pg_store, word)
    assert search(pg_store) == 1
    assert found(pg_store, word)


@pytest.mark.parametrize("seed", range(6))
def test_a_search_takes_in_all_that_can_be_seen(
    pg_store: Store, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transactions and searches that begin, write and end in any order, also two at once."""
    monkeypatch.setattr(batches, "SIZE", 2)
    draw = random.Random(seed)
    writers: list[Writer] = []
    known = 0

    def end(writer: Writer) -> None:
        writers.remove(writer)
        writer.commit() if draw.random() < 0.7 else writer.roll_back()

    def disturb(done: int, total: int) -> bool:
        if writers and draw.random() < 0.5:
            end(draw.choice(writers))
        if done and draw.random() < 0.3:
            search(pg_store)
        return not (done and is_stopped)

    for _ in range(150):
        step = draw.choices(STEPS, weights=(5, 12, 3, 1, 3, 2, 1))[0]
        is_stopped = step == "stopped"
        if step == "begin" and len(writers) < 6:
            writers.append(Writer(pg_store))
        elif step == "add" and writers:
            draw.choice(writers).add(draw.choice(TABLES))
        elif step in ("commit", "roll back") and writers:
            writer = writers.pop(draw.randrange(len(writers)))
            writer.commit() if step == "commit" else writer.roll_back()
        elif step == "search":
            search(pg_store)
            known += state_of(pg_store).mark is not None
            assert indexed(pg_store) == texts(pg_store)
        elif step in ("two at once", "stopped"):
            SearchTables(pg_store).update(pg_store, disturb)
    for writer in writers:
        writer.roll_back()
    assert known > 3
    assert len(texts(pg_store)) > 5


def test_a_search_that_was_stopped_has_not_taken_in_the_rest(
    pg_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SIZE", 1)
    add(pg_store)
    search(pg_store)
    words = [add(pg_store) for _ in range(3)]
    assert not SearchTables(pg_store).update(pg_store, lambda done, _total: done < 1)
    assert search(pg_store) == 2
    assert all(found(pg_store, word) for word in words)


# --- what a search costs


def read(store: Store, admin: Admin, address: DatabaseAddress) -> int:
    """How many rows and entries of indexes all queries on large tables have read until now."""
    with store.snapshot() as connection:
        connection.execute("SELECT pg_stat_force_next_flush()")
    names = (*TABLES, "search_texts", "search_links")
    listed = ", ".join(f"'{name}'" for name in names)
    where = f"schemaname = '{address.schema}' AND relname IN ({listed})"
    (rows,) = admin(f"SELECT sum(seq_tup_read)::int FROM pg_stat_user_tables WHERE {where}")
    (entries,) = admin(f"SELECT sum(idx_tup_read)::int FROM pg_stat_user_indexes WHERE {where}")
    return int(rows[0]) + int(entries[0])


@pytest.mark.parametrize("analyzed", [False, True])
def test_a_further_search_reads_what_is_new_and_no_table(
    pg_store: Store, admin: Admin, address: DatabaseAddress, analyzed: bool
) -> None:
    writer = Writer(pg_store)
    for number in range(2_000):
        writer.add(TABLES[number % 4])
    writer.commit()
    if analyzed:
        for table in TABLES:
            admin(f"ANALYZE {address.schema}.{table}")
    with closing(Store.open(address)) as other:
        assert search(other) == 2_000
        if analyzed:
            admin(f"ANALYZE {address.schema}.search_texts")
        read(other, admin, address)
    for new in (0, 0, 3):
        words = [add(pg_store) for _ in range(new)]
        with closing(Store.open(address)) as other:
            before = read(other, admin, address)
            assert search(other) == new
            assert all(found(other, word) for word in words)
            assert read(other, admin, address) - before <= 20 * new + 1


def test_marks_are_not_written_while_nothing_is_new_and_do_not_pile_up(
    pg_store: Store, admin: Admin, address: DatabaseAddress
) -> None:
    assert search(pg_store) == 0
    assert admin(MARK.format(address.schema)) == []
    marks = []
    for _ in range(3):
        add(pg_store)
        for _ in range(2):
            search(pg_store)
            marks.append(admin(MARK.format(address.schema)))
    assert marks[0] == marks[1] != marks[2] == marks[3] != marks[4] == marks[5]
    assert admin(f"SELECT count(*) FROM {address.schema}.growth_marks") == [(1,)]
    assert len(marks[5]) == 1


def test_a_mark_of_long_transactions_is_renewed_once_they_have_ended(
    pg_store: Store, admin: Admin, address: DatabaseAddress
) -> None:
    long = Writer(pg_store)
    for _ in range(101):
        admin("SELECT pg_current_xact_id()::text")
    add(pg_store)
    search(pg_store)
    far = admin(MARK.format(address.schema))
    search(pg_store)
    assert admin(MARK.format(address.schema)) == far
    long.roll_back()
    search(pg_store)
    near = admin(MARK.format(address.schema))
    assert near != far
    search(pg_store)
    assert admin(MARK.format(address.schema)) == near


def test_without_a_mark_a_state_is_far_and_one_of_few_transactions_is_not() -> None:
    state = IndexState("500:500:", "1 2", True, None)
    assert state.is_far
    for mark, far in (("100:300:100", True), ("100:150:100", False), ("400:501:400", False)):
        assert replace(state, mark=("t", mark)).is_far is far


# --- databases that are restored, emptied or changed


def test_a_dump_that_is_restored_elsewhere_is_compared_with_its_index(
    pg_store: Store, address: DatabaseAddress, own_server: PostgreSQLServer, admin: Admin
) -> None:
    """There its transactions have smaller numbers, as if the mark could see them."""
    there = read_address(own_server.url(address.schema))
    for _ in range(60):
        admin("SELECT pg_current_xact_id()::text")
    add(pg_store)
    search(pg_store)
    word = add(pg_store)
    here = PostgreSQLServer(
        Path(str(address.options["host"])), own_server.programs, own_server.user
    )
    load(own_server, dump(here, f"--schema={address.schema}"))
    with closing(Store.open(there)) as store:
        assert state_of(store).mark is None
        assert search(store) == 1
        assert found(store, word)
        assert state_of(store).mark is not None
        assert search(store) == 0


def test_an_older_index_that_is_restored_is_compared_with_the_store(
    pg_store: Store, address: DatabaseAddress, postgresql_server: PostgreSQLServer, admin: Admin
) -> None:
    add(pg_store)
    search(pg_store)
    tables = ("search_texts", "search_links", "search_marks")
    older = dump(postgresql_server, *(f"--table={address.schema}.{name}" for name in tables))
    word = add(pg_store)
    search(pg_store)
    for name in tables:
        admin(f"DROP TABLE {address.schema}.{name}")
    load(postgresql_server, older)
    assert not found(pg_store, word)
    assert search(pg_store) == 1
    assert found(pg_store, word)


def test_rows_of_a_dump_that_is_loaded_are_taken_in(
    pg_store: Store, address: DatabaseAddress, postgresql_server: PostgreSQLServer, admin: Admin
) -> None:
    words = [add(pg_store) for _ in range(2)]
    rows = dump(postgresql_server, "--data-only", f"--table={address.schema}.sessions")
    admin(f"DELETE FROM {address.schema}.sessions")
    with closing(Store.open(address)) as store:  # which has stored none of what is gone
        kept = add(store)
        search(store)
        load(postgresql_server, rows)
        assert search(store) == 2
        assert all(found(store, word) for word in (*words, kept))


def test_rows_that_are_deleted_and_stored_again_are_in_the_index_once(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    word = next_word()
    id, _, content = an_answer(word)
    for _ in range(2):
        with closing(Store.open(address)) as store:
            store.record({id: content})
            search(store)
        admin(f"DELETE FROM {address.schema}.sessions")
    pg_store.record({id: content})
    assert search(pg_store) == 0
    assert [*SearchTables(pg_store).find_documents((word,), ("answers",))] == [("answers", id)]


@pytest.mark.parametrize(
    "change",
    [
        "TRUNCATE {0}.search_texts",
        "TRUNCATE {0}.search_texts, {0}.search_links",
        "DELETE FROM {0}.search_texts",
        "DROP TABLE {0}.search_links",
        "DROP TABLE {0}.search_marks",
        "DELETE FROM {0}.growth_marks",
        "UPDATE {0}.search_marks SET snapshot = 'x'",
        "UPDATE {0}.search_marks SET token = gen_random_uuid()",
    ],
)
def test_an_index_that_was_emptied_or_whose_mark_is_gone_is_complete_again(
    pg_store: Store, address: DatabaseAddress, admin: Admin, change: str
) -> None:
    words = [add(pg_store) for _ in range(3)]
    search(pg_store)
    admin(change.format(address.schema))
    search(pg_store)
    assert all(found(pg_store, word) for word in words)
    assert indexed(pg_store) == texts(pg_store)
    assert state_of(pg_store).mark is not None


def test_an_index_from_before_the_migration_is_kept(
    postgresql_server: PostgreSQLServer, admin: Admin
) -> None:
    address = read_address(postgresql_server.url())
    admin(f"CREATE SCHEMA {address.schema}")
    with closing(connect(address)) as raw:
        raw.autocommit = False
        with migrations.joined("postgresql+psycopg://", raw, Exception) as writing:
            migrations.upgrade(writing, head="0005")
    word = next_word()
    id, _, content = an_answer(word)
    stored = bytes.fromhex(id)
    for table, columns, values in (
        ("sessions", "id, content, question, started", (stored, content, stored, 1)),
        ("search_texts", "id, part, kind, words", (stored, 0, KINDS.index("answers"), word)),
        ("search_links", "text, session", (stored, stored)),
    ):
        places = ", ".join(["%s"] * len(values))
        admin(f"INSERT INTO {address.schema}.{table} ({columns}) VALUES ({places})", *values)
    with closing(Store.open(address)) as store:
        assert store.foreign == []
        assert search(store) == 0
        assert found(store, word)
        assert state_of(store).mark is not None


@pytest.mark.extended
def test_a_server_that_went_back_in_time_has_the_index_of_then(
    own_server: PostgreSQLServer,
) -> None:
    address = read_address(own_server.url())
    with closing(Store.open(address, create=True)) as store:
        add(store)
        search(store)
    with copied(own_server) as go_back:
        with closing(Store.open(address)) as store:
            lost = add(store)
            search(store)
        go_back()
    with closing(Store.open(address)) as store:
        words = [add(store) for _ in range(5)]
        assert search(store) == 5
        assert not found(store, lost)
        assert all(found(store, word) for word in words)


@pytest.mark.extended
def test_a_standby_searches_with_the_mark_of_its_server(own_server: PostgreSQLServer) -> None:
    address = read_address(own_server.url())
    with closing(Store.open(address, create=True)) as store:
        word = add(store)
        search(store)
        add(store)
        with own_server.standby() as standby:
            there = read_address(standby.url(address.schema))
            with closing(Store.open(there)) as copy:
                assert state_of(copy).mark is not None
                index = SearchTables(copy)
                assert index.update(copy)
                assert index.missing == 1
                assert found(copy, word)


# --- rights, and others


def test_who_may_only_read_uses_the_mark_and_leaves_it(
    pg_store: Store, as_role: As, admin: Admin, address: DatabaseAddress
) -> None:
    add(pg_store)
    search(pg_store)
    mark = admin(MARK.format(address.schema))
    add(pg_store)
    with closing(Store.open(as_role(USES, READS))) as store:
        assert state_of(store).mark is not None
        index = SearchTables(store)
        for _ in range(2):
            assert index.update(store)
            assert index.missing == 1
    assert admin(MARK.format(address.schema)) == mark


@pytest.mark.parametrize("table", ["search_marks", "growth_marks"])
def test_without_rights_to_marks_all_texts_are_compared(
    pg_store: Store, as_role: As, address: DatabaseAddress, table: str
) -> None:
    add(pg_store)
    search(pg_store)
    revoke = f"REVOKE ALL ON {address.schema}.{table} FROM {{role}}"
    with closing(Store.open(as_role(USES, WRITES, revoke))) as store:
        assert state_of(store).mark is None
        word = add(store)
        assert [search(store), search(store)] == [1, 0]
        assert found(store, word)
    assert search(pg_store) == 0


def test_who_may_not_write_a_mark_still_adds_texts(
    pg_store: Store, as_role: As, address: DatabaseAddress
) -> None:
    add(pg_store)
    search(pg_store)
    revoke = f"REVOKE DELETE ON {address.schema}.search_marks FROM {{role}}"
    with closing(Store.open(as_role(USES, WRITES, revoke))) as store:
        before = state_of(store).mark
        word = add(store)
        assert [search(store), search(store)] == [1, 0]
        assert found(store, word)
        assert state_of(store).mark == before


@pytest.fixture
def locked(pg_store: Store, address: DatabaseAddress) -> Iterator[None]:
    """Let another program add texts to the index meanwhile."""
    with closing(connect(address)) as raw:
        raw.execute("BEGIN")
        raw.execute(SEARCH_LOCK.encode())
        yield


def test_a_search_with_nothing_to_add_does_not_wait_for_one_that_adds(
    pg_store: Store, admin: Admin, address: DatabaseAddress, request: pytest.FixtureRequest
) -> None:
    word = add(pg_store)
    search(pg_store)
    admin(f"DELETE FROM {address.schema}.search_marks")
    request.getfixturevalue("locked")
    assert search(pg_store) == 0
    assert found(pg_store, word)
    assert state_of(pg_store).mark is None


def test_a_search_with_nothing_to_add_works_where_nothing_may_be_written(
    pg_store: Store, admin: Admin, address: DatabaseAddress
) -> None:
    word = add(pg_store)
    search(pg_store)
    admin(f"DELETE FROM {address.schema}.search_marks")
    admin(
        f"CREATE TRIGGER t AFTER INSERT ON {address.schema}.sessions "
        "EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    )
    with closing(Store.open(address)) as store:
        assert search(store) == 0
        assert found(store, word)
