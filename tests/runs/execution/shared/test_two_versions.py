"""Programs of two versions on one store: the older stops before it writes, and neither joins."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evalstore import __version__
from evalstore.core.errors import STORE_UNUSABLE
from evalstore.store import Store
from evalstore.store.location import StoreLocation
from evalstore.store.schema import table_definitions
from tests.runs.execution.loopback.team import SECONDS, Gate, Team, team_at, wait_until

pytestmark = pytest.mark.extended

ROWS = 40


@pytest.fixture
def team(tmp_path: Path, location: StoreLocation) -> Iterator[Team]:
    """A workspace with a store in each database."""
    with team_at(tmp_path / "w", location) as made:
        made.write(ROWS, below="~~~checks\n- json:\n~~~\n")
        yield made


def stamp(team: Team, version: str) -> None:
    """Let the store be one of another version."""
    known = team.query("SELECT version_num FROM alembic_version")[0][0]
    with closing(Store.open(team.store)) as store, store.writing() as connection:
        assert known == table_definitions.HEAD
        connection.execute(f"UPDATE alembic_version SET version_num = '{version}'")


def version(team: Team) -> str:
    return str(team.query("SELECT version_num FROM alembic_version")[0][0])


def test_a_run_whose_store_is_migrated_stops_before_it_writes_and_can_be_finished(
    team: Team,
) -> None:
    gate = Gate(team.server)
    process = team.start("run", "--json", "-j", "4")
    wait_until(lambda: len(team.server.received) == 4)
    with closing(Store.open(team.store)) as newer:
        stamp(team, "0999")
        gate.open()
        _, err = process.communicate(timeout=SECONDS)
        assert process.returncode == STORE_UNUSABLE, err
        error = err.splitlines()
        assert error[0].startswith(f"error: the store '{team.store}' was migrated while it was")
        assert "(its version is 0999 now, ours is " in err
        assert error[-1].startswith("hint: upgrade evalstore and run again")
        assert "Traceback" not in err
        assert newer.find_runs() == []
    assert team.query("SELECT count(*) FROM sessions") == [(0,)]
    assert len(team.server.received) <= 8, "no call is made for an answer that cannot be stored"


def test_a_runner_of_another_version_is_refused(team: Team) -> None:
    gate = Gate(team.server)
    process = team.start("run", "--json", "--executor", "processes", "--workers", "1")
    wait_until(lambda: len(team.runners()) == 2)
    with closing(Store.open(team.store)) as store, store.writing() as connection:
        older = json.dumps(store.find_shared_runs()[0].description | {"version": "0.0.1"})
        connection.execute("UPDATE shared_runs SET description = ?", (older,))
    joined = team.start("run", "--join", "@")
    _, err = joined.communicate(timeout=SECONDS)
    assert joined.returncode == 2
    assert f" was begun by evalstore 0.0.1, and this is {__version__}\n" in err
    assert "hint: use the same version on all machines" in err
    gate.open()
    assert process.wait(SECONDS) == 0


def test_a_runner_does_not_migrate_the_store_of_older_programs(team: Team) -> None:
    team.run("--limit", "1")
    stamp(team, "0003")
    joined = team.start("run", "--join", "@")
    _, err = joined.communicate(timeout=SECONDS)
    assert joined.returncode == STORE_UNUSABLE
    assert "is older than this program (its version is 0003, ours is " in err
    assert "hint: runners need the version of evalstore that has begun the run" in err
    assert version(team) == "0003"
