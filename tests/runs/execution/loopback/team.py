"""A workspace whose models count their calls, with a store in each database, run by processes."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from evalstore.store.location import DatabaseAddress, StoreLocation
from tests import endpoint
from tests.builders import tree
from tests.zygote import Popen

SECONDS = 90
"""The most seconds to wait for anything: the machine may be busy."""
PRICE = 0.001
"""USD; of a call, whatever it says."""


class Runner(NamedTuple):
    """A program that takes part in a run."""

    pid: int
    leases: int


@dataclass
class Team:
    """The workspace, its server and its store."""

    root: Path
    server: endpoint.Endpoint
    store: StoreLocation
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def address(self) -> str:
        """The store, as `--store` names it."""
        return str(self.store)

    def write(self, cases: int, head: str = "", below: str = "") -> None:
        """Write a test with this many questions, and what comes below it."""
        rows = "".join(json.dumps({"n": number}) + "\n" for number in range(cases))
        body = f"---\ndataset: q.jsonl\n{head}---\n\n# 👤\n\nWhat is {{{{n}}}}?\n\n---\n\n{below}"
        tree(self.root, {"tests/q.jsonl": rows, "tests/q.md": body})

    def start(self, *arguments: str, folder: Path | None = None) -> subprocess.Popen[str]:
        """Start a command in a process group of its own."""
        place = ["-C", str(folder or self.root), "--store", self.address]
        place += ["--progress", "none"]
        process = Popen(
            [sys.executable, "-m", "evalstore", *place, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            start_new_session=True,
        )
        self.started.append(process)
        return process

    def run(self, *options: str) -> tuple[int, Any, str]:
        """Run to the end; the exit code, the document and the errors."""
        process = self.start("run", "--json", *options)
        out, err = process.communicate(timeout=SECONDS)
        assert out, err
        return process.returncode, json.loads(out), err

    def read(self, *arguments: str) -> Any:
        """The document of a command that only reads."""
        process = self.start(*arguments, "--json")
        out, err = process.communicate(timeout=SECONDS)
        assert out, err
        return json.loads(out)

    def query(self, statement: str) -> list[tuple[Any, ...]]:
        """The rows of a query; none as long as there is no store."""
        if isinstance(self.store, DatabaseAddress):
            import psycopg

            options: Any = self.store.options
            with psycopg.connect("", autocommit=True, **options) as connection:
                try:
                    connection.execute(f"SET search_path TO {self.store.schema}".encode())
                    return connection.execute(statement.encode()).fetchall()
                except psycopg.errors.UndefinedTable:
                    return []
        with closing(sqlite3.connect(self.store, timeout=SECONDS)) as connection:
            try:
                return connection.execute(statement).fetchall()
            except sqlite3.OperationalError:
                return []

    def runners(self) -> list[Runner]:
        """The live runners with the number of leases that each holds."""
        return [
            Runner(*row)
            for row in self.query(
                "SELECT pid, count(leases.id) FROM runners "
                "LEFT JOIN leases ON leases.runner = runners.id GROUP BY runners.id, pid"
            )
        ]

    @property
    def asked(self) -> Counter[str]:
        """How often each question was received."""
        return Counter(endpoint.echo(received.body) for received in self.server.received)

    def end_all(self) -> None:
        """Kill what a failed test has left."""
        for process in self.started:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


class Gate:
    """Holds all answers of a server until it is opened."""

    def __init__(self, server: endpoint.Endpoint) -> None:
        self._opened = threading.Event()
        server.reply = self._reply

    def open(self) -> None:
        """Let the answers go."""
        self._opened.set()

    def _reply(self, request: dict[str, Any]) -> str:
        assert self._opened.wait(SECONDS)
        return json.dumps({"said": endpoint.echo(request)})


def wait_until(holds: Callable[[], bool]) -> None:
    """Wait until something is true."""
    never = threading.Event()
    end = time.monotonic() + SECONDS
    while not holds():
        assert time.monotonic() < end
        never.wait(0.05)


def is_alive(pid: int) -> bool:
    """Whether a process runs, and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False


@contextmanager
def team_at(root: Path, store: StoreLocation) -> Iterator[Team]:
    """A workspace with one candidate, whose calls have a price."""
    # Of the 7 tokens of an answer, which are the most that it may have.
    costs = f"costs: [{{costPerPromptToken: 0, costPerCompletionToken: {PRICE / 7}}}]\n"
    with endpoint.running() as server:
        server.reply = lambda request: json.dumps({"said": endpoint.echo(request)})
        tree(
            root,
            {
                "evalstore.yaml": "candidates: [one]\nmaxTestOutputTokens: 7\n",
                "providers/loopback.yaml": "code: loopback\ntype: openai-compatible\n"
                f"baseURL: {server.url}\n",
                "models/one.yaml": f"id: one\nprovider: loopback\n{costs}",
            },
        )
        team = Team(root, server, store)
        try:
            yield team
        finally:
            team.end_all()
