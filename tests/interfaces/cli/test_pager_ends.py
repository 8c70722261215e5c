"""What becomes of a command whose pager has gone, or never was."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from evalstore.interfaces.cli import main as program
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.output import Pager, start_pager
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE, Evalstore

pytestmark = pytest.mark.extended


def start_and_leave(command: str) -> Pager | None:
    """A pager that the user has left already."""
    actual = start_pager(command)
    assert actual
    actual._process.wait()
    return actual


@pytest.fixture
def _left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tree(tmp_path, WEATHER_WORKSPACE))
    monkeypatch.setattr(program, "find_pager", lambda: "true")
    monkeypatch.setattr(output, "start_pager", start_and_leave)


@pytest.mark.usefixtures("_left")
@pytest.mark.parametrize(
    ("arguments", "exit_code"),
    [
        (["diff"], 0),
        (["diff", "--exit-code"], 1),
        (["diff", "--exit-code", "--json"], 1),
        (["ls", "cases"], 2),
    ],
)
def test_leaving_the_pager_does_not_change_the_exit_code(
    evalstore: Evalstore, arguments: list[str], exit_code: int
) -> None:
    evalstore("run", "--yes")
    tree(Path(), {"tests/more.md": "# 👤\n\nHi?\n\n---\n\nPolite?\n"})
    if arguments[0] == "ls":
        tree(Path(), {"tests/broken.md": "---\ntags: {\n---\n"})
    assert evalstore(*arguments).exit_code == exit_code


@pytest.mark.usefixtures("_left")
def test_what_the_pager_does_not_take_of_errors_is_shown_without_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(Pager, "is_open", True)  # it closed its end, and goes on
    monkeypatch.setattr(output, "_pager", start_and_leave("true"))
    output.to_stderr("error: this happened")
    assert capsys.readouterr().err == "error: this happened\n"
    output.close_pager()


@pytest.mark.parametrize("command", ["exit 127", "/no/such/pager -R", "/"])
def test_a_pager_that_cannot_be_started_is_an_error(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.chdir(tree(tmp_path, WEATHER_WORKSPACE))
    monkeypatch.setattr(program, "find_pager", lambda: command)
    ran = evalstore("ls", "tests")
    assert ran.exit_code == 2
    assert "error: the pager cannot be started" in ran.stderr
    assert "--no-pager" in ran.stderr


def test_a_pager_that_ends_with_another_code_is_one(
    evalstore: Evalstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree(tmp_path, WEATHER_WORKSPACE))
    monkeypatch.setattr(program, "find_pager", lambda: "cat > pages; exit 1")
    assert evalstore("ls", "tests").exit_code == 0
    assert "tests/weather.md" in Path("pages").read_text()
    assert {"ls", "diff"} <= output.PAGED
