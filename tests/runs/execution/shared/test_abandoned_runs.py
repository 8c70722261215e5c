"""Runs whose programs have all died or fallen silent: recorded once, continued, paid once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.leases import LEADS, Leases
from evalstore.store.location import StoreLocation
from evalstore.store.shared_runs import ABANDONED_SECONDS, SILENT_SECONDS
from tests import endpoint
from tests.builders import tree
from tests.runs.execution.loopback.team import PRICE, SECONDS, Team, team_at, wait_until

pytestmark = pytest.mark.extended

ROWS, ANSWERED, AT_ONCE = 60, 20, 4
BELOW = "~~~checks\n- json:\n~~~\n"


class Held:
    """Answers some requests, holds as many as come until it is opened, then answers all."""

    def __init__(self, team: Team) -> None:
        self._lock = threading.Lock()
        self._opened = threading.Event()
        self.received = 0
        self.lasts = True
        """Whether further requests are held."""
        team.server.reply = self._reply

    def open(self) -> None:
        """Let the answers go."""
        self._opened.set()

    def _reply(self, request: dict[str, Any]) -> str:
        with self._lock:
            self.received += 1
            is_held = self.received > ANSWERED and self.lasts
        if is_held:
            assert self._opened.wait(SECONDS)
        return json.dumps({"said": endpoint.echo(request)})


@pytest.fixture
def team(tmp_path: Path, location: StoreLocation) -> Iterator[Team]:
    """A workspace with a store in each database; what it leaves behind must be sound."""
    with team_at(tmp_path / "w", location) as made:
        made.write(ROWS, below=BELOW)
        yield made
    with closing(Store.open(location)) as store:
        assert check_store(store)[1] == []
        with store.snapshot() as seen:
            for table in ("work", "leases", "runners", "shared_runs", "run_shares"):
                left = seen.execute(f"SELECT count(*) FROM {table}").fetchall()
                assert (table, left) == (table, [(0,)])


@pytest.fixture
def held(team: Team) -> Iterator[Held]:
    """What holds back the answers."""
    held = Held(team)
    yield held
    held.open()


def begin(team: Team, held: Held) -> subprocess.Popen[str]:
    """Begin a run of two programs; return when some answers are stored, and the others held."""
    process = team.start(
        *("run", "--json", "-j", str(AT_ONCE), "--executor", "processes", "--workers", "1")
    )
    wait_until(lambda: held.received == ANSWERED + 2 * AT_ONCE)
    wait_until(lambda: team.query("SELECT count(*) FROM sessions") == [(ANSWERED,)])
    return process


def kill_all(team: Team) -> None:
    """Kill all programs of a run at the same time."""
    pids = [runner.pid for runner in team.runners()]
    assert len(pids) == 2
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            os.kill(pid, number)
    team.started[0].communicate()


def move_elsewhere(team: Team) -> None:
    """Let the runners be those of another machine, whose processes cannot be looked at."""
    change(team, "UPDATE runners SET place = 'elsewhere'")


def let_pass(team: Team, seconds: float) -> None:
    """Let time pass by the clock of the database: all that was noted was so much earlier."""
    with closing(Store.open(team.store)) as store, store.writing() as connection:
        past = int(1e6 * seconds)
        connection.execute("UPDATE shared_runs SET started = started - ?", (past,))
        for id, text in connection.execute("SELECT id, counts FROM run_shares").fetchall():
            counts = json.loads(text)
            counts["noted"] -= past
            values = (json.dumps(counts), id)
            connection.execute("UPDATE run_shares SET counts = ? WHERE id = ?", values)


def change(team: Team, statement: str) -> None:
    with closing(Store.open(team.store)) as store, store.writing() as connection:
        connection.execute(statement)


def run_in_progress(team: Team) -> str:
    with closing(Store.open(team.store)) as store:
        (run,) = store.find_shared_runs()
        return run.id


def test_the_next_run_records_it_as_interrupted_with_what_was_asked(team: Team, held: Held) -> None:
    begin(team, held)
    shared = run_in_progress(team)
    kill_all(team)
    held.open()
    code, document, err = team.run()
    newest, older = team.read("log")["runs"]
    assert (code, document["status"], newest["status"]) == (0, "complete", "complete")
    recorded = f"recorded as interrupted, with {ANSWERED} answers and {ANSWERED} verdicts"
    assert recorded in err
    assert older["run"][:8] in err
    assert (older["status"], older["asked"], older["reused"]) == ("interrupted", ANSWERED, 0)
    assert (older["verdicts"]["pass"], older["verdicts"]["pending"]) == (ANSWERED, ROWS - ANSWERED)
    assert older["cost"] == pytest.approx(ANSWERED * PRICE)
    assert older["started"] <= older["ended"] <= newest["started"]
    assert (newest["asked"], newest["reused"]) == (ROWS - ANSWERED, ANSWERED)
    assert sum(team.asked.values()) <= ROWS + 2 * AT_ONCE
    assert team.query("SELECT count(*) FROM sessions") == [(ROWS,)]
    process = team.start("run", "--join", shared)
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, "a launcher would start it again"
    assert f"run {shared[:8]} is over: it is recorded as {older['run'][:8]}, interrupted" in err
    assert " run' does what is left" in err


def test_who_joins_the_newest_run_does_not_get_it_but_by_its_id_it_goes_on(
    team: Team, held: Held
) -> None:
    begin(team, held)
    shared = run_in_progress(team)
    kill_all(team)
    held.open()
    joined = team.start("run", "--join", "@")
    _, err = joined.communicate(timeout=SECONDS)
    assert joined.returncode == 2
    assert "error: no run is in progress in the store" in err
    assert f"hint: '--join {shared[:8]}' continues an abandoned run" in err
    joined = team.start("run", "--join", "x")
    assert f"hint: those that can be joined are {shared[:8]}\n" in joined.communicate()[1]
    joined = team.start("run", "--join", shared[:8], "--json")
    out, err = joined.communicate(timeout=SECONDS)
    assert (joined.returncode, json.loads(out)["status"]) == (0, "complete"), err
    assert f"no other program is working on run {shared[:8]}: this one continues it" in err
    (run,) = team.read("log")["runs"]
    assert (run["status"], run["asked"], run["reused"]) == ("complete", ROWS, 0)
    assert run["cost"] == pytest.approx(ROWS * PRICE)
    assert sum(team.asked.values()) <= ROWS + 2 * AT_ONCE
    joined = team.start("run", "--join", shared, "--json")
    out, err = joined.communicate(timeout=SECONDS)
    assert (joined.returncode, json.loads(out)["run"]) == (0, run["run"])
    assert (json.loads(out)["asked"], json.loads(out)["status"]) == (0, "complete")
    assert f"run {shared[:8]} is over: it is recorded as {run['run'][:8]}, complete" in err


def test_a_run_of_another_machine_is_recorded_after_a_time_by_the_clock_of_the_database(
    team: Team, held: Held
) -> None:
    begin(team, held)
    shared = run_in_progress(team)
    kill_all(team)
    held.open()
    move_elsewhere(team)
    let_pass(team, SILENT_SECONDS)
    joined = team.start("run", "--join", "@")
    assert f"'--join {shared[:8]}' continues" in joined.communicate(timeout=SECONDS)[1]
    assert "recorded" not in team.run("--limit", "1")[2]
    assert run_in_progress(team) == shared
    let_pass(team, ABANDONED_SECONDS)
    assert "recorded as interrupted" in team.run()[2]
    assert [run["status"] for run in team.read("log")["runs"]].count("interrupted") == 1


def test_a_program_that_wakes_notices_that_its_run_was_recorded(team: Team, held: Held) -> None:
    process = begin(team, held)
    pids = [runner.pid for runner in team.runners()]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    move_elsewhere(team)
    let_pass(team, ABANDONED_SECONDS)
    held.lasts = False
    code, document, err = team.run()
    assert (code, document["asked"]) == (0, ROWS - ANSWERED)
    assert "recorded as interrupted" in err
    assert team.runners() == []
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    # Before the answers to their calls come, they have noticed that they were given up: in the beat
    # in which they registered again, and by the next one they have drawn the conclusion.
    wait_until(lambda: len(team.runners()) == 2)
    beats = set(team.query("SELECT id, beat FROM runners"))
    wait_until(lambda: beats.isdisjoint(team.query("SELECT id, beat FROM runners")))
    held.open()
    out, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert json.loads(out)["status"] == "interrupted"
    assert "another program recorded this run as interrupted" in err
    assert sum(team.asked.values()) == ROWS + 2 * AT_ONCE, "only what was in flight"
    assert len(team.read("log")["runs"]) == 2
    wait_until(lambda: team.runners() == [])


def test_one_that_goes_on_is_not_recorded_by_another(team: Team, held: Held) -> None:
    process = begin(team, held)
    shared = run_in_progress(team)
    os.kill(process.pid, signal.SIGSTOP)
    let_pass(team, ABANDONED_SECONDS)
    with closing(Store.open(team.store)) as store:
        (seen,) = store.find_shared_runs()
        assert not seen.is_abandoned, "its process is here"
        assert not store.record_abandoned_run(seen._replace(shares=()), None)
        assert [run.id for run in store.find_shared_runs()] == [shared]
    os.kill(process.pid, signal.SIGCONT)
    held.open()
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, json.loads(out)["status"]) == (0, "complete"), err
    assert set(team.asked.values()) == {1}


@pytest.mark.parametrize("location", ["postgresql"], indirect=True)
def test_a_run_that_nobody_could_join_is_only_removed(team: Team, held: Held) -> None:
    tree(team.root, {"prompts/helper.md": f"Use sk-proj-{'a1B2' * 12} here.\n"})
    process = team.start("run", "--json", "-j", str(AT_ONCE))
    wait_until(lambda: held.received == ANSWERED + AT_ONCE)
    joined = team.start("run", "--join", "@")
    _, err = joined.communicate(timeout=SECONDS)
    assert joined.returncode == 2
    assert "cannot be joined: its settings, models or prompts contain " in err
    wait_until(lambda: team.query("SELECT count(*) FROM sessions") == [(ANSWERED,)])
    process.kill()
    process.wait()
    held.open()
    code, document, err = team.run()
    assert (code, document["asked"]) == (0, ROWS - ANSWERED)
    assert (
        f"an abandoned run is not recorded; its {ANSWERED} answers and {ANSWERED} "
        "verdicts are stored"
    ) in err
    assert len(team.read("log")["runs"]) == 1


def test_who_joins_when_nothing_is_left_does_not_record_the_run_of_others(
    team: Team, held: Held
) -> None:
    process = begin(team, held)
    with closing(Store.open(team.store)) as store:
        (begun,) = store.find_shared_runs()
        held.open()
        process.communicate(timeout=SECONDS)
        # It is in progress again, and the program that has begun it is this one.
        store.add_shared_run("f" * 32, begun.description, None)
        leases = Leases(store)
        leases.register()
        store.write_share("f" * 32, leases.runner.id, 0.0, 0.0, {LEADS: True})
        joined = team.start("run", "--join", "@", "--json")
        report = json.loads(joined.communicate(timeout=SECONDS)[0])
        assert (report["run"], report["asked"], joined.returncode) == (None, 0, 0)
        assert len(store.find_shared_runs()) == 1
        assert len(store.find_runs()) == 1
        leases.leave()
        store.remove_shared_runs(["f" * 32])
