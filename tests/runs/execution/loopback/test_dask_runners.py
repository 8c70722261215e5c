"""`run --executor dask`: a cluster of two workers takes part; dask sees neither data nor keys."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.runs.runners import find_secrets
from evalstore.store import Store
from evalstore.store.location import read_address
from tests.postgresql_server import PostgreSQLServer
from tests.runs.execution.loopback.team import (
    PRICE,
    SECONDS,
    Gate,
    Team,
    is_alive,
    team_at,
    wait_until,
)
from tests.zygote import Popen

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(
        importlib.util.find_spec("distributed") is None, reason="distributed is not installed"
    ),
]

ROOT = Path(__file__).parents[4]
USUAL_PORT = 8787
"""Of a scheduler's web server."""
JSON = "~~~checks\n- json:\n~~~\n"


class Cluster:
    """A scheduler with workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.log = folder / "log"
        self.processes: list[subprocess.Popen[bytes]] = []
        ports = ("--port", "0", "--dashboard-address", "127.0.0.1:0", "--no-dashboard")
        self._start("scheduler", "--host", "127.0.0.1", *ports)
        wait_until(lambda: self._file.exists() and self._file.read_text().endswith("}"))

    @property
    def address(self) -> str:
        """Where the scheduler is."""
        address: str = json.loads(self._file.read_text())["address"]
        return address

    def add_worker(self) -> subprocess.Popen[bytes]:
        """Start a worker that runs two tasks at once."""
        return self._start("worker", "--nthreads", "2", "--no-nanny", "--no-dashboard")

    def _start(self, role: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", f"distributed.cli.dask_{role}"]
        with self.log.open("ab") as log:
            process = Popen(
                [*command, *options, "--scheduler-file", str(self._file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )
        self.processes.append(process)
        return process

    def end(self) -> None:
        """End all."""
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@contextmanager
def running(folder: Path) -> Iterator[Cluster]:
    cluster = Cluster(folder)
    try:
        cluster.add_worker()
        cluster.add_worker()
        wait_until(lambda: cluster.log.read_text().count("Registered to:") == 2)
        yield cluster
    finally:
        cluster.end()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    """A scheduler and two workers."""
    (tmp_path / "dask").mkdir()
    with running(tmp_path / "dask") as made:
        yield made


@pytest.fixture
def team(tmp_path: Path, postgresql_server: PostgreSQLServer) -> Iterator[Team]:
    """A workspace with a store in PostgreSQL; what it leaves behind must be sound."""
    location = read_address(postgresql_server.url())
    with team_at(tmp_path / "w", location) as made:
        yield made
    with closing(Store.open(location)) as store:
        assert check_store(store)[1] == []
        assert store.find_shared_runs() == []


def launch(cluster: Cluster, workers: int = 2) -> tuple[str, ...]:
    return ("--executor", "dask", "--scheduler", cluster.address, "--workers", str(workers))


def at_work(team: Team) -> set[int]:
    return {runner.pid for runner in team.runners() if runner.leases}


def test_two_workers_run_the_example(team: Team, cluster: Cluster, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "example", tmp_path / "example")
    team.root = tmp_path / "example"
    code, document, err = team.run(*launch(cluster), "--fail-on", "none")
    assert (code, document["status"], document["asked"]) == (0, "complete", 68), err
    (run,) = team.read("log")["runs"]
    assert (run["asked"], run["judged"]) == (document["asked"], document["judged"])
    code, document, err = team.run("--fail-on", "none")
    assert (document["asked"], document["judged"]) == (0, 0), err


def test_workers_ask_each_question_once_and_the_run_is_one(team: Team, cluster: Cluster) -> None:
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *launch(cluster))
    workers = {worker.pid for worker in cluster.processes[1:]}
    wait_until(lambda: at_work(team) == {process.pid, *workers})
    gate.open()
    out, err = process.communicate(timeout=SECONDS)
    document = json.loads(out)
    assert (process.returncode, err) == (0, "")
    assert (document["status"], document["asked"]) == ("complete", 300)
    assert (len(team.asked), set(team.asked.values())) == (300, {1})
    (run,) = team.read("log")["runs"]
    assert run["cost"] == pytest.approx(300 * PRICE)


def test_a_worker_that_comes_later_takes_part_and_one_may_go(team: Team, cluster: Cluster) -> None:
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *launch(cluster, workers=5))
    wait_until(lambda: len(team.runners()) == 5)
    late = cluster.add_worker()
    wait_until(lambda: late.pid in at_work(team))
    held = sum(runner.leases for runner in team.runners() if runner.pid == late.pid)
    late.kill()
    late.wait()
    gate.open()
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, json.loads(out)["status"]) == (0, "complete"), err
    assert len(team.asked) == 300
    assert len([times for times in team.asked.values() if times > 1]) <= held
    assert team.query("SELECT count(*) FROM sessions") == [(300,)]


def test_the_run_goes_on_when_all_workers_are_lost(team: Team, cluster: Cluster) -> None:
    team.write(200, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", *launch(cluster))
    first, second = cluster.processes[1:]
    wait_until(lambda: at_work(team) == {process.pid, first.pid, second.pid})
    for worker in (first, second):
        worker.kill()
        worker.wait()
    gate.open()
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, "Traceback" in err) == (0, False), err
    assert "200 pass" in out
    assert team.query("SELECT count(*) FROM sessions") == [(200,)]


def test_a_scheduler_that_is_lost_is_told_and_the_run_goes_on(team: Team, cluster: Cluster) -> None:
    team.write(200, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", *launch(cluster))
    scheduler, *workers = cluster.processes
    wait_until(lambda: at_work(team) == {process.pid, *(worker.pid for worker in workers)})
    address = cluster.address
    scheduler.kill()
    scheduler.wait()
    assert process.stderr is not None
    assert process.stderr.readline() == (
        f"the connection to the scheduler '{address}' was lost: if it has ended, its workers end "
        "within a minute, and this program does the rest\n"
    )
    gate.open()
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, "scheduler" in err) == (0, False), err
    assert "200 pass" in out
    assert team.query("SELECT count(*) FROM sessions") == [(200,)]


def test_workers_finish_a_run_whose_driver_has_died_and_it_can_be_joined(
    team: Team, cluster: Cluster, tmp_path: Path
) -> None:
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *launch(cluster))
    workers = {worker.pid for worker in cluster.processes[1:]}
    wait_until(lambda: at_work(team) == {process.pid, *workers})
    process.kill()
    process.wait()
    (tmp_path / "empty").mkdir()
    joined = team.start("run", "--join", "@", folder=tmp_path / "empty")
    wait_until(lambda: joined.pid in at_work(team))
    gate.open()
    assert joined.wait(SECONDS) == 0
    wait_until(lambda: team.query("SELECT count(*) FROM runs") == [(1,)])
    wait_until(lambda: team.runners() == [])
    (run,) = team.read("log")["runs"]
    assert (run["status"], len(team.asked)) == ("complete", 300)
    assert team.query("SELECT count(*) FROM sessions") == [(300,)]


def test_ctrl_c_ends_the_tasks_and_loses_no_answer(team: Team, cluster: Cluster) -> None:
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start("run", "--json", *launch(cluster, workers=6))
    workers = {worker.pid for worker in cluster.processes[1:]}
    wait_until(lambda: at_work(team) == {process.pid, *workers})
    os.killpg(process.pid, signal.SIGINT)
    gate.open()
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert err == "interrupted: finishing what is in flight for up to 10 s (again to stop now)\n"
    assert at_work(team) == set()
    assert team.query("SELECT count(*) FROM sessions") == [(len(team.server.received),)]
    (run,) = team.read("log")["runs"]
    assert (run["status"], run["asked"]) == ("interrupted", len(team.server.received))


def test_the_password_of_the_store_is_not_sent_to_dask(team: Team, cluster: Cluster) -> None:
    team.write(40, below=JSON)
    secret = "correct-horse-battery"
    address = team.address.replace("://postgres@", f"://postgres:{secret}@")
    process = team.start("run", "--json", *launch(cluster), "--store", address)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, json.loads(out)["status"]) == (0, "complete")
    assert err == (
        "the password of the store is not sent through dask: each worker needs PGPASSWORD or "
        "~/.pgpass\n"
    )
    assert secret not in cluster.log.read_text()
    assert secret not in str(team.query("SELECT description FROM shared_runs"))


@pytest.mark.parametrize("option", ["password", "sslpassword", "oauth_client_secret"])
def test_a_worker_uses_the_secrets_of_the_same_address_only(option: str) -> None:
    shown = "postgresql://ann@db/evals?schema=team"
    known = f"{shown}&{option}=correct-horse"
    assert str(read_address(known)) == shown
    assert find_secrets(shown, known) == known
    for other in (known.replace("@db", "@other"), known.replace("team", "mine"), shown[:-1], ""):
        assert find_secrets(shown, other) == shown
    assert find_secrets(shown, "postgresql://[/?") == shown


def test_a_cluster_of_this_machine_is_started_with_the_password_of_the_store_and_ended(
    tmp_path: Path, postgresql_server: PostgreSQLServer
) -> None:
    secret = "correct-horse-battery"
    with (
        postgresql_server.needing_password("keeper", secret) as url,
        closing(Store.open(read_address(url), create=True)),
        team_at(tmp_path / "w", read_address(url)) as team,
        socket.socket() as usual,
    ):
        team.write(300, below=JSON)
        gate = Gate(team.server)
        with suppress(OSError):  # somebody else has it
            usual.bind(("127.0.0.1", USUAL_PORT))
        usual.listen()
        process = team.start(
            *("run", "--json", "--executor", "dask", "--scheduler", "local", "--workers", "2"),
            *("--store", url),
        )
        wait_until(lambda: len(at_work(team)) == 3)
        pids = at_work(team)
        gate.open()
        out, err = process.communicate(timeout=SECONDS)
        assert (process.returncode, err, json.loads(out)["asked"]) == (0, "", 300)
        assert (len(team.asked), set(team.asked.values())) == (300, {1})
        assert not any(map(is_alive, pids))
        assert secret not in str(team.query("SELECT content FROM runs"))
        with closing(Store.open(read_address(url))) as store:
            assert check_store(store)[1] == []
            assert store.find_shared_runs() == []


def test_ctrl_c_ends_the_workers_of_this_machine_without_a_word_of_them(team: Team) -> None:
    """A terminal sends SIGINT to all processes of the group."""
    team.write(300, below=JSON)
    gate = Gate(team.server)
    process = team.start(
        *("run", "--json", "--executor", "dask", "--scheduler", "local", "--workers", "2")
    )
    wait_until(lambda: len(at_work(team)) == 3)
    pids = at_work(team)
    os.killpg(process.pid, signal.SIGINT)
    gate.open()
    _, err = process.communicate(timeout=SECONDS)
    assert process.returncode == 130
    assert err == "interrupted: finishing what is in flight for up to 10 s (again to stop now)\n"
    assert not any(map(is_alive, pids))


def test_a_scheduler_that_is_not_there_is_an_error_before_anything_is_paid(team: Team) -> None:
    team.write(3, below=JSON)
    options = ("--executor", "dask", "--scheduler", "tcp://127.0.0.1:1")
    process = team.start("run", *options)
    out, err = process.communicate(timeout=SECONDS)
    assert (process.returncode, out) == (2, "")
    error, hint = err.splitlines()
    assert error.startswith("error: the scheduler 'tcp://127.0.0.1:1' cannot be reached: OSError")
    assert hint.startswith("hint: start one with 'dask scheduler'")
    assert team.server.received == []
