"""A program that is stopped while it holds what the others of its run need."""

from __future__ import annotations

import asyncio
import gc
import signal
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from evalstore.core.errors import StoreLockedError
from evalstore.runs.execution.limits.budget import SharedBudget
from evalstore.store import Store
from evalstore.store.location import read_address, read_location
from evalstore.store.postgresql import connection as connections
from tests import endpoint
from tests.forked_programs import Starter
from tests.postgresql_server import PostgreSQLServer
from tests.runs.execution.shared.test_share_writer import a_writer
from tests.runs.execution.shared.test_shared_runs import ROWS, Team

pytestmark = pytest.mark.extended

_LOCK = "SELECT id FROM shared_runs FOR UPDATE"
_IN_TRANSACTION = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'evalstore' AND "
WAITING = f"{_IN_TRANSACTION} wait_event_type = 'Lock'"
IDLE = f"{_IN_TRANSACTION} state = 'idle in transaction' AND now() - state_change > '1s'"


async def all_are_alive(runners: Collection[str]) -> Collection[str]:
    return runners


@pytest.fixture
def team(tmp_path: Path, start: Starter, postgresql_server: PostgreSQLServer) -> Iterator[Team]:
    with endpoint.running() as server:
        made = Team(tmp_path, server, postgresql_server.url(), start)
        yield made
        made.let_go.set()


@pytest.fixture
def beside(team: Team) -> Iterator[psycopg.Connection[Any]]:
    """Return a connection of another program to the database of the store."""
    address = read_address(team.url)
    options: dict[str, Any] = dict(address.options)
    with psycopg.connect("", autocommit=True, **options) as raw:
        raw.execute(f"SET search_path TO {address.schema}".encode())
        yield raw


def test_the_others_go_on_and_it_does_so_when_it_wakes(
    team: Team, beside: psycopg.Connection[Any]
) -> None:
    def count(query: str) -> int:
        # Within its transaction, PostgreSQL goes on to show the connections of the first look.
        beside.execute(b"SELECT pg_stat_clear_snapshot()")
        (number,) = beside.execute(query.encode()).fetchall()[0]
        return int(number)

    programs = team.begin("--max-cost", "5")
    programs[0].wait_until(lambda: sum(team.asked.values()) >= 6)
    beside.execute(b"BEGIN")
    beside.execute(_LOCK.encode())
    team.let_go.set()
    programs[0].wait_until(lambda: count(WAITING) >= 3)
    programs[-1].send(signal.SIGSTOP)  # its server process gets the lock, and nobody gives it back
    beside.execute(b"COMMIT")
    programs[0].wait_until(lambda: count(IDLE) >= 1)  # others may be slow
    programs[0].wait_until(lambda: sum(team.asked.values()) >= ROWS - 30)
    programs[0].wait_until(lambda: count(IDLE) == 0)  # one of the others may just be slow
    programs[-1].send(signal.SIGCONT)
    ended = [program.finish() for program in programs]
    assert [(code, err) for code, _, err in ended if "Traceback" in err or code] == []
    assert set(team.asked.values()) == {1}
    assert len(team.asked) == ROWS
    assert (count("SELECT count(*) FROM runs"), count("SELECT count(*) FROM shared_runs")) == (1, 0)


def test_a_budget_that_cannot_be_read_is_the_error_of_the_calls_and_of_nothing_else(
    postgresql_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_SETTINGS", connections._SETTINGS.replace("20s", "20ms"))
    unseen: list[Any] = []

    async def reserve(budget: SharedBudget) -> list[Any]:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: unseen.append(context))
        calls = [budget.reserve(0.1) for _ in range(3)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        gc.collect()
        await asyncio.sleep(0)
        return answers

    location = read_location(postgresql_server.url())
    with (
        closing(Store.open(location, create=True)) as foreign,
        closing(Store.open(location)) as store,
    ):
        share = a_writer(store, 1.0)
        with foreign.writing() as connection:
            connection.execute("SET LOCAL idle_in_transaction_session_timeout TO 0")
            connection.execute(_LOCK)
            errors = asyncio.run(reserve(SharedBudget(share, 1.0, all_are_alive)))
        assert [type(error) for error in errors] == [StoreLockedError] * 3
        assert unseen == []
        assert asyncio.run(reserve(SharedBudget(share, 1.0, all_are_alive))) == [None] * 3
