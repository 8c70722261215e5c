"""Real programs whose database server goes away in the middle of a run, and comes back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.location import read_address
from tests import endpoint
from tests.forked_programs import Starter
from tests.postgresql_server import PostgreSQLServer, running_server, why_not
from tests.runs.execution.shared.test_shared_runs import ROWS, Team, reports

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
]


@pytest.fixture
def own_server() -> Iterator[PostgreSQLServer]:
    """Return a server that the test may stop."""
    with running_server(fsync=True) as server:
        yield server


@pytest.fixture
def team(tmp_path: Path, start: Starter, own_server: PostgreSQLServer) -> Iterator[Team]:
    url = own_server.url()
    Store.open(read_address(url), create=True).close()
    with endpoint.running() as server:
        made = Team(tmp_path, server, url, start)
        yield made
        made.let_go.set()
    with closing(Store.open(read_address(url))) as store:
        assert check_store(store)[1] == []


@pytest.mark.parametrize("mode", ["immediate", "fast"], ids=["crashes", "is shut down"])
def test_what_is_answered_while_it_is_away_is_stored_when_it_is_back(
    team: Team, own_server: PostgreSQLServer, mode: str
) -> None:
    programs = team.begin("-j", "4")
    programs[0].wait_until(team.all_call(3))
    own_server.stop(mode)
    team.let_go.set()
    programs[0].wait_until(lambda: "the store does not answer: waiting" in programs[0].err)
    own_server.start()
    led, *joined = reports(programs)
    assert "the store answers again" in programs[0].err
    assert (led["status"], led["asked"], led["verdicts"]["pass"]) == ("complete", ROWS, ROWS)
    assert set(team.asked.values()) == {1}
    assert led["cost"] == pytest.approx(2 * ROWS * 0.01)
    assert all(report["run"] is None for report in joined)
    with closing(Store.open(read_address(team.url))) as store:
        assert len(store.find_runs()) == 1
        assert store.find_shared_runs() == []


def test_commands_during_an_outage_fail_at_once_and_harm_nothing(
    team: Team, own_server: PostgreSQLServer, start: Starter
) -> None:
    (leader,) = team.begin("-j", "4", joined=0)
    leader.wait_until(team.all_call(1))
    own_server.stop()
    for command in ("status", "run", "log", "fsck", "run --join @"):
        code, out, err = start(
            "--store", team.url, *command.split(), folder=team.workspace
        ).finish()
        assert (code, out) == (6, ""), command
        assert "cannot be reached" in err
        assert (
            "hint: check the host and the port of the address; if they are right, run again" in err
        )
    own_server.start()
    team.let_go.set()
    (led,) = reports([leader])
    assert (led["status"], led["asked"]) == ("complete", ROWS)
    assert set(team.asked.values()) == {1}
    again = start("--store", team.url, "status", "--json", folder=team.workspace).finish()
    assert json.loads(again[1])["items"] == []
