"""A program that is stopped in the middle of a transaction in PostgreSQL."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest

from evalstore.core.errors import StoreError, StoreLockedError
from evalstore.store import Store
from evalstore.store.driver import Connection
from evalstore.store.leases import BEAT_SECONDS, SILENT_SECONDS
from evalstore.store.location import read_location
from evalstore.store.postgresql import connection as connections
from tests.postgresql_server import PostgreSQLServer

RUN, A = "1" * 32, "a" * 32


def test_a_program_that_is_stopped_in_a_transaction_holds_up_the_others_for_a_while_only(
    postgresql_server: PostgreSQLServer,
) -> None:
    with ExitStack() as stack:
        location = read_location(postgresql_server.url())
        stopped, other = (
            stack.enter_context(closing(Store.open(location, create=True))) for _ in range(2)
        )
        other.add_shared_run(RUN, {}, 1.0)
        stack.enter_context(pytest.raises(StoreError))  # its connection is gone
        with stopped.writing() as connection:
            setting = "idle_in_transaction_session_timeout"
            assert connection.execute(f"SHOW {setting}").fetchall() == [("10s",)]
            connection.execute(f"SET LOCAL {setting} TO '100ms'")
            connection.execute("SELECT * FROM shared_runs FOR UPDATE")
            assert other.write_share(RUN, A, 0.0, 0.0, {}).is_open
            connection.execute("SELECT 1")


def test_a_lock_of_another_program_is_waited_for_longer_than_one_that_is_stopped_can_hold_it(
    postgresql_server: PostgreSQLServer,
) -> None:
    with closing(Store.open(read_location(postgresql_server.url()), create=True)) as store:
        longest = {}
        for name in ("lock_timeout", "idle_in_transaction_session_timeout"):
            query = f"SELECT setting::int FROM pg_settings WHERE name = '{name}'"
            longest[name] = store.write(lambda begun, query=query: begun.count(query))  # type: ignore[misc]
        assert longest["lock_timeout"] > longest["idle_in_transaction_session_timeout"] > 0
        assert longest["idle_in_transaction_session_timeout"] + 1e3 * BEAT_SECONDS < (
            1e3 * SILENT_SECONDS
        )


@pytest.mark.parametrize("held", [1, 2, 3])
def test_a_wait_for_a_lock_is_repeated_and_ends_in_a_clear_error(
    postgresql_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr(connections, "_SETTINGS", connections._SETTINGS.replace("20s", "20ms"))
    location = read_location(postgresql_server.url())
    tries: list[int] = []
    with ExitStack() as stack:
        foreign, store = (
            stack.enter_context(closing(Store.open(location, create=True))) for _ in range(2)
        )
        store.add_shared_run(RUN, {}, 1.0)
        lock = "SELECT id FROM shared_runs FOR UPDATE"
        holding = stack.enter_context(foreign.writing())
        holding.execute(lock)

        def work(connection: Connection) -> None:
            tries.append(1)
            if len(tries) > held:
                holding.execute("COMMIT")
                holding.execute("BEGIN")
            connection.execute(lock)

        if held < 3:
            store.write(work)
            assert len(tries) == held + 1
            return
        with pytest.raises(StoreLockedError, match="is locked by another program") as caught:
            store.write(work)
        assert caught.value.hint
        assert caught.value.hint.startswith("wait until it is done and try again")
        assert len(tries) == 3
