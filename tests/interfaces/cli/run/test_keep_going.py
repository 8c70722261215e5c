"""Test files with errors: they stop a run, unless it is told to leave them out; never `ls`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore

ERRORS = (
    "error: tests/a.md:3:6: 'who' is not defined\n"
    "    Hi {{who}}\n"
    "         ^\n"
    "hint: define it under 'replacements:'\n"
)
LEFT_OUT = f"{ERRORS}1 file with errors is left out: tests/a.md\n"


@pytest.fixture
def broken(workspace: Path) -> Path:
    """The workspace with one more test, which has an error."""
    (workspace / "tests/a.md").write_text("# 👤\n\nHi {{who}}\n\n---\n\nE\n")
    return workspace


def test_a_run_can_leave_out_files_with_errors(broken: Path, evalstore: Evalstore) -> None:
    assert evalstore("run").stderr.endswith(
        "1 error in 1 file; nothing was done\n"
        "hint: '--keep-going' leaves out the files with errors\n"
    )
    ran = evalstore("run", "--keep-going")
    assert (ran.exit_code, LEFT_OUT in ran.stderr) == (2, True)
    assert "1 pass, 1 fail" in ran.stdout
    passing = evalstore("run", "--keep-going", "-k", "Rome")
    assert passing.exit_code == 2
    assert passing.stdout.endswith("files with errors are left out, see above\n")


@pytest.mark.parametrize("command", [["status"], ["run", "-n"]])
def test_a_plan_can_leave_them_out(broken: Path, evalstore: Evalstore, command: list[str]) -> None:
    assert evalstore(*command).exit_code == 2
    ran = evalstore(*command, "--keep-going")
    assert (ran.exit_code, LEFT_OUT in ran.stderr) == (2, True)
    assert "A run would ask for 2 answers" in ran.stdout


def test_what_is_left_out_is_in_the_documents(broken: Path, documents: Any) -> None:
    assert documents("status", "--keep-going")["leftOut"] == ["tests/a.md"]
    assert documents("run", "--keep-going")["leftOut"] == ["tests/a.md"]
    (broken / "tests/a.md").unlink()
    assert documents("run", "--keep-going")["leftOut"] == []


def test_a_run_that_left_files_out_was_about_a_selection(
    broken: Path, evalstore: Evalstore, documents: Any
) -> None:
    first = documents("run", "--keep-going")["run"]
    assert documents("show", first)["selection"] == {"keepGoing": True}
    (broken / "tests/a.md").unlink()
    assert "selection" not in documents("show", documents("run", "--keep-going")["run"])


def test_a_file_that_is_left_out_does_not_count_as_gone(
    broken: Path, evalstore: Evalstore, documents: Any
) -> None:
    (broken / "tests/a.md").write_text("# 👤\n\nHi\n\n---\n\nE\n")
    evalstore("run")
    (broken / "tests/a.md").write_text("# 👤\n\nHi {{who}}\n\n---\n\nE\n")
    assert documents("status", "--keep-going")["changes"] == []


@pytest.mark.parametrize("kind", ["tests", "cases", "tags"])
def test_a_list_has_what_can_be_read(
    broken: Path, evalstore: Evalstore, documents: Any, kind: str
) -> None:
    ran = evalstore("ls", kind)
    assert (ran.exit_code, ran.stderr) == (2, LEFT_OUT)
    assert "weather" in ran.stdout
    assert len(documents("ls", kind)[kind]) >= 1


def test_errors_elsewhere_or_in_all_tests_stop_everything(
    broken: Path, evalstore: Evalstore
) -> None:
    (broken / "tools").mkdir()
    (broken / "tools/t.yaml").write_text("id: t\n")
    for command in (["run", "--keep-going"], ["ls"]):
        ran = evalstore(*command)
        assert (ran.exit_code, ran.stdout) == (2, "")
        assert "--keep-going" not in ran.stderr
    (broken / "tools/t.yaml").unlink()
    (broken / "tests/weather.md").unlink()
    assert evalstore("run", "--keep-going").stderr.endswith("nothing was done\n")
