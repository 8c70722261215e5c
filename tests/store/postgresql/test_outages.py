"""A server that is away, at the start, in the middle and for a while; connections that are cut."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from typing import Any

import psycopg
import pytest

from evalstore.core.errors import (
    STORE_UNUSABLE,
    StoreError,
    StoreLockedError,
    StoreUnreachableError,
)
from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.driver import Connection
from evalstore.store.location import DatabaseAddress, read_address
from evalstore.store.postgresql import connection as connections
from evalstore.store.postgresql import driver as drivers
from evalstore.store.postgresql.connection import PostgreSQLConnection, RawConnection
from evalstore.store.schema.table_definitions import FAILURES
from evalstore.store.search.index import SearchIndex
from tests.postgresql_server import PostgreSQLServer
from tests.runs.execution.test_executor import Lab
from tests.store.postgresql.conftest import Admin, Outage
from tests.store.sessions import a_run, fill

_MY_ID = "SELECT pg_backend_pid()"


def cut(connection: Connection, admin: Admin) -> None:
    """Cut a connection on the server's side."""
    (pid,) = connection.execute(_MY_ID).fetchone()
    assert admin("SELECT pg_terminate_backend(%s, 10000)", pid) == [(True,)]


def test_a_connection_that_is_cut_while_it_is_made_is_an_error_at_once(
    pg_store: Store,
    address: DatabaseAddress,
    admin: Admin,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    set_up = connections._set_up

    def set_up_when_cut(raw: RawConnection, address: DatabaseAddress) -> int:
        assert admin("SELECT pg_terminate_backend(%s, 10000)", raw.info.backend_pid)
        return set_up(raw, address)

    monkeypatch.setattr(connections, "_set_up", set_up_when_cut)
    with pytest.raises(StoreUnreachableError):
        Store.open(address, create=False)


# --- away


@pytest.mark.parametrize("host", ["127.0.0.1:1", "evalstore.invalid", "/nowhere"])
def test_a_server_that_is_away_at_the_start_is_an_error_at_once(host: str) -> None:
    place = f"?host={host}" if host.startswith("/") else ""
    address = read_address(f"postgresql://ann@{'' if place else host}/db{place}")
    with pytest.raises(StoreUnreachableError, match="cannot be reached") as caught:
        Store.open(address, create=True)
    assert caught.value.exit_code == STORE_UNUSABLE
    assert caught.value.hint == (
        "check the host and the port of the address; if they are right, "
        "run again when it is back: what is in the store stays there"
    )
    assert "\n" not in str(caught.value)


def test_reading_and_writing_go_on_when_the_server_is_back(outage: Outage) -> None:
    with closing(Store.open(read_address(outage.server.url()), create=True)) as store:
        fill(store)
        outage.begin()
        assert store.find_runs()
        assert outage.failed == 3
        outage.failed = 0
        outage.begin()
        store.record_run(a_run(77))
        assert outage.failed == 3
        assert [run.started for run in store.find_runs(limit=1)] == [77]


def test_patience_ends(own_server: PostgreSQLServer) -> None:
    address = read_address(own_server.url())
    driver = drivers.PostgreSQLDriver.open(address, create=True, patience=0.0)
    with closing(Store(driver)) as store:
        own_server.stop()
        with pytest.raises(StoreUnreachableError, match="cannot be reached"):
            store.find_runs()
        with pytest.raises(StoreUnreachableError, match="cannot be reached"):
            store.record_run(a_run(1))


@pytest.mark.parametrize("away", [119.0, 123.0])
def test_a_server_is_waited_for_two_minutes(
    own_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch, away: float
) -> None:
    """The clock is that of the test: each pause passes at once."""
    now = [1000.0]
    back = [1000 + away]

    def wait(_closed: threading.Event, seconds: float) -> bool:
        assert seconds <= 2, "the server is asked every two seconds at least"
        now[0] += seconds
        return False

    def connect(address: DatabaseAddress) -> RawConnection:
        if now[0] < back[0]:
            raise psycopg.OperationalError("connection refused")
        return connections.connect(address)

    with closing(Store.open(read_address(own_server.url()), create=True)) as store:
        store.record_run(a_run(1))
        own_server.stop()
        own_server.start()
        monkeypatch.setattr(drivers, "monotonic", lambda: now[0])
        monkeypatch.setattr(threading.Event, "wait", wait)
        monkeypatch.setattr(drivers, "connect", connect)
        if away > 120:
            with pytest.raises(StoreUnreachableError, match="cannot be reached"):
                store.find_runs()
            assert now[0] == pytest.approx(1121, abs=1.1)
            # Nor does anything else wait any longer, whatever connection it has.
            with pytest.raises(StoreUnreachableError, match="after waiting for 120 seconds"):
                store.record_run(a_run(2))
            assert now[0] == pytest.approx(1121, abs=1.1)
            # A program that was stopped for an hour begins to wait anew.
            now[0] += 3600
            back[0] += 3730
            with pytest.raises(StoreUnreachableError, match="cannot be reached"):
                store.find_runs()
            assert now[0] == pytest.approx(4842, abs=2.1)
            now[0] += 3600
            back[0] += 3730
            with pytest.raises(StoreUnreachableError, match="cannot be reached"):
                store.record_run(a_run(2))
            assert now[0] == pytest.approx(8563, abs=3.1)
        else:
            assert [run.started for run in store.find_runs()] == [1]
            now[0] = 1000
            own_server.stop()
            own_server.start()
            store.record_run(a_run(2))
            assert [run.started for run in store.find_runs()] == [2, 1]


def test_nobody_waits_in_the_event_loop_for_a_server_that_is_away(
    own_server: PostgreSQLServer,
) -> None:
    with closing(Store.open(read_address(own_server.url()), create=True)) as store:
        own_server.stop()
        for _ in range(2):  # the second time, there is no connection that could be lost
            with pytest.raises(StoreLockedError, match="does not answer at once"):
                store.write(lambda connection: connection.execute("SELECT 1"), wait=False)
        own_server.start()
        store.write(lambda connection: connection.execute("SELECT 1"))
        store.write(lambda connection: connection.execute("SELECT 1"), wait=False)


@pytest.fixture
def lab(outage: Outage) -> Iterator[Lab]:
    with closing(Store.open(read_address(outage.server.url()), create=True)) as store:
        yield Lab(store)
        assert check_store(store)[1] == []


@pytest.mark.parametrize("moment", [1, 4, 7])
def test_a_run_goes_on_when_the_server_is_back(lab: Lab, outage: Outage, moment: int) -> None:
    """Whether it goes away before the first answer, among them, or among judgements."""
    for number in range(4):
        lab.add(f"Question {number}")
    act, judging = lab.act, lab.judging
    calls: list[int] = []

    def counting(answer: Any) -> Any:
        def reply(*arguments: Any) -> Any:
            calls.append(1)
            if len(calls) == moment:
                outage.begin()
            return answer(*arguments)

        return reply

    lab.act, lab.judging = counting(act), counting(judging)
    outcome = lab.run()
    assert outage.failed >= 3
    assert (outcome.asked, outcome.judged, outcome.failed) == (4, 4, 0)
    assert (len(lab.asked), len(lab.judged)) == (4, 4)
    assert (len(lab.stored("sessions")), len(lab.stored("evaluations"))) == (4, 4)
    assert lab.is_done()


# --- cut


def test_a_transaction_whose_connection_is_cut_is_made_again(pg_store: Store, admin: Admin) -> None:
    tries: list[int] = []

    def work(connection: Connection) -> int:
        tries.append(connection.insert(FAILURES, [(b"x" * 16, "{}", None, len(tries))]))
        if len(tries) == 1:
            cut(connection, admin)
        connection.execute("SELECT 1")
        return len(tries)

    assert pg_store.write(work) == 2
    assert tries == [1, 1]  # nothing was left of the first
    assert [row["at"] for table, row in pg_store.iterate() if table == "failures"] == [1]


def test_a_transaction_that_cannot_be_made_again_leaves_nothing(
    pg_store: Store, admin: Admin
) -> None:
    with suppress(StoreUnreachableError), pg_store.writing() as connection:
        connection.insert(FAILURES, [(b"x" * 16, "{}", None, 1)])
        cut(connection, admin)
        pytest.fail(f"it goes on: {connection.execute('SELECT 1')}")
    assert list(pg_store.iterate()) == []


def test_a_commit_whose_confirmation_was_lost_stores_once(
    pg_store: Store, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = PostgreSQLConnection.execute
    lost: list[str] = []

    def cut_after(connection: PostgreSQLConnection, statement: str, *rest: Any) -> Any:
        done = execute(connection, statement, *rest)
        if statement == "COMMIT" and not lost:
            lost.append(statement)
            ((pid,),) = execute(connection, _MY_ID).fetchall()
            admin("SELECT pg_terminate_backend(%s, 10000)", pid)
            connection.raw.execute("SELECT 1")  # the error that a lost confirmation is
        return done

    monkeypatch.setattr(PostgreSQLConnection, "execute", cut_after)
    fill(pg_store)
    assert lost == ["COMMIT"]
    rows = list(pg_store.iterate())
    assert check_store(pg_store) == (len(rows), [])
    fill(pg_store)
    assert list(pg_store.iterate()) == rows


def test_a_read_whose_connection_was_cut_meanwhile_is_made_again(
    pg_store: Store, admin: Admin
) -> None:
    pg_store.record_run(a_run(5))
    with pg_store._reading() as connection:
        cut(connection, admin)
    assert [run.started for run in pg_store.find_runs()] == [5]


def test_a_snapshot_is_not_continued_on_another_connection(pg_store: Store, admin: Admin) -> None:
    with suppress(StoreUnreachableError), pg_store.snapshot() as connection:
        cut(connection, admin)
        pytest.fail(f"it goes on: {connection.execute('SELECT 1')}")


# --- rolled back


@pytest.mark.parametrize("code", ["40P01", "40001"], ids=["deadlock", "serialization"])
def test_what_the_server_rolls_back_is_done_again(pg_store: Store, code: str) -> None:
    tries: list[int] = []

    def work(connection: Connection) -> None:
        connection.insert(FAILURES, [(b"x" * 16, "{}", None, len(tries))])
        tries.append(1)
        if len(tries) < 3:
            connection.execute(
                f"DO $$BEGIN RAISE EXCEPTION 'rolled back' USING ERRCODE='{code}'; END$$"
            )

    pg_store.write(work)
    assert len(tries) == 3
    assert [row["at"] for _, row in pg_store.iterate()] == [2]


def test_a_real_deadlock_ends_with_both_transactions(
    pg_store: Store, address: DatabaseAddress
) -> None:
    """Two writers that take two rows in opposite orders; the server ends one of them."""
    with pg_store.writing() as connection:
        connection.insert(FAILURES, [(name * 16, "{}", None, 0) for name in (b"a", b"b")])
    both_have_one = threading.Barrier(2)
    tries: list[bytes] = []

    def take(first: bytes, second: bytes) -> None:
        is_first_try = [True]

        def work(connection: Connection) -> None:
            tries.append(first)
            update = "UPDATE failures SET at = at + 1 WHERE id = ?"
            connection.execute(update, (first * 16,))
            if is_first_try:
                is_first_try.clear()
                both_have_one.wait(60)
            connection.execute(update, (second * 16,))

        with closing(Store.open(address)) as store:
            store.write(work)

    threads = [threading.Thread(target=take, args=pair) for pair in ((b"a", b"b"), (b"b", b"a"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(tries) == 3
    assert [row["at"] for _, row in pg_store.iterate()] == [2, 2]


def test_nobody_waits_in_the_event_loop_for_a_row_of_another_transaction(
    pg_store: Store, address: DatabaseAddress
) -> None:
    row = (b"x" * 16, "{}", None, 1)
    with closing(Store.open(address)) as other:
        other.write(lambda connection: connection.execute("SELECT 1"))
        with pg_store.writing() as connection:
            connection.insert(FAILURES, [row])
            with pytest.raises(StoreLockedError, match="locked by another program"):
                other.write(lambda connection: connection.insert(FAILURES, [row]), wait=False)
        assert other.write(lambda connection: connection.insert(FAILURES, [row]), wait=False) == 0


def test_a_program_that_is_stopped_in_a_transaction_loses_it(
    pg_store: Store, monkeypatch: pytest.MonkeyPatch, admin: Admin
) -> None:
    begin = drivers._BEGIN
    monkeypatch.setattr(drivers, "_BEGIN", begin.replace("10s", "1ms"))
    tries: list[int] = []

    def work(connection: Connection) -> None:
        tries.append(1)
        if len(tries) == 1:  # as if the process were stopped until the server has had enough
            monkeypatch.setattr(drivers, "_BEGIN", begin)
            while admin("SELECT 1 FROM pg_stat_activity WHERE state LIKE 'idle in t%'"):
                pass
        connection.insert(FAILURES, [(b"x" * 16, "{}", None, len(tries))])

    pg_store.write(work)
    assert [row["at"] for _, row in pg_store.iterate()] == [2]


def test_an_error_that_is_final_is_not_tried_again(pg_store: Store) -> None:
    tries: list[int] = []

    def work(connection: Connection) -> None:
        tries.append(1)
        connection.execute("SELECT 1 / 0")

    with pytest.raises(StoreError, match="division by zero"):
        pg_store.write(work)
    assert len(tries) == 1


def test_a_snapshot_whose_connection_is_cut_is_an_error_and_the_next_is_whole(
    pg_store: Store, admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(pg_store)
    search = SearchIndex.open(None)
    stream = PostgreSQLConnection.stream
    left: list[str] = []

    def cut_first(connection: PostgreSQLConnection, *query: Any) -> Iterator[Any]:
        if left:
            left.pop()
            ((pid,),) = connection.execute(_MY_ID).fetchall()
            admin("SELECT pg_terminate_backend(%s, 10000)", pid)
        return stream(connection, *query)

    monkeypatch.setattr(PostgreSQLConnection, "stream", cut_first)
    reads: list[Callable[[], bool]] = [
        lambda: check_store(pg_store)[1] == [],
        lambda: search.update(pg_store),
    ]
    for read in reads:
        left.append("cut")
        with pytest.raises(StoreUnreachableError):
            read()
        assert read()
