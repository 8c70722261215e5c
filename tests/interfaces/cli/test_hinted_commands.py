"""Commands in hints name the folder of `-C`, so that they work where they are read."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from evalstore.interfaces.cli import output
from tests.interfaces.cli.run.test_run import edit

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore


@pytest.fixture
def beside(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the workspace is, and which is the current one."""
    monkeypatch.chdir(workspace.parent)
    return workspace


def test_a_hint_after_a_run_works_where_it_is_read(beside: Path, evalstore: Evalstore) -> None:
    hint = evalstore("-C", beside.name, "run").stderr
    [command] = re.findall(r'\(use "(evalstore [^"]*)" to see why', hint)
    assert command == f"evalstore -C {beside.name} show tests/weather.md::city=Oslo"
    assert evalstore(*shlex.split(command)[1:]).exit_code == 0


def test_hints_of_status_name_the_folder(beside: Path, evalstore: Evalstore) -> None:
    evalstore("-C", beside.name, "run")
    edit(beside / "tests/weather.md", "How is", "And how is")
    told = evalstore("-C", beside.name, "status").stdout
    commands = re.findall(r'"(evalstore [^"]*)"', told)
    assert len(commands) == 3
    assert all(each.startswith(f"evalstore -C {beside.name} ") for each in commands)


def test_an_error_names_the_folder_in_its_hint(beside: Path, evalstore: Evalstore) -> None:
    told = evalstore("-C", beside.name, "show", "abcd").stderr
    assert f"hint: 'evalstore -C {beside.name} log' lists the runs" in told


def test_a_folder_from_the_environment_is_not_repeated(
    beside: Path, evalstore: Evalstore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSTORE_DIRECTORY", beside.name)
    assert "hint: 'evalstore log' lists the runs" in evalstore("show", "abcd").stderr


def test_the_next_command_does_not_remember_the_folder(beside: Path, evalstore: Evalstore) -> None:
    evalstore("-C", beside.name, "show", "abcd")
    assert output.for_here("'evalstore log'") == f"'evalstore -C {beside.name} log'"
    evalstore("--version")
    assert output.for_here("'evalstore log'") == "'evalstore log'"


def test_only_commands_are_adapted(tmp_path: Path) -> None:
    output.use_folder(tmp_path / "a b", ["run", "trust"])
    try:
        there = f"evalstore -C '{tmp_path}/a b'"
        for text, adapted in (
            ("evalstore trust --list", f"{there} trust --list"),
            ("as in: evalstore trust FILE", f"as in: {there} trust FILE"),
            ("pip install 'evalstore[mcp]'", "pip install 'evalstore[mcp]'"),
            ("'evalstore -C other run'", "'evalstore -C other run'"),
            ("it is left out: evalstore has no such field",) * 2,
            ("'evalstore --help' lists them",) * 2,
        ):
            assert output.for_here(text) == adapted
    finally:
        output.use_folder(None)
