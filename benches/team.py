"""Measures stores in PostgreSQL: programs that divide the work, and what a run costs the client."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from benches import endpoint, workspaces
from benches.measure import environment, program, run
from benches.table import Figure, figure
from tests.postgresql_server import PostgreSQLServer, find_programs, running_server

if TYPE_CHECKING:
    from benches.benches import Setting

_RUNNERS = (1, 4, 8)
_STORED, _LOST, _CPU = 1_000, 0.01, 2
"""Items a second with 4 programs, a part of the items, and times the CPU with SQLite."""
_AT_ONCE = (32, 8)
_MANY = "SELECT sum(seq_scan) FROM pg_stat_user_tables WHERE schemaname = %s AND relname = ANY(%s)"
_LARGE = {
    "sessions": (
        "id, content, question, started, token_limit",
        """'{"model": "m", "started": 1, "turns": [{"latency": 0.5}]}',
        decode(md5('q' || n), 'hex'), n, NULL""",
    ),
    "evaluations": (
        "id, content, subject, evaluation, evaluator, started, verdict, score",
        """'{"cost": {"usd": 0.1}}', decode(md5('s' || n), 'hex'), '\\x00', '\\x00', n, 'pass',
        NULL""",
    ),
}
"""Tables that are filled, with the columns and the values of a row."""


_CREATE = """\
import sys
from evalstore.store import Store
from evalstore.store.location import read_location

Store.open(read_location(sys.argv[1]), create=True).close()
"""


def team(setting: Setting) -> Iterator[Figure]:
    """Several programs on one server, and one program on each database."""
    if find_programs() is None:
        setting.notes.append("team: no PostgreSQL server is installed")
        return
    with running_server(fsync=True) as server:
        for runners in _RUNNERS:
            yield from _divide(setting, server, runners)
        yield from _compare(setting, server)
        yield from _watch(setting, server)


def _divide(setting: Setting, server: PostgreSQLServer, runners: int) -> Iterator[Figure]:
    """Several programs store the same items; each is stored once."""
    url = server.url()
    best, lost = 0.0, 0
    for _ in range(setting.first_times):
        seconds, done = _run_together(url, runners, setting.team)
        stored = sum(each["stored"] for each in done)
        if stored != setting.team:
            raise RuntimeError(f"{stored} items were stored, not {setting.team}")
        # Other programs on the machine only make it slower.
        best, lost = max(best, stored / seconds), max(lost, sum(each["lost"] for each in done))
        url = server.url()
    title = f"{setting.team:,} items, {runners} programs"
    least = _STORED if runners == 4 else None
    yield figure("team", f"{title}: stored a second, at best", best, "", least=least)
    if runners > 1:
        part = lost / setting.team
        yield figure("team", f"{title}: claims lost to others", 100 * part, "%", most=100 * _LOST)


def _run_together(url: str, runners: int, items: int) -> tuple[float, list[dict[str, int]]]:
    command = [sys.executable, "-m", "benches.team_runner", url, str(items)]
    programs = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(),
        )
        for _ in range(runners)
    ]
    try:
        pipes = [(started.stdin, started.stdout) for started in programs]
        for _, output in pipes:
            assert output is not None
            output.readline()
        began = time.perf_counter()
        for entry, _ in pipes:
            assert entry is not None
            entry.write("go\n")
            entry.flush()
        printed = [started.communicate()[0] for started in programs]
        return time.perf_counter() - began, [json.loads(text) for text in printed]
    finally:
        for started in programs:
            started.kill()


def _compare(setting: Setting, server: PostgreSQLServer) -> Iterator[Figure]:
    """The same first run on both databases: the CPU of the client."""
    questions = setting.loads[-1]
    root = setting.folder / "team"
    with endpoint.running(0) as url:
        workspaces.make_load(root, questions, url)
        for at_once in _AT_ONCE:
            costs: list[tuple[float, float]] = []
            for _ in range(setting.first_times):
                workspaces.forget(root)
                asking = ("run", "--quiet", "-j", str(at_once))
                floor = run(program(root, *asking))
                cost = run(program(root, "--store", server.url(), *asking))
                costs.append((cost.cpu, floor.cpu))
            cpu, least = sorted(costs, key=lambda pair: pair[0] / pair[1])[len(costs) // 2]
            title = f"first run, {questions:,} questions, -j {at_once}"
            yield figure("team", f"{title}, beside SQLite", cpu, "s", floor=least, most=_CPU)


def _watch(setting: Setting, server: PostgreSQLServer) -> Iterator[Figure]:
    """A first run in a store with many sessions reads no large table from end to end."""
    import psycopg

    questions = setting.loads[0]
    root, url = setting.folder / "watched", server.url("watched")
    with endpoint.running(0) as address:
        workspaces.make_load(root, questions, address)
        run([sys.executable, "-c", _CREATE, url])
        options: dict[str, Any] = {"host": server.host, "user": server.user, "dbname": "postgres"}
        with psycopg.connect(autocommit=True, **options) as connection:
            for name, (columns, values) in _LARGE.items():
                connection.execute(
                    f"INSERT INTO watched.{name} ({columns}) "
                    f"SELECT decode(md5('{name}' || n), 'hex'), {values} "
                    f"FROM generate_series(1, {setting.known_sessions}) AS numbers (n)"
                )
                connection.execute(f"ANALYZE watched.{name}")

        def scans() -> int:
            with psycopg.connect(**options) as connection:
                row = connection.execute(_MANY, ("watched", list(_LARGE))).fetchone()
            assert row is not None
            return int(row[0])

        before = scans()
        cost = run(program(root, "--store", url, "run", "--quiet"))
        title = f"run, {questions:,} questions, {setting.known_sessions:,} sessions in the store"
        yield figure("team", f"{title}: scans of whole tables", scans() - before, "", most=0)
        yield figure("team", f"{title}: CPU", cost.cpu, "s")
