"""Law 7: a killed run loses at most the calls in flight, and running again finishes it.

The moment is chosen by what the server has received, never by a clock.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalstore.exchange.sync.fsck import fsck
from evalstore.interfaces.cli.main import main
from evalstore.planning.options import Location, SelectionOptions
from evalstore.runs.status.status import status as status
from evalstore.store import leases
from evalstore.store.location import StoreLocation
from tests import endpoint
from tests.builders import tree
from tests.forked_programs import RunningProgram, Starter
from tests.stored_rows import Rows, is_there, locate, read_rows

ROOT = Path(__file__).parent.parent.parent
AT_ONCE = 4
QUESTIONS = 30


class Server:
    """A loopback server that can hold back its answers and that knows how far it is."""

    def __init__(self, server: endpoint.Endpoint) -> None:
        self.url = server.url
        self._endpoint = server
        self.received = 0
        self.latency = 0.0
        """Seconds before each answer."""
        self.hold_from: int | None = None
        """Requests from this number on get no answer."""
        self._changed = threading.Condition()
        server.reply = self._reply

    def _reply(self, body: dict[str, Any]) -> str:
        with self._changed:
            self.received += 1
            number = self.received
            self._changed.notify_all()
            self._changed.wait_for(lambda: self.hold_from is None or number < self.hold_from, 60)
        self._endpoint.closing.wait(self.latency)
        if body["model"] == "judge":
            return '{"pass": true, "feedback": "good"}'
        return f"Answer to {body['messages'][-1]['content']}"

    def wait_for(self, received: int) -> None:
        """Wait until so many requests have come in."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.received >= received, 60)

    def release(self) -> None:
        """Answer everything."""
        with self._changed:
            self.hold_from = None
            self._changed.notify_all()


@pytest.fixture
def server() -> Iterator[Server]:
    with endpoint.running() as running:
        server = Server(running)
        yield server
        server.release()


def store_of(place: Path) -> StoreLocation:
    """Where the store of a workspace is."""
    return locate(place, os.environ.get("EVALSTORE_STORE"))


def where(place: Path) -> Location:
    """What commands are told of a workspace."""
    return Location(place, store=os.environ.get("EVALSTORE_STORE"))


@pytest.fixture(autouse=True)
def _database(store_url: str | None) -> None:
    """Run every test over both databases."""


@pytest.fixture
def place(folder: Path, server: Server) -> Path:
    """A workspace with `QUESTIONS` questions."""
    return workspace(folder, server, QUESTIONS)


def workspace(folder: Path, server: Server, questions: int) -> Path:
    """A workspace with so many questions, each judged once."""
    cities = "".join(f"  - {{city: City{number}}}\n" for number in range(questions))
    settings = {
        "candidates": ["first"],
        "evaluators": ["judge"],
        "concurrency": AT_ONCE,
        "retries": 0,
    }
    return tree(
        folder,
        {
            "evalstore.yaml": json.dumps(settings),
            "providers/loopback.yaml": json.dumps(
                {"code": "loopback", "type": "openai-compatible", "baseURL": server.url}
            ),
            "models/first.yaml": "id: first\nprovider: loopback\n",
            "models/judge.yaml": "id: judge\nprovider: loopback\n",
            "tests/cities.md": f"---\nreplacements:\n{cities}---\n# 👤\n\nIs {{{{city}}}} large?\n"
            "\n---\n\nExpect an answer about {{city}}.\n",
        },
    )


def popen(place: Path) -> subprocess.Popen[str]:
    """The program from its first moment on."""
    return subprocess.Popen(
        [sys.executable, "-m", "evalstore", "-C", str(place), "run", "--json"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


Run = Callable[[], RunningProgram]


@pytest.fixture
def run(place: Path, start: Starter) -> Run:
    """Start a run of the workspace."""
    return lambda: start("-C", str(place), "run", "--json")


def finish(running: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = running.communicate(timeout=300)
    return running.returncode, out, err


def finished(place: Path) -> Rows:
    """Every stored session and evaluation."""
    rows = read_rows(store_of(place))
    return {key: row for key, row in rows.items() if key[0] in ("sessions", "evaluations")}


def unexpected(err: str) -> list[str]:
    """The lines of an error output but those on progress, and on a run that was killed before."""
    kinds = ("asked ", "an abandoned run is recorded as interrupted, with ")
    return [line for line in err.splitlines() if not line.startswith(kinds)]


def stored(place: Path) -> tuple[int, int]:
    """How many sessions and evaluations there are."""
    tables = [table for table, _ in finished(place)]
    return tables.count("sessions"), tables.count("evaluations")


def test_killed_runs_lose_at_most_what_was_in_flight(place: Path, server: Server, run: Run) -> None:
    moments = sorted(random.Random(7).sample(range(1, 2 * QUESTIONS), 3))
    for moment in moments:
        running = run()
        # What is in flight at the kill is known: the server keeps its answers back.
        server.hold_from = server.received + 1 + moment // 2
        server.wait_for(server.hold_from)
        running.send(signal.SIGKILL)
        assert running.finish()[0] == -signal.SIGKILL
        server.release()
        assert fsck(where(place)).problems == []
    code, out, err = run().finish()
    assert (code, unexpected(err)) == (0, [])
    assert json.loads(out)["status"] == "complete"
    assert stored(place) == (QUESTIONS, QUESTIONS)
    assert server.received <= 2 * QUESTIONS + AT_ONCE * len(moments)
    assert status(where(place), SelectionOptions()).items == []
    assert fsck(where(place)).problems == []


@pytest.mark.parametrize(
    ("kills", "questions"),
    [
        pytest.param(4, 40, marks=pytest.mark.extended),
        pytest.param(50, 300, marks=pytest.mark.slow),
    ],
)
def test_many_kills_lose_no_more_each(
    folder: Path, server: Server, kills: int, questions: int
) -> None:
    """At any moment: while it starts, between calls, in the middle of a commit."""
    place = workspace(folder, server, questions)
    server.latency = 0.03
    chance = random.Random(11)
    kept: Rows = {}
    for number in range(kills):
        running = popen(place)
        while_starting = number % 5 == 0
        if not while_starting:
            server.wait_for(server.received + chance.randint(1, 16))
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(chance.uniform(0, 0.7 if while_starting else 0.05))
        running.kill()
        assert finish(running)[0] == -signal.SIGKILL
        if not is_there(store_of(place)):
            continue
        before, kept = kept, finished(place)
        assert before.items() <= kept.items()
        assert fsck(where(place)).problems == []
        assert server.received - len(kept) <= AT_ONCE * (number + 1)
    assert 0 < len(kept) < 2 * questions
    server.latency = 0
    code, out, err = finish(popen(place))
    assert (code, unexpected(err)) == (0, [])
    assert json.loads(out)["status"] == "complete"
    assert kept.items() <= finished(place).items()
    assert stored(place) == (questions, questions)
    assert server.received <= 2 * questions + AT_ONCE * kills
    assert status(where(place), SelectionOptions()).items == []
    assert fsck(where(place)).problems == []


def test_an_answer_is_safe_a_moment_after_it_came(place: Path, server: Server, run: Run) -> None:
    server.hold_from = 11
    running = run()
    server.wait_for(10 + AT_ONCE)
    # All workers wait for the server, so the writer has had its time: 20 ms are asked of it.
    while sum(stored(place)) < 10:
        assert not running.has_ended
    running.send(signal.SIGKILL)
    running.finish()
    assert sum(stored(place)) == 10


def test_one_interruption_lets_what_is_in_flight_finish(
    place: Path, server: Server, run: Run
) -> None:
    server.hold_from = 11
    running = run()
    server.wait_for(10 + AT_ONCE)
    running.send(signal.SIGINT)
    running.wait_until(lambda: running.err.endswith("\n"))
    assert running.err.startswith("interrupted: finishing what is in flight")
    server.release()
    code, out, _ = running.finish()
    assert code == 130
    report = json.loads(out)
    assert report["status"] == "interrupted"
    assert report["asked"] + report["judged"] == 10 + AT_ONCE == sum(stored(place))
    received = server.received
    code, out, _ = run().finish()
    assert code == 0
    assert server.received - received == 2 * QUESTIONS - 10 - AT_ONCE
    assert server.received == 2 * QUESTIONS


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only Linux tells who is stopped")
def test_what_a_stopped_run_leaves_is_taken_over(
    place: Path,
    server: Server,
    run: Run,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server.hold_from = 11
    stopped = run()
    server.wait_for(10 + AT_ONCE)
    stopped.send(signal.SIGSTOP)
    state = Path(f"/proc/{stopped.pid}/stat")
    stopped.wait_until(lambda: state.read_text().rpartition(") ")[2][0] == "T")
    server.release()  # its answers come while it cannot read them
    monkeypatch.setattr(leases, "HUNG_SECONDS", 0.0)  # as if it had been stopped for long
    assert main(["-C", str(place), "run", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["status"], report["verdicts"]["pass"]) == ("complete", QUESTIONS)
    stopped.send(signal.SIGCONT)
    code, out, _ = stopped.finish()
    assert (code, json.loads(out)["verdicts"]["pass"]) == (0, QUESTIONS)
    received = server.received
    assert main(["-C", str(place), "run", "--json"]) == 0
    assert server.received == received


def test_a_second_interruption_ends_at_once(place: Path, server: Server, run: Run) -> None:
    server.hold_from = 11
    running = run()
    server.wait_for(10 + AT_ONCE)
    running.send(signal.SIGINT)
    running.wait_until(lambda: running.err.endswith("\n"))
    running.send(signal.SIGINT)
    code, out, _ = running.finish()
    assert code == 130
    report = json.loads(out)
    assert report["status"] == "interrupted"
    assert report["asked"] + report["judged"] == 10 == sum(stored(place))
    assert fsck(where(place)).problems == []
