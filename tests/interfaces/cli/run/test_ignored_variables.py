"""Variables in `.env` that count in the environment only."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalstore.store import Store
from evalstore.store.location import read_address
from tests.builders import tree
from tests.interfaces.cli.conftest import Evalstore
from tests.postgresql_server import PostgreSQLServer

SAID = "has no effect in this file: it is read from the environment only"
HINT = "set it in your environment: the files of a checkout may be someone else's"


@pytest.fixture(autouse=True)
def files(workspace: Path) -> None:
    tree(
        workspace,
        {".env": "# mine\n\nEVALSTORE_STORE=other.db\nX_API_KEY=1\n"},
    )


@pytest.mark.parametrize(
    "command",
    ["status", "run --fail-on none", "run -n", "log", "stats", "show @", "fsck", "ls runs"],
)
def test_a_command_warns_of_them_once_and_does_not_use_them(
    evalstore: Evalstore, workspace: Path, command: str
) -> None:
    ran = evalstore(*command.split())
    warning = f"warning: .env:3: EVALSTORE_STORE {SAID} ({HINT})"
    assert [line for line in ran.stderr.splitlines() if line.startswith("warning: .env")] == [
        warning
    ]
    assert not (workspace / "other.db").exists()


def test_check_and_doctor_list_them(evalstore: Evalstore) -> None:
    for ran in (evalstore("check"), evalstore("doctor", "--no-ping")):
        text = " ".join((ran.stdout + ran.stderr).split())
        assert f"EVALSTORE_STORE {SAID}" in text
        assert ".env:3:" in text
        assert HINT in text


def test_what_the_environment_has_too_is_fine(
    evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_STORE", "other.db")
    assert ".env" not in evalstore("status").stderr


@pytest.mark.parametrize("command", ["push", "pull", "pull -n", "remote show"])
def test_they_count_for_commands_about_a_remote_that_is_a_database(
    evalstore: Evalstore, workspace: Path, postgresql_server: PostgreSQLServer, command: str
) -> None:
    evalstore("remote", "add", "team", postgresql_server.url())
    ran = evalstore(*command.split(), "team")
    assert f"warning: .env:3: EVALSTORE_STORE {SAID} ({HINT})" in ran.stderr
    assert ".env" not in evalstore(*command.split(), "team").stderr, "it has warned already"


@pytest.mark.parametrize("command", ["run --join @", "clone {} copy"])
def test_they_count_for_commands_that_need_no_workspace(
    evalstore: Evalstore, workspace: Path, postgresql_server: PostgreSQLServer, command: str
) -> None:
    place = postgresql_server.url()
    assert evalstore("--store", place, "run", "--fail-on", "none").exit_code == 0
    outside = tree(workspace.parent / "outside", {".env": (workspace / ".env").read_text()})
    store = ("--store", place) if "join" in command else ()
    ran = evalstore("-C", str(outside), *store, *command.format(place).split())
    assert [line for line in ran.stderr.splitlines() if ".env" in line] == [
        f"warning: .env:3: EVALSTORE_STORE {SAID} ({HINT})",
    ]


def test_where_no_store_is_named_to_join_it_is_said_that_the_file_does_not(
    evalstore: Evalstore, workspace: Path
) -> None:
    outside = tree(workspace.parent / "outside", {".env": "EVALSTORE_STORE=postgresql://db/x\n"})
    ran = evalstore("-C", str(outside), "run", "--join", "@")
    assert ran.stderr.startswith(f"warning: .env:1: EVALSTORE_STORE {SAID} ({HINT})\nerror: ")
    assert "hint: '--store' or EVALSTORE_STORE names the store of the run" in ran.stderr


@pytest.mark.parametrize("folder", [".", "tests"])
def test_a_workspace_whose_run_is_joined_has_one_warning_of_each(
    evalstore: Evalstore, workspace: Path, postgresql_server: PostgreSQLServer, folder: str
) -> None:
    place = postgresql_server.url()
    settings = workspace / "evalstore.yaml"
    settings.write_text(f'{settings.read_text()}store: "{place}"\n')
    Store.open(read_address(place), create=True).close()
    ran = evalstore("--allow-outside", "-C", str(workspace / folder), "run", "--join", "@")
    assert ran.stderr.count(".env:") == 1
    assert "no run is in progress" in ran.stderr
