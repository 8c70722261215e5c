"""A command that is killed while it writes leaves files that are whole, and can be repeated."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from evalstore.exchange.sync.fsck import check_store
from evalstore.interfaces.cli.main import main
from evalstore.store import Store
from evalstore.store.location import read_address
from evalstore.store.rows.row_tables import ROW_TABLES, VIEWS
from evalstore.store.schema import table_definitions
from evalstore.store.schema.table_definitions import COORDINATION
from tests.builders import tree
from tests.exchange.importers.ai_tester.test_project import PROJECT
from tests.hostile.conftest import CALLS, Program
from tests.hostile.databases import STORE, copy_store
from tests.hostile.forking import Ended
from tests.postgresql_server import PostgreSQLServer

SCHEMA = re.compile(rb"schema=store_\d+")
TEMPORARY = re.compile(r"\..*\.evalstore-[0-9a-f]{8}\.tmp(-journal)?")


@dataclass(frozen=True)
class Command:
    """A command that writes, with what it does when nothing disturbs it."""

    arguments: tuple[str, ...]
    exit_code: int = 0
    before: tuple[str, ...] = ()
    """A command that is run first."""
    edited: str = ""
    """A file that is edited before."""
    is_migration: bool = False


SAMPLES = [f"source/{letter}.jsonl" for letter in "abcdef"]
IMPORT = ("import", "openai-evals", "source")
COMMANDS = {
    "init": Command(("init", "new")),
    "init the example": Command(("init", "--example", "new")),
    "init from a project": Command(("init", "--from", "project", "project")),
    "import": Command(IMPORT),
    "import --force": Command((*IMPORT, "--force"), before=IMPORT, edited="tests/source/a.md"),
    "run": Command(("run",), 1),
    "judge": Command(("run", "--judge-only", "--refresh"), 1, before=("run",)),
    "label": Command(("label", *CALLS["label"]), before=("run",)),
    "trust": Command(("trust", *CALLS["trust"])),
    "status": Command(("status",), before=("run",)),
    "grep": Command(("grep", "warm"), before=("run",)),
    "migration": Command(("log",), before=("run",), is_migration=True),
}

WITHOUT_STORE = ("import", "import --force", "trust")

LATER = (
    *(f"VIEW {name}" for name in VIEWS),
    *(f"TABLE {table.name}" for table in (*COORDINATION, *ROW_TABLES.values())),
)
"""What migrations after the first have made."""
PutBack = Callable[[str], None]


@pytest.fixture
def put_back(
    request: pytest.FixtureRequest, database: str, monkeypatch: pytest.MonkeyPatch
) -> PutBack:
    """Return what gives commands a new store on the server, with the tables of a version.

    It has the rows of the first one. A file is put back with its folder.
    """
    first = os.environ.get(STORE, "")

    def make(version: str) -> None:
        if database == "postgresql":
            server: PostgreSQLServer = request.getfixturevalue("postgresql_server")
            monkeypatch.setenv(STORE, copy_store(first, server.url(), version=version))

    return make


@pytest.fixture
def prepared(workspace: Path) -> Path:
    """The workspace with more to import, and a project to adopt."""
    questions = "".join(f'{{"input": "Is {n} even?", "ideal": "yes"}}\n' for n in range(50))
    return tree(
        workspace,
        {
            **dict.fromkeys(SAMPLES, questions),
            **{f"project/{name}": content for name, content in PROJECT.items()},
        },
    )


@pytest.mark.parametrize("name", [name for name in COMMANDS if name not in WITHOUT_STORE])
def test_a_killed_command_leaves_whole_files(
    prepared: Path, program: Program, name: str, put_back: PutBack
) -> None:
    kill_and_repeat(program, prepared, COMMANDS[name], 2, put_back)


@pytest.mark.one_database("these commands open no store")
@pytest.mark.parametrize("name", WITHOUT_STORE)
def test_a_killed_command_without_a_store_leaves_whole_files(
    prepared: Path, program: Program, name: str, put_back: PutBack
) -> None:
    kill_and_repeat(program, prepared, COMMANDS[name], 2, put_back)


@pytest.mark.slow
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_at_any_step_leaves_whole_files(
    prepared: Path, program: Program, name: str, put_back: PutBack
) -> None:
    kill_and_repeat(program, prepared, COMMANDS[name], 60, put_back)


def kill_and_repeat(
    program: Program, workspace: Path, command: Command, kills: int, put_back: PutBack
) -> None:
    """Kill a command at steps that are spread evenly, and repeat it each time."""
    if command.before:
        main([*command.before, "-q"])
    if command.edited:
        (workspace / command.edited).write_text("edited")
    if command.is_migration and STORE not in os.environ:
        age(workspace / ".evalstore/store.db")
    version = "0004" if command.is_migration else table_definitions.HEAD
    shutil.copytree(workspace, workspace.parent / "before")
    before = contents(workspace)
    put_back(version)
    undisturbed = start(program, workspace, command, 0)
    assert undisturbed.exit_code == command.exit_code, undisturbed
    expected = contents(workspace)
    steps = undisturbed.steps
    assert steps
    kills = min(kills, steps)
    for number in range(kills):
        shutil.rmtree(workspace)
        shutil.copytree(workspace.parent / "before", workspace)
        put_back(version)
        step = 1 + (2 * number + 1) * steps // (2 * kills)
        killed = start(program, workspace, command, step)
        assert killed.exit_code == -signal.SIGKILL, (step, killed)
        for path, content in contents(workspace).items():
            assert content in (before.get(path), expected[path]), (step, path)
        again = start(program, workspace, command)
        assert again.exit_code == command.exit_code, (step, again)
        assert contents(workspace) == expected, step
        check_private_files(workspace)


def start(program: Program, workspace: Path, command: Command, step: int | None = None) -> Ended:
    state = workspace / "state"  # the list of trusted files is put back, too
    return program.run(
        *command.arguments, folder=workspace, killed_at=step, XDG_STATE_HOME=str(state)
    )


def contents(folder: Path) -> dict[str, bytes]:
    """All files by their paths, but for temporary ones and those that belong to a machine.

    The address of a store is always the same.
    """
    return {
        path.relative_to(folder).as_posix(): SCHEMA.sub(b"schema=store", path.read_bytes())
        for path in folder.rglob("*")
        if path.is_file()
        and not {".evalstore", "state"} & set(path.relative_to(folder).parts)
        and not TEMPORARY.fullmatch(path.name)
    }


def check_private_files(workspace: Path) -> None:
    """Whether the store is sound and what lies beside it can be read."""
    if STORE in os.environ:
        with closing(Store.open(read_address(os.environ[STORE]))) as stored:
            assert check_store(stored)[1] == []
    for store in workspace.rglob("store.db*"):
        assert ".tmp" not in store.name
        if not store.name.endswith(("-wal", "-shm")):
            with closing(sqlite3.connect(store)) as database:
                assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    for file in workspace.rglob(".evalstore/*.json"):
        json.loads(file.read_bytes())
    for trusted in workspace.rglob("state/evalstore/trusted"):
        assert [json.loads(line)["path"] for line in trusted.read_text().splitlines()]


def age(store: Path) -> None:
    """Make a store what the first version of the program made."""
    assert table_definitions.KNOWN[0] == "0001"
    with closing(sqlite3.connect(store)) as database:
        database.executescript("; ".join(f"DROP {later}" for later in LATER))
        database.execute("UPDATE alembic_version SET version_num = '0001'")
        database.commit()


@pytest.mark.opens_no_store
def test_nobody_reads_a_temporary_file(prepared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["check"])
    before = capsys.readouterr()
    name = ".weather.md.evalstore-0123abcd.tmp"
    tree(prepared, {f"tests/{name}": "# half", f"models/{name}": "id: ["})
    main(["check"])
    assert capsys.readouterr() == before


@pytest.mark.opens_no_store
def test_an_import_removes_what_a_killed_one_left(
    prepared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = ".a.md.evalstore-0123abcd.tmp"
    main(["import", "openai-evals", "source"])
    tree(prepared, {f"tests/source/{name}": "# half"})
    main(["import", "openai-evals", "source"])
    assert not (prepared / "tests/source" / name).exists()
    assert name not in capsys.readouterr().out
