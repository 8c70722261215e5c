"""What is new in a database, whatever the order of its commits, and whatever becomes of it."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg
import pytest

from evalstore.core import hashing
from evalstore.core.values import Question, Session
from evalstore.exchange.sync.fsck import check_store
from evalstore.exchange.sync.pull import pull
from evalstore.planning.options import Location
from evalstore.store import Store
from evalstore.store.driver import Extent
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.postgresql.connection import connect
from evalstore.store.records import append
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import SESSIONS
from tests.postgresql_server import PostgreSQLServer
from tests.store.postgresql.conftest import Admin
from tests.store.sessions import a_session, fill

MANY = 1_000_000
STEPS = ("begin", "add", "commit", "roll back", "measure")
_numbers = count()


def next_session() -> tuple[str, Session, str]:
    """A session with a question of its own."""
    return a_session(Question(f"{next(_numbers):032x}", None, "b" * 32, 0))


def add(store: Store) -> str:
    """Store a session; returns its question."""
    id, session, content = next_session()
    store.record({id: content})
    return hashing.question_id(session.question)


def extent_of(store: Store) -> Extent:
    extent = store.measure_extent()
    assert extent is not None
    return extent


class Writer:
    """A transaction of another program."""

    def __init__(self, store: Store, *, savepoint: bool = False) -> None:
        self._ended = ExitStack()
        self.connection = self._ended.enter_context(store.writing())
        self.questions: set[str] = set()
        if savepoint:
            self.connection.execute("SAVEPOINT one")

    def add(self) -> None:
        id, session, content = next_session()
        question = hashing.question_id(session.question)
        row = {"id": id, "content": content, "question": question, "started": 1}
        append(self.connection, SESSIONS, {id: {**row, "token_limit": None}})
        self.questions.add(question)

    def commit(self) -> None:
        self._ended.close()

    def roll_back(self) -> None:
        """End it as a program does that fails."""
        with suppress(ZeroDivisionError), self._ended:
            raise ZeroDivisionError


def test_a_row_that_is_committed_late_is_new(pg_store: Store) -> None:
    late, early = Writer(pg_store), Writer(pg_store)
    late.add()
    early.add()
    early.commit()
    extent = extent_of(pg_store)
    assert pg_store.find_new_questions(extent, MANY) == set()
    late.commit()
    assert pg_store.find_new_questions(extent, MANY) == late.questions
    assert pg_store.count_added(extent, extent_of(pg_store)) == (1, 0)


def test_a_row_that_is_written_after_a_mark_of_a_transaction_before_it_is_new(
    pg_store: Store,
) -> None:
    writer = Writer(pg_store)
    writer.connection.execute("SELECT pg_current_xact_id()::text")
    extent = extent_of(pg_store)
    writer.add()
    writer.commit()
    assert pg_store.find_new_questions(extent, MANY) == writer.questions


def test_what_is_rolled_back_is_not_new(pg_store: Store) -> None:
    failing = Writer(pg_store)
    failing.add()
    extent = extent_of(pg_store)
    failing.roll_back()
    assert pg_store.find_new_questions(extent, MANY) == set()


def test_rows_of_a_savepoint_are_those_of_its_transaction(pg_store: Store) -> None:
    writer = Writer(pg_store, savepoint=True)
    writer.add()
    extent = extent_of(pg_store)
    writer.add()
    writer.connection.execute("RELEASE one")
    writer.commit()
    assert pg_store.find_new_questions(extent, MANY) == writer.questions
    assert pg_store.find_new_questions(extent_of(pg_store), MANY) == set()


def test_the_newest_differs_when_a_row_is_committed_late_and_not_when_it_is_written(
    pg_store: Store,
) -> None:
    late, early, failing = Writer(pg_store), Writer(pg_store), Writer(pg_store)
    empty = pg_store.find_newest()
    late.add()
    failing.add()
    early.add()
    assert pg_store.find_newest(empty) == empty
    early.commit()
    one = pg_store.find_newest(empty)
    failing.roll_back()
    assert pg_store.find_newest(one) == one != empty
    late.commit()
    both = pg_store.find_newest(one)
    assert pg_store.find_newest(both) == both != one


def test_the_newest_of_a_server_that_was_started_again_is_another_one(
    own_server: PostgreSQLServer,
) -> None:
    with closing(Store.open(read_address(own_server.url()), create=True)) as store:
        newest = store.find_newest()
        assert store.find_newest(newest) == newest
        own_server.stop()
        own_server.start()
        assert store.find_newest(newest) != newest


@pytest.mark.parametrize("seed", range(3))
def test_what_is_new_is_what_can_be_seen_and_could_not(pg_store: Store, seed: int) -> None:
    """Transactions that begin, write and end in any order; all extents are compared each time."""
    draw = random.Random(seed)
    open_writers: list[Writer] = []
    seen: set[str] = set()
    known: list[tuple[Extent, set[str]]] = []
    for _ in range(120):
        step = draw.choices(STEPS, weights=(4, 9, 3, 1, 2))[0]
        if step == "begin":
            if len(open_writers) < 8:
                open_writers.append(Writer(pg_store, savepoint=draw.random() < 0.3))
        elif step == "measure":
            known.append((extent_of(pg_store), set(seen)))
        elif open_writers:
            writer = draw.choice(open_writers)
            if step == "add":
                writer.add()
                continue
            open_writers.remove(writer)
            if step == "commit":
                writer.commit()
                seen |= writer.questions
            else:
                writer.roll_back()
        for extent, then in known:
            assert pg_store.find_new_questions(extent, MANY) == seen - then
    for writer in open_writers:
        writer.roll_back()
    assert len(known) > 3
    assert len(seen) > 3


def test_what_is_merged_is_new(
    pg_store: Store, address: DatabaseAddress, tmp_path: Path, postgresql_server: PostgreSQLServer
) -> None:
    other = read_address(postgresql_server.url())
    with closing(Store.open(other, create=True)) as store:
        fill(store)  # with all that answers refer to, without which none is merged
    extent = extent_of(pg_store)
    (tmp_path / "evalstore.yaml").write_text(f"store: {str(address)!r}\n", encoding="utf-8")
    location = Location(tmp_path, store=str(address), allow_outside=True)
    pull(location, str(str(other)))
    assert len(pg_store.find_new_questions(extent, MANY) or ()) == 2


def test_nobody_but_the_server_says_who_inserted_a_row(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    add(pg_store)
    for statement in (
        "INSERT INTO {0}.sessions (id, content, question, started, inserted_by) "
        "VALUES ('', '{{}}', '', 1, '3')",
        "UPDATE {0}.sessions SET inserted_by = '3'",
        "INSERT INTO {0}.growth_marks VALUES (1, gen_random_uuid())",
    ):
        with pytest.raises(psycopg.Error, match=r"inserted_by|token"):
            admin(statement.format(address.schema))


def test_rows_of_a_dump_that_is_loaded_are_new(
    pg_store: Store, address: DatabaseAddress, postgresql_server: PostgreSQLServer, admin: Admin
) -> None:
    question = add(pg_store)
    rows = dump(postgresql_server, "--data-only", f"--table={address.schema}.sessions")
    admin(f"DELETE FROM {address.schema}.sessions")
    with closing(Store.open(address)) as store:
        extent = extent_of(store)
        load(postgresql_server, rows)
        assert store.find_new_questions(extent, MANY) == {question}


def test_a_restored_dump_has_no_extents_of_the_database_it_is_of(
    address: DatabaseAddress, postgresql_server: PostgreSQLServer, admin: Admin
) -> None:
    with closing(Store.open(address, create=True)) as store:
        fill(store)
        extent = extent_of(store)
        assert store.find_new_questions(extent, MANY) == set()
    whole = dump(postgresql_server, f"--schema={address.schema}")
    admin(f"DROP SCHEMA {address.schema} CASCADE")
    load(postgresql_server, whole)
    with closing(Store.open(address)) as store:
        assert store.foreign == []
        assert check_store(store)[1] == []
        assert store.find_new_questions(extent, MANY) is None
        extent = extent_of(store)
        assert store.find_new_questions(extent, 0) == set()
        question = add(store)
        assert store.find_new_questions(extent, MANY) == {question}


@pytest.mark.extended
def test_a_dump_of_another_server_has_none_of_its_extents(
    pg_store: Store, address: DatabaseAddress, own_server: PostgreSQLServer, admin: Admin
) -> None:
    """Its transactions have other numbers: here smaller ones, there larger ones."""
    there = read_address(own_server.url(address.schema))
    for _ in range(30):
        admin("SELECT pg_current_xact_id()::text")
    add(pg_store)
    extent = extent_of(pg_store)
    question = add(pg_store)
    assert pg_store.find_new_questions(extent, MANY) == {question}
    server = PostgreSQLServer(
        Path(str(address.options["host"])), own_server.programs, own_server.user
    )
    load(own_server, dump(server, f"--schema={address.schema}"))
    with closing(Store.open(there)) as store:
        assert store.find_new_questions(extent, MANY) is None
        extent = extent_of(store)
        assert store.find_new_questions(extent, 0) == set()
    assert pg_store.find_new_questions(extent, MANY) is None


@contextmanager
def copied(server: PostgreSQLServer) -> Iterator[Callable[[], None]]:
    """Copy the folder of a server, which is stopped for it; returns what puts the copy back."""
    folder, copy = server.folder / "data", server.folder / "copy"

    def clone(source: Path, target: Path) -> None:
        server.stop("fast")
        shutil.rmtree(target, ignore_errors=True)
        subprocess.run(["cp", "-a", source, target], check=True)
        server.start()

    clone(folder, copy)
    yield lambda: clone(copy, folder)


@pytest.mark.extended
def test_a_server_that_went_back_in_time_has_no_later_extents(
    own_server: PostgreSQLServer,
) -> None:
    address = read_address(own_server.url())
    with closing(Store.open(address, create=True)) as store:
        add(store)
        earlier = extent_of(store)
    with copied(own_server) as go_back:
        with closing(Store.open(address)) as store:
            lost = add(store)
            later = extent_of(store)
            assert store.find_new_questions(later, MANY) == set()
            assert store.find_new_questions(earlier, MANY) == {lost}
        go_back()
    with closing(Store.open(address)) as store:
        # What was lost never was: transactions with the same numbers add other rows.
        questions = {add(store) for _ in range(40)}
        assert store.find_new_questions(later, MANY) is None
        assert store.find_new_questions(earlier, MANY) == questions


@pytest.mark.extended
def test_a_server_that_crashed_keeps_its_extents(own_server: PostgreSQLServer) -> None:
    address = read_address(own_server.url())
    with closing(Store.open(address, create=True)) as store:
        late = Writer(store)
        late.add()
        extent = extent_of(store)
        own_server.stop("immediate")
        own_server.start()
        question = add(store)
        assert store.find_new_questions(extent, MANY) == {question}


@pytest.mark.extended
def test_a_standby_tells_what_is_new(own_server: PostgreSQLServer) -> None:
    address = read_address(own_server.url())
    with closing(Store.open(address, create=True)) as store:
        add(store)
        extent = extent_of(store)
        question = add(store)
        with own_server.standby() as standby:
            there = read_address(standby.url(address.schema))
            with closing(Store.open(there)) as copy:
                assert copy.find_new_questions(extent, MANY) == {question}


def test_without_rights_to_marks_nothing_is_told(
    pg_store: Store, address: DatabaseAddress, admin: Admin
) -> None:
    extent = extent_of(pg_store)
    admin("CREATE ROLE unmarked LOGIN")
    admin(f"GRANT USAGE ON SCHEMA {address.schema} TO unmarked")
    rights = "GRANT SELECT, INSERT, UPDATE, DELETE"
    admin(f"{rights} ON ALL TABLES IN SCHEMA {address.schema} TO unmarked")
    admin(f"REVOKE ALL ON {address.schema}.growth_marks FROM unmarked")
    url = f"postgresql://unmarked@/postgres?host={address.options['host']}&schema={address.schema}"
    with closing(Store.open(read_address(url))) as store:
        add(store)
        assert store.measure_extent() is None
        assert store.find_new_questions(extent, MANY) is None
    admin("DROP OWNED BY unmarked CASCADE")
    admin("DROP ROLE unmarked")


def test_rows_from_before_the_migration_are_seen(
    postgresql_server: PostgreSQLServer, admin: Admin
) -> None:
    address = read_address(postgresql_server.url())
    admin(f"CREATE SCHEMA {address.schema}")
    with closing(connect(address)) as raw:
        raw.autocommit = False
        with table_definitions.joined(
            "postgresql+psycopg://", raw, psycopg.DatabaseError
        ) as writing:
            table_definitions.upgrade(writing, head="0004")
    id, session, content = next_session()
    columns = "(id, content, question, started)"
    question = hashing.question_id(session.question)
    admin(
        f"INSERT INTO {address.schema}.sessions {columns} VALUES (%s, %s, %s, 1)",
        bytes.fromhex(id),
        content,
        bytes.fromhex(question),
    )
    with closing(Store.open(address)) as store:
        assert store.foreign == []
        extent = extent_of(store)
        assert store.find_new_questions(extent, 0) == set()
        assert store.find_new_questions((extent[0], "1:1:"), MANY) == {question}
        assert add(store) in (store.find_new_questions(extent, MANY) or set())


def dump(server: PostgreSQLServer, *options: str) -> str:
    """Return statements that make all or some of a database again."""
    program = str(server.programs / "pg_dump")
    command = [program, "-h", server.host, "-U", server.user, *options, "postgres"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def load(server: PostgreSQLServer, statements: str) -> None:
    command = (server.programs / "psql", "-h", server.host, "-U", server.user, "-q")
    subprocess.run(
        [*command, "-v", "ON_ERROR_STOP=1", "postgres"],
        input=statements,
        check=True,
        capture_output=True,
        text=True,
    )
