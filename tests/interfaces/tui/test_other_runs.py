"""The browser follows the runs of other programs, whichever database the store is in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from evalstore.interfaces.tui.data_source import WorkspaceSource
from evalstore.planning.options import Location
from evalstore.store.leases import start_time
from evalstore.store.location import StoreLocation
from tests import endpoint
from tests.interfaces.tui.driving import drive, look, press, resized, screen
from tests.runs.execution.loopback.team import SECONDS, Team, team_at, wait_until

pytestmark = pytest.mark.extended
ROWS, ANSWERED, AT_ONCE = 60, 20, 4


class Gate:
    """Answers some requests, and the others when it is opened."""

    def __init__(self, team: Team, answered: int) -> None:
        self._opened = threading.Event()
        self._answered = answered
        self.received = 0
        self._lock = threading.Lock()
        self.open = self._opened.set
        team.server.reply = self._reply

    def _reply(self, request: dict[str, Any]) -> str:
        with self._lock:
            self.received += 1
            is_held = self.received > self._answered
        if is_held:
            assert self._opened.wait(SECONDS)
        return json.dumps({"said": endpoint.echo(request)})


@pytest.fixture
def team(tmp_path: Path, location: StoreLocation) -> Iterator[Team]:
    """A workspace with a store in each database."""
    with team_at(tmp_path / "w", location) as made:
        made.write(ROWS, below="~~~checks\n- json:\n~~~\n")
        yield made


def shown(pilot: Pilot[None]) -> str:
    """The lines below the title that name runs of others."""
    return "\n".join(line for line in screen(pilot).splitlines() if line.startswith(" ▶ "))


@pytest.fixture
def gate(team: Team) -> Iterator[Gate]:
    """What holds back answers until the test ends."""
    gate = Gate(team, ANSWERED)
    yield gate
    gate.open()


@pytest.fixture
def source(team: Team, monkeypatch: pytest.MonkeyPatch) -> WorkspaceSource:
    """The data of a browser that looks at runs in progress each time."""
    monkeypatch.setattr("evalstore.interfaces.tui.data_source._LOOK_SECONDS", 0)
    return WorkspaceSource(Location(team.root, store=team.address))


def begin(team: Team, gate: Gate) -> subprocess.Popen[str]:
    """Begin a run of two programs; return when some answers are stored, and the others held."""
    others = ("--executor", "processes", "--workers", "1")
    process = team.start("run", "--json", "-j", str(AT_ONCE), *others)
    wait_until(lambda: gate.received == ANSWERED + 2 * AT_ONCE)
    wait_until(lambda: team.query("SELECT count(*) FROM evaluations") == [(ANSWERED,)])
    return process


def test_runs_of_other_programs_are_named_until_they_have_ended(
    team: Team, gate: Gate, source: WorkspaceSource
) -> None:
    process = begin(team, gate)

    async def scenario(pilot: Pilot[None]) -> None:
        await look(pilot)
        assert ": 20/60 asked, 20/60 judged" in shown(pilot)
        assert "in progress in other programs" in screen(pilot)
        await resized(pilot, 60, 15)
        assert shown(pilot).endswith("20/60 asked, 20/60 judged")
        await press(pilot, "w")
        assert shown(pilot).endswith("20/60 asked, 20/60 judged")
        await resized(pilot, 200, 60)
        assert (
            ", in 2 programs: 20 of 60 answers and 20 of 60 verdicts so far; 'evalstore run "
            in shown(pilot)
        )
        gate.open()
        out, err = process.communicate(timeout=SECONDS)
        assert json.loads(out)["status"] == "complete", err
        await look(pilot)
        assert shown(pilot) == ""
        await press(pilot, "escape")
        assert shown(pilot) == ""
        assert screen(pilot).startswith(" evalstore › 1 run\n")
        assert "in progress" not in screen(pilot)

    drive(scenario, source=source)


def test_a_run_whose_programs_were_killed_is_said_to_have_none(
    team: Team, gate: Gate, source: WorkspaceSource
) -> None:
    process = begin(team, gate)

    async def scenario(pilot: Pilot[None]) -> None:
        await look(pilot)
        runners = team.runners()
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for runner in runners:
                os.kill(runner.pid, number)
        process.communicate(timeout=SECONDS)
        # The other one is not a child of this process: the signal may still be on its way.
        wait_until(lambda: not any(start_time(each.pid) for each in runners))
        await look(pilot)
        assert "no live program: 20/60 asked, 20/60 judged" in shown(pilot)
        assert "' continues it." in " ".join(screen(pilot).split())

    drive(scenario, source=source)
