"""A program that is stopped in the middle of a transaction in PostgreSQL."""

from __future__ import annotations

from contextlib import ExitStack, closing

import pytest

from evalstore.errors import StoreError
from evalstore.store import Store
from evalstore.store.location import read_location
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
            assert connection.execute(f"SHOW {setting}").fetchall() == [("1min",)]
            connection.execute(f"SET LOCAL {setting} TO '100ms'")
            connection.execute("SELECT * FROM shared_runs FOR UPDATE")
            assert other.write_share(RUN, A, 0.0, 0.0, {}).is_open
            connection.execute("SELECT 1")
