"""`run --executor processes`: no question is paid twice, and the run is one."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evalstore.core.runs import ProgressListener
from evalstore.exchange.sync.fsck import check_store
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.runs import run as run_command
from evalstore.runs.runners import JoinReport, join_run
from evalstore.store import Store
from evalstore.store.location import StoreLocation
from tests.builders import tree
from tests.runs.execution.loopback.team import (
    PRICE,
    SECONDS,
    Gate,
    Team,
    is_alive,
    team_at,
    wait_until,
)

pytestmark = pytest.mark.extended

JSON = "~~~checks\n- json:\n~~~\n"
LAUNCH = ("--executor", "processes", "--workers", "2")


@pytest.fixture
def team(tmp_path: Path, location: StoreLocation) -> Iterator[Team]:
    """A workspace with a store in each database; what it leaves behind must be sound."""
    with team_at(tmp_path / "w", location) as made:
        yield made
    with closing(Store.open(location)) as store:
        assert check_store(store)[1] == []
        assert store.find_shared_runs() == []


def all_are_at_work(team: Team) -> bool:
    runners = team.runners()
    return len(runners) == 3 and all(runner.leases for runner in runners)


def test_three_runners_ask_each_question_once_and_record_one_run(team: Team) -> None:
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *LAUNCH)
    wait_until(lambda: all_are_at_work(team))
    gate.open()
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, "")
    assert '"asked": 300' in out
    assert (len(team.asked), set(team.asked.values())) == (300, {1})
    (run,) = team.read("log")["runs"]
    assert (run["status"], run["asked"], run["judged"]) == ("complete", 300, 300)
    assert run["cost"] == pytest.approx(300 * PRICE)
    assert team.runners() == []


def test_the_limit_of_cost_holds_for_all_together(team: Team) -> None:
    team.write(300, below=JSON)
    code, document, _ = team.run(*LAUNCH, "--max-cost", str(100 * PRICE), "-j", "4")
    assert code == 4
    assert document["status"] == "over budget"
    assert set(team.asked.values()) == {1}
    assert 0 < len(team.asked) <= 100
    assert document["cost"] == pytest.approx(len(team.asked) * PRICE)
    assert document["verdicts"]["pass"] == len(team.asked)
    assert (document["reused"], document["saved"]) == (0, 0)


def test_the_work_of_a_runner_that_is_killed_is_done_by_the_others(team: Team) -> None:
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *LAUNCH)
    wait_until(lambda: all_are_at_work(team))
    victim = next(runner for runner in team.runners() if runner.pid != process.pid)
    os.kill(victim.pid, signal.SIGKILL)
    gate.open()
    out, err = process.communicate(timeout=SECONDS)
    ended = f"process {victim.pid} was ended by signal 9: the other runners do its work\n"
    assert (process.returncode, err) == (0, ended)
    assert '"status": "complete"' in out
    again = [times for times in team.asked.values() if times > 1]
    assert len(team.asked) == 300
    assert set(again) <= {2}, "only calls in flight of the one that was killed"
    assert len(again) <= victim.leases
    assert team.query("SELECT count(*) FROM sessions") == [(300,)]


def test_an_interruption_ends_all_and_loses_no_answer(team: Team) -> None:
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *LAUNCH)
    wait_until(lambda: all_are_at_work(team))
    pids = [runner.pid for runner in team.runners()]
    os.killpg(process.pid, signal.SIGINT)
    gate.open()
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert err == "interrupted: finishing what is in flight for up to 10 s (again to stop now)\n"
    assert not any(map(is_alive, pids))
    (run,) = team.read("log")["runs"]
    received = len(team.server.received)
    assert (run["status"], run["asked"], run["reused"]) == (
        "interrupted",
        received,
        0,
    )
    assert run["verdicts"]["pass"] == received
    assert team.query("SELECT count(*) FROM sessions") == [(len(team.server.received),)]


def test_runners_end_with_the_one_that_has_started_them_and_lose_no_answer(team: Team) -> None:
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *LAUNCH)
    wait_until(lambda: all_are_at_work(team))
    pids = [runner.pid for runner in team.runners()]
    (lost,) = (runner.leases for runner in team.runners() if runner.pid == process.pid)
    os.kill(process.pid, signal.SIGKILL)
    process.wait(SECONDS)
    gate.open()
    wait_until(lambda: not any(map(is_alive, pids)))
    (run,) = team.read("log")["runs"]
    received = len(team.server.received)
    assert run["status"] == "interrupted"
    assert received - lost <= run["asked"] <= received < 300
    code, document, _ = team.run()
    assert (code, document["status"], len(team.asked)) == (0, "complete", 300)


def test_slow_checks_of_stored_answers_are_divided(team: Team) -> None:
    team.write(120, below=JSON)
    team.run()
    team.write(120, below="~~~checks\n- contains: said\n~~~\n")
    code, document, _ = team.run(*LAUNCH)
    assert (code, document["asked"], document["judged"]) == (0, 0, 120)
    assert team.query("SELECT count(*) FROM evaluations") == [(240,)]


class JoinsBeforeTheFirstPlan:
    """Does all the work of a run before the program that has begun it does any."""

    def __init__(self, location: Location) -> None:
        self._location = location
        self.joined: JoinReport | None = None

    def start(self, run: str, _known: Collection[str]) -> None:
        """Take part in the run until nothing is left."""
        self.joined = join_run(self._location, run, RunOptions(), ProgressListener())

    def stop(self) -> None:
        """Do nothing: it has ended."""


def test_a_runner_that_is_done_first_leaves_the_record_to_the_one_that_has_begun(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    team.write(20, below=JSON)
    team.run()
    team.write(20, below="~~~checks\n- contains: said\n~~~\n")
    here = Location(team.root, store=team.address)
    launcher = JoinsBeforeTheFirstPlan(here)
    monkeypatch.setattr(run_command, "make_launcher", lambda *_: launcher)
    report = run_command.run(here, SelectionOptions(), RunOptions(yes=True), ProgressListener())
    assert launcher.joined
    assert (launcher.joined.run, launcher.joined.judged) == (None, 20)
    assert (report.status, report.judged) == ("complete", 20)


def test_processes_have_the_keys_of_the_workspace_but_not_its_options(
    team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = (team.root / "providers/loopback.yaml").read_text()
    (team.root / "providers/loopback.yaml").write_text(f"{provider}apiKeyEnvVar: DESK_KEY\n")
    (team.root / ".env").write_text("DESK_KEY=of-the-workspace\n")
    monkeypatch.setenv("EVALSTORE_RUN_MAX_COST", "1")
    team.write(200, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *LAUNCH)
    wait_until(lambda: all_are_at_work(team))
    gate.open()
    _, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err) == (0, "")
    keys = {received.headers.get("authorization") for received in team.server.received}
    assert keys == {"Bearer of-the-workspace"}


class OneFails:
    """Answers one request, so that its check fails, and holds the others until it is opened."""

    def __init__(self, team: Team) -> None:
        self.is_asked = threading.Semaphore(0)
        self._opened = threading.Event()
        self._one = threading.Semaphore(1)
        team.server.reply = self._reply

    def open(self) -> None:
        """Let the other answers go."""
        self._opened.set()

    def _reply(self, _request: object) -> str:
        assert self.is_asked.acquire(timeout=SECONDS)
        self.is_asked.release()
        if not self._one.acquire(blocking=False):
            assert self._opened.wait(SECONDS)
        return "something else"


def test_all_runners_stop_at_the_first_failure_of_one(team: Team) -> None:
    team.write(300, below="~~~checks\n- contains: said\n~~~\n")
    answers = OneFails(team)
    process = team.start("run", "--json", "-x", "-j", "1", *LAUNCH)
    wait_until(lambda: all_are_at_work(team) and len(team.server.received) == 3)
    answers.is_asked.release()
    stopped = '%"stopped_at_failure": true%'
    wait_until(lambda: bool(team.query(f"SELECT 1 FROM run_shares WHERE counts LIKE '{stopped}'")))
    beats = dict(team.query("SELECT pid, beat FROM runners"))
    wait_until(
        lambda: all(
            beat > beats[pid] + 1 for pid, beat in team.query("SELECT pid, beat FROM runners")
        )
    )
    answers.open()
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 1
    assert json.loads(out)["verdicts"]["fail"] == 3
    assert len(team.server.received) == 3
    assert team.runners() == []


APPLICATION = """\
import os, time

def answer(messages, **options):
    while not os.path.exists({go!r}):
        time.sleep(0.05)
    with open({note!r}, "a") as file:
        file.write(messages[-1]["content"] + "\\n")
    return '{{"said": 1}}'
"""


def test_an_application_that_is_trusted_is_run_by_all(
    team: Team, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_TRUST_FILE", str(tmp_path / "trusted"))
    go, note = tmp_path / "go", tmp_path / "note"
    tree(
        team.root,
        {
            "evalstore.yaml": "candidates: [bot]\n",
            "models/bot.yaml": "provider: python\ncode: apps/bot.py\n",
            "apps/bot.py": APPLICATION.format(go=str(go), note=str(note)),
        },
    )
    team.write(60, below=JSON)
    assert team.start("trust", "models/bot.yaml").wait(SECONDS) == 0
    process = team.start("run", "--json", *LAUNCH)
    wait_until(lambda: all_are_at_work(team))
    go.touch()
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, err, json.loads(out)["asked"]) == (0, "", 60)
    assert sorted(note.read_text().splitlines()) == sorted(f"What is {n}?" for n in range(60))
