"""A workspace in which every command has something to do, and a program that is loaded once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import main
from evalstore.store import Store
from evalstore.store.location import read_address
from tests import postgresql_server as postgresql
from tests.builders import tree
from tests.hostile.commands import root as root
from tests.hostile.commands import run as run
from tests.hostile.databases import STORE
from tests.hostile.forking import Case, Ended
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE
from tests.interfaces.cli.conftest import documents as documents
from tests.interfaces.cli.conftest import evalstore as evalstore

ROOT = Path(__file__).parents[2]

CALLS = {
    "clone": ("shared", "cloned"),
    "grep": ("warm",),
    "import": ("openai-evals", "source/capitals.jsonl"),
    "label": ("tests/weather.md::city=Rome", "pass"),
    "report": ("--markdown",),
    "tag": ("first",),
    "serve": ("--port", "70000"),  # a port that does not exist: it would not end
    "trust": ("check.py",),
}
"""What each command is called with, if it needs anything."""


FILES = {
    **WEATHER_WORKSPACE,
    "evalstore.yaml": WEATHER_WORKSPACE["evalstore.yaml"] + "remotes: {origin: shared}\n",
    "source/capitals.jsonl": '{"input": "Capital of Norway?", "ideal": "Oslo"}\n',
    "check.py": "def check(answer):\n    return True\n",
}


_CARRY_OUT = frozenset(
    {"run", "evalstore", "documents", "program", "workspace", "server", "trapped"}
)
"""The fixtures of tests that carry out commands, which may open a store."""
_NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"
"""The address of a store that cannot be opened."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let each test that carries out commands have a store in a file, and one in PostgreSQL.

    One that is marked `opens_no_store` is carried out once, with a store that nobody can open.
    """
    if _CARRY_OUT.isdisjoint(metafunc.fixturenames):
        return
    databases = ["sqlite", "postgresql"]
    if metafunc.definition.get_closest_marker("opens_no_store"):
        databases = ["none"]
    elif marker := metafunc.definition.get_closest_marker("one_database"):
        assert " " in marker.args[0], f"{metafunc.definition.name}: no reason"
        databases = ["sqlite"]
    metafunc.parametrize("database", databases, indirect=True)


@pytest.fixture(autouse=True)
def database(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return in which database the store of all commands is: in a file, unless it is a parameter.

    Commands take the address from the environment. The store is empty: those that only read
    create a file, but no tables on a server.
    """
    name: str = getattr(request, "param", "sqlite")
    if name == "postgresql":
        server: postgresql.PostgreSQLServer = request.getfixturevalue("postgresql_server")
        url = server.url()
        Store.open(read_address(url), create=True).close()
        monkeypatch.setenv(STORE, url)
    elif name == "none":
        monkeypatch.setenv(STORE, _NOWHERE)
    return name


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The workspace of the commands' tests, with something to import and something to trust."""
    folder = tree(tmp_path / "w", FILES)
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture(scope="session")
def run_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after a run; it is not to be changed."""
    folder = tree(tmp_path_factory.mktemp("run") / "w", FILES)
    assert main(["-C", str(folder), "run", "-q"]) == 1
    assert main(["-C", str(folder), "push", "-q"]) == 0
    assert main(["-C", str(folder), "push", "made.bundle", "-q"]) == 0
    shutil.copy(folder / ".evalstore/store.db", folder / "other.db")
    return folder


@pytest.fixture
def after_a_run(
    run_once: Path, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """The workspace after a run."""
    folder = tmp_path / "w"
    shutil.copytree(run_once, folder)
    monkeypatch.chdir(folder)
    if database == "postgresql":
        shutil.rmtree(folder / ".evalstore")
        assert main(["pull", "other.db", "-q"]) == 0
    return folder


class Program:
    """The program, loaded once for many commands."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def run(
        self,
        *arguments: str,
        folder: Path | None = None,
        streams: str = "plain",
        killed_at: int | None = None,
        **environment: str,
    ) -> Ended:
        """Run a command in a folder; by default the current one."""
        kept = {name: os.environ[name] for name in ("HOME", STORE) if name in os.environ}
        environment = {**kept, **environment}
        case = Case(arguments, str(folder or Path.cwd()), environment, streams, killed_at)
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))


@pytest.fixture(scope="session")
def program() -> Iterator[Program]:
    """The program, as the shell would start it."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.hostile.forking"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        yield Program(process)
