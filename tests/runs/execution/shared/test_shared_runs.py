"""Runs that several programs carry out on one PostgreSQL server: paid once, and recorded once."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.store import Store
from evalstore.store.location import read_location
from tests import endpoint
from tests.builders import tree
from tests.forked_programs import RunningProgram, Starter
from tests.interfaces.cli.test_documents import SCHEMA
from tests.postgresql_server import PostgreSQLServer

pytestmark = pytest.mark.extended

ROWS = 60
PRICE = "costs: [{costPerCall: 0.01}]\n"


class Team:
    """A workspace with a store in PostgreSQL, and an endpoint that answers when it is let go."""

    def __init__(self, folder: Path, server: endpoint.Endpoint, url: str, start: Starter) -> None:
        self.url = url
        self._start = start
        self._server = server
        self.let_go = threading.Event()
        self._empty = folder / "empty"
        self._empty.mkdir()
        self._workspace = folder / "workspace"
        tree(
            self._workspace,
            {
                "evalstore.yaml": "candidates: [one]\nevaluators: [judge]\n",
                "providers/loopback.yaml": "code: loopback\ntype: openai-compatible\n"
                f"baseURL: {server.url}\nconcurrency: 4\n",
                "models/one.yaml": f"id: one\nprovider: loopback\n{PRICE}",
                "models/judge.yaml": f"id: judge\nprovider: loopback\n{PRICE}",
                "tests/numbers.md": "---\ndataset: numbers.jsonl\n---\n# User\n\nSay {{n}}.\n\n"
                "---\n\nIt must be a number.\n",
                "tests/numbers.jsonl": "".join(
                    json.dumps({"n": f"number {n}."}) + "\n" for n in range(ROWS)
                ),
            },
        )
        server.reply = self._reply

    def _reply(self, request: dict[str, Any]) -> str:
        assert self.let_go.wait(60)
        return json.dumps({"pass": True, "feedback": endpoint.echo(request)})

    @property
    def asked(self) -> Counter[str]:
        """Return how often each question was asked; judges are not counted."""
        texts = (endpoint.echo(received.body) for received in self._server.received)
        return Counter(text for text in texts if text.startswith("Say ") and len(text) < 30)

    @property
    def workspace(self) -> Path:
        """Return the folder of the workspace."""
        return self._workspace

    def lead(self, *options: str, clock: float = 0) -> RunningProgram:
        """Begin a run; the clock of the program is so many seconds ahead."""
        arguments = ("--store", self.url, "run", "--json", "--fail-on", "none", *options)
        return self._start(*arguments, folder=self._workspace, clock=clock)

    def join(self, name: str = "@", *, clock: float = 0, **environment: Any) -> RunningProgram:
        """Take part in the run in progress, in a folder without a workspace."""
        arguments = ("--store", self.url, "run", "--join", name, "--json")
        return self._start(*arguments, folder=self._empty, clock=clock, **environment)

    def is_shared(self) -> bool:
        """Return whether a run is in progress."""
        try:
            with closing(Store.open(read_location(self.url))) as store:
                return bool(store.find_shared_runs())
        except Exception:  # noqa: BLE001 - the store may not be there yet
            return False

    def has_runners(self, count: int) -> Callable[[], bool]:
        """Return what is true once this many runners are at work."""

        def holds() -> bool:
            with closing(Store.open(read_location(self.url))) as store, store.snapshot() as seen:
                return bool(seen.execute("SELECT count(*) FROM runners").fetchall()[0][0] == count)

        return holds

    def all_call(self, programs: int) -> Callable[[], bool]:
        """Return what is true once so many programs wait for as many answers as they may."""
        return lambda: sum(self.asked.values()) == 4 * programs

    def begin(self, *options: str, joined: int = 2) -> list[RunningProgram]:
        """Begin a run and have others join it; nothing is answered until it is let go."""
        leader = self.lead(*options)
        leader.wait_until(self.is_shared)
        programs = [leader, *(self.join() for _ in range(joined))]
        programs[-1].wait_until(self.has_runners(joined + 1))
        return programs


@pytest.fixture
def team(tmp_path: Path, start: Starter, postgresql_server: PostgreSQLServer) -> Iterator[Team]:
    """A team; what it leaves behind must be sound, and nothing of runs in progress."""
    url = postgresql_server.url()
    with endpoint.running() as server:
        made = Team(tmp_path, server, url, start)
        yield made
        made.let_go.set()
    with closing(Store.open(read_location(url))) as store:
        assert check_store(store)[1] == []
        with store.snapshot() as seen:
            for table in ("work", "leases", "runners", "shared_runs", "run_shares"):
                left = seen.execute(f"SELECT count(*) FROM {table}").fetchall()
                assert (table, left) == (table, [(0,)])


def reports(programs: list[RunningProgram]) -> list[Any]:
    """Return what programs printed, once they have ended well."""
    ended = [program.finish() for program in programs]
    return [json.loads(out) if code == 0 else pytest.fail(err) for code, out, err in ended]


def test_three_programs_do_one_run_and_pay_each_call_once(team: Team) -> None:
    programs = team.begin()
    programs[0].wait_until(team.all_call(3))  # else the first may do it all on a busy machine
    team.let_go.set()
    led, *joined = reports(programs)
    assert set(team.asked.values()) == {1}
    assert len(team.asked) == ROWS
    assert (led["asked"], led["judged"], led["reused"]) == (ROWS, ROWS, 0)
    assert led["verdicts"]["pass"] == ROWS
    assert led["cost"] == pytest.approx(2 * ROWS * 0.01)
    assert all(report["asked"] > 0 for report in joined)
    assert sum(report["asked"] for report in joined) < ROWS
    with closing(Store.open(read_location(team.url))) as store:
        (run,) = store.find_runs()
        assert (run.id, run.status, run.asked) == (led["run"], "complete", ROWS)


def test_one_limit_of_cost_holds_for_all_programs(team: Team) -> None:
    programs = team.begin("--max-cost", "0.5")
    team.let_go.set()
    code, _, err = programs[0].finish()
    assert code == 4, err
    for program in programs[1:]:
        assert program.finish()[0] == 0
    with closing(Store.open(read_location(team.url))) as store:
        (run,) = store.find_runs()
        costs: dict[str, float] = {}
        store.find_samples(store.find_questions("", most=1000), costs)
        sessions = sum(costs.values())
    assert run.status == "over budget"
    assert run.cost is not None
    assert run.cost <= 0.5
    assert run.cost == pytest.approx(0.5, abs=0.03)
    assert sessions <= 0.5
    assert run.asked == sum(team.asked.values())
    assert run.reused == 0
    assert run.verdicts["pass"] + run.verdicts["pending"] == ROWS


def test_one_time_limit_counts_from_the_beginning_of_the_run_for_all_programs(team: Team) -> None:
    programs = team.begin("--max-time", "15", joined=1)
    with closing(Store.open(read_location(team.url))) as store, store.writing() as connection:
        # By the clock of the database, the run has begun earlier.
        connection.execute("UPDATE shared_runs SET started = started - 15000000")
    late = team.join()
    code, out, err = late.finish()
    assert (code, json.loads(out)["asked"], json.loads(out)["run"]) == (0, 0, None)
    assert err.startswith("time is up (0 s): finishing what is in flight")
    for program in programs:
        program.wait_until(lambda program=program: "time is up (" in program.err)  # type: ignore[misc]
    assert float(programs[1].err.partition("(")[2].partition(" s)")[0]) < 15, "it came later"
    team.let_go.set()
    code, out, _ = programs[0].finish()
    led, joined = json.loads(out), json.loads(programs[1].finish()[1])
    assert (code, led["status"]) == (4, "over budget")
    assert set(team.asked.values()) == {1}
    assert 0 < len(team.asked) == led["asked"] <= 2 * 4
    assert joined["run"] is None
    assert led["verdicts"]["pending"] >= ROWS - led["asked"]
    with closing(Store.open(read_location(team.url))) as store:
        (run,) = store.find_runs()
        assert (run.id, run.status) == (led["run"], "over budget")


def test_what_a_killed_program_had_taken_is_done_by_the_others(team: Team) -> None:
    programs = team.begin()
    killed = programs[-1]
    killed.send(signal.SIGKILL)
    team.let_go.set()
    led, joined = reports(programs[:-1])
    assert len(team.asked) == ROWS
    # Its calls in flight are lost, four at most, as for each program.
    assert sum(team.asked.values()) <= ROWS + 4
    assert led["verdicts"]["pass"] == ROWS
    assert joined["run"] is None


def test_a_run_goes_on_when_the_program_that_began_it_is_killed(team: Team) -> None:
    programs = team.begin()
    programs[0].send(signal.SIGKILL)
    team.let_go.set()
    ended = reports(programs[1:])
    assert len(team.asked) == ROWS
    assert sum(team.asked.values()) <= ROWS + 4
    recorded = [report for report in ended if report["run"]]
    assert recorded
    with closing(Store.open(read_location(team.url))) as store:
        (run,) = store.find_runs()
        assert {report["run"] for report in recorded} == {run.id}
        assert (run.status, run.verdicts["pass"]) == ("complete", ROWS)
        assert run.author == store.find_runs()[0].author


def test_a_program_that_is_stopped_for_a_while_loses_and_repeats_nothing(team: Team) -> None:
    programs = team.begin()
    programs[-1].send(signal.SIGSTOP)
    team.let_go.set()
    programs[0].wait_until(lambda: sum(team.asked.values()) >= ROWS - 30)
    programs[-1].send(signal.SIGCONT)
    led, *_ = reports(programs)
    assert set(team.asked.values()) == {1}
    assert led["verdicts"]["pass"] == ROWS


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_runner_that_is_interrupted_ends_and_the_others_complete_the_run(
    team: Team, number: signal.Signals
) -> None:
    programs = team.begin()
    programs[0].wait_until(team.all_call(3))
    programs[-1].send(number)
    programs[-1].wait_until(lambda: "interrupted: finishing" in programs[-1].err)
    team.let_go.set()
    code, out, err = programs.pop().finish()
    ended = json.loads(out)
    assert (code, ended["stopped"], ended["run"]) == (130, "interrupted", None), err
    led, joined = reports(programs)
    assert (led["status"], led["verdicts"]["pass"]) == ("complete", ROWS)
    assert joined["stopped"] is None
    assert set(team.asked.values()) == {1}


def test_status_names_a_run_in_progress_and_how_far_it_is(team: Team, start: Starter) -> None:
    programs = team.begin(joined=1)
    programs[0].wait_until(team.all_call(2))
    command = ("--store", team.url, "status")
    code, out, err = start(*command, folder=team.workspace).finish()
    assert code == 0, err
    with closing(Store.open(read_location(team.url))) as store:
        (shared,) = store.find_shared_runs()
    words = " ".join(out.split())
    assert f"Run {shared.id[:8]} is in progress, begun " in words
    so_far = f"0 of {ROWS} answers and 0 of {ROWS} verdicts so far"
    assert f", in 2 programs: {so_far}; " in words
    assert f"'evalstore run --join {shared.id[:8]}' takes part." in words
    wrong = start("--store", team.url, "run", "--join", "x", folder=team.workspace).finish()
    assert f"hint: those that can be joined are {shared.id[:8]}\n" in wrong[2]
    (run,) = json.loads(start(*command, "--json", folder=team.workspace).finish()[1])["inProgress"]
    assert (run["run"], run["programs"], run["joinable"]) == (shared.id, 2, True)
    jsonschema.validate([run], SCHEMA["$defs"]["status"]["properties"]["inProgress"])
    team.let_go.set()
    reports(programs)
    code, out, _ = start(*command, folder=team.workspace).finish()
    assert (code, "in progress" in out) == (0, False)


def test_a_run_in_progress_is_shown_and_has_no_results_yet(team: Team, start: Starter) -> None:
    programs = team.begin(joined=0)
    programs[0].wait_until(team.all_call(1))
    with closing(Store.open(read_location(team.url))) as store:
        (shared,) = store.find_shared_runs()
    name = shared.id[:8]

    def use(*words: str) -> tuple[int, str, str]:
        code, out, err = start("--store", team.url, *words, folder=team.workspace).finish()
        return code, " ".join(out.split()), " ".join(err.split())

    code, out, err = use("show", name)
    assert code == 0, err
    assert out.startswith(f"Run {name} is in progress, begun ")
    assert f", in 1 program: 0 of {ROWS} answers and 0 of {ROWS} verdicts so far; " in out
    assert out.endswith(f"'evalstore run --join {name}' takes part.")
    assert "evalstore status" in err
    document = json.loads(use("show", name, "--json")[1])
    jsonschema.validate(document, SCHEMA["$defs"]["show"])
    assert (document["kind"], document["id"]) == ("run in progress", shared.id)
    assert (document["programs"], document["toAsk"], document["judged"]) == (1, ROWS, 0)
    for words in (("diff", name), ("log", name), ("report", name), ("show", f"{name}:tests/t.md")):
        code, out, err = use(*words)
        assert (code, out) == (2, ""), words
        assert f"error: run {name} is in progress: it has no results until it is recorded" in err
        assert f"hint: 'evalstore show {name}' and 'evalstore status' show its progress" in err
    err = use("show", "@")[2]
    assert f"hint: run {name} is in progress: 'evalstore show {name}' shows its progress" in err
    team.let_go.set()
    reports(programs)
    with closing(Store.open(read_location(team.url))) as store:
        (run,) = store.find_runs()
    code, _, err = use("diff", name)
    assert (code, err) == (
        2,
        f"error: run {name} is over: it is recorded as {run.id[:8]}, complete "
        f"hint: use '{run.id[:8]}'",
    )


def test_there_must_be_a_run_to_join(team: Team) -> None:
    Store.open(read_location(team.url), create=True).close()
    code, _, err = team.join().finish()
    assert code == 2
    assert "no run is in progress in the store" in err
    assert "'evalstore run' begins one" in err
