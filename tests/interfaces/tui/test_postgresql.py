"""The browser over a store in PostgreSQL: while a run writes, and while the server is away."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from textual.pilot import Pilot

from evalstore.core.errors import NO, OK
from evalstore.interfaces.cli.main import main
from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.planning.options import Location
from evalstore.store import Store
from evalstore.store.location import read_address
from tests.forked_programs import Starter
from tests.interfaces.tui.driving import drive, look, press, screen, until
from tests.postgresql_server import PostgreSQLServer, running_server, why_not

pytestmark = pytest.mark.extended


@pytest.fixture
def own_server() -> Iterator[PostgreSQLServer]:
    if reason := why_not():
        pytest.skip(reason)
    with running_server() as server:
        yield server


@pytest.fixture
def url(workspace: Path, own_server: PostgreSQLServer) -> str:
    """Return the URL of a store with the run of the workspace."""
    made = own_server.url()
    Store.open(read_address(made), create=True).close()
    assert main(["-C", str(workspace), "--store", made, "pull", ".evalstore/store.db"]) == OK
    return made


def test_a_run_of_another_process_appears_while_it_writes(
    workspace: Path, url: str, start: Starter
) -> None:
    source = WorkspaceSource(Location(workspace, store=url))

    async def scenario(pilot: Pilot[None]) -> None:
        assert screen(pilot).splitlines()[0] == " evalstore › 1 run"
        running = start("--store", url, "run", "--refresh", "--json", folder=workspace)
        await look(pilot)
        await press(pilot, "down", "enter", "escape", "escape")
        code, _, err = running.finish()
        assert (code, err) == (NO, "")
        await look(pilot)
        await until(pilot, lambda: screen(pilot).startswith(" evalstore › 2 runs"))
        await press(pilot, "enter", "enter")
        assert "error: " not in screen(pilot)

    drive(scenario, source=source)


def test_a_server_that_is_away_is_reported_until_it_is_back(
    workspace: Path, url: str, own_server: PostgreSQLServer
) -> None:
    source = WorkspaceSource(Location(workspace, store=url))

    async def scenario(pilot: Pilot[None]) -> None:
        await look(pilot)
        own_server.stop()
        await look(pilot)
        await until(pilot, lambda: "cannot be reached" in " ".join(screen(pilot).split()))
        own_server.start()
        await look(pilot)
        await until(pilot, lambda: "cannot be reached" not in " ".join(screen(pilot).split()))
        assert screen(pilot).splitlines()[0] == " evalstore › 1 run"

    drive(scenario, source=source)


_WAITING = (
    "SELECT pid, query_start FROM pg_stat_activity "
    "WHERE wait_event_type = 'Lock' AND application_name = 'evalstore'"
)


def test_the_query_of_a_screen_ends_when_it_is_left(
    workspace: Path, url: str, own_server: PostgreSQLServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg = pytest.importorskip("psycopg")
    from evalstore.store.postgresql import connection as connections

    # It waits for the lock longer than `until` for its end.
    settings = connections._SETTINGS.replace("lock_timeout TO '20s'", "lock_timeout TO '1h'")
    assert settings != connections._SETTINGS
    monkeypatch.setattr(connections, "_SETTINGS", settings)
    address = read_address(url)
    options = {**address.options, "application_name": "other"}
    source = WorkspaceSource(Location(workspace, store=url))

    async def scenario(pilot: Pilot[None]) -> None:
        await look(pilot)
        with psycopg.connect("", **options) as blocking, psycopg.connect("", **options) as other:
            other.autocommit = True

            def waiting() -> set[tuple[object, ...]]:
                return set(other.execute(_WAITING).fetchall())

            blocking.execute(f"LOCK TABLE {address.schema}.nodes IN ACCESS EXCLUSIVE MODE")
            await pilot.press("enter")
            await until(pilot, lambda: bool(waiting()))
            of_cases = waiting()
            await pilot.press("escape")
            await until(pilot, lambda: not of_cases & waiting())
        await look(pilot)
        await press(pilot, "enter", "enter")
        assert "error: " not in screen(pilot)

    drive(scenario, source=source)
