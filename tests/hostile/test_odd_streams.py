"""Standard streams that are closed, full, unread or cannot show a character."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalstore.interfaces.cli.main import commands, main
from tests.hostile import forking
from tests.hostile.conftest import CALLS, Program

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
NAMES = [*commands().commands]  # type: ignore[attr-defined]
needs_linux = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")

OFTEN = ("stdout full", "folder gone")
RARE = tuple(streams for streams in forking.STREAMS[1:] if streams not in OFTEN)


@needs_linux
@pytest.mark.one_database("streams are those of the program, whatever its store")
@pytest.mark.parametrize("number", range(len(NAMES)), ids=NAMES)
@pytest.mark.usefixtures("after_a_run")
def test_no_command_ends_with_a_traceback_or_another_exit_code(
    program: Program, number: int
) -> None:
    check_all(program, NAMES[number], (*OFTEN, RARE[number % len(RARE)]))


@needs_linux
@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("after_a_run")
def test_no_command_ends_with_a_traceback_whatever_the_streams(program: Program, name: str) -> None:
    check_all(program, name, forking.STREAMS[1:])


def check_all(program: Program, name: str, listed: tuple[str, ...]) -> None:
    """Run a command with odd streams; what comes of it must not depend on them."""
    arguments = (name, *CALLS.get(name, ()))
    main(arguments)  # a second import finds what the first one has written
    plain = program.run(*arguments)
    for streams in listed:
        code, out, err, _ = program.run(*arguments, streams=streams)
        place = f"{streams}: {code}\n{out}{err}"
        assert "Traceback" not in err, place
        assert "Exception ignored" not in err, place
        if streams == "stdout full":
            assert code == (plain.exit_code or 2), place
            is_error = name in ("clone", "view", "serve")  # which print nothing on stdout here
            assert is_error or "the standard output cannot be written" in err, place
        elif streams == "folder gone":
            assert (code, err.splitlines()[0]) == (
                2,
                "error: the current folder has been removed",
            ), place
        else:
            assert code == plain.exit_code, place


@pytest.mark.opens_no_store
def test_a_folder_that_is_gone_does_not_matter_when_another_is_named(
    workspace: Path, program: Program
) -> None:
    ended = program.run("-C", str(workspace), "check", streams="folder gone")
    assert ended[:3] == (0, "1 test file, 2 cases: no errors\n", "")


@pytest.mark.one_database("streams are those of the program, whatever its store")
def test_json_can_be_read_whatever_the_encoding(workspace: Path, program: Program) -> None:
    name_a_row(workspace)
    documents = [
        json.loads(decoded(program.run("ls", "cases", "--json", streams=streams).out))
        for streams in ("plain", *forking.ENCODED)
    ]
    assert documents[0]["cases"][0]["row"] == "city=Tromsø 🧊"
    assert documents == [documents[0]] * 3


@pytest.mark.one_database("streams are those of the program, whatever its store")
def test_what_cannot_be_shown_is_an_escape(workspace: Path, program: Program) -> None:
    name_a_row(workspace)
    plain, ascii_, latin = (
        program.run("ls", "cases", streams=streams).out for streams in ("plain", *forking.ENCODED)
    )
    assert "Tromsø 🧊" in decoded(plain)
    assert ascii_ == plain  # without a locale, UTF-8 is written
    assert "Tromsø \\U0001f9ca" in latin


def name_a_row(workspace: Path) -> None:
    """Have a row with a name that only UTF-8 can show."""
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("Oslo", "Tromsø 🧊"), encoding="utf-8")


def decoded(text: str) -> str:
    return text.encode("latin-1").decode("utf-8")


REAL = {
    "stderr closed": (("run",), "2>&-", 1),
    "stdout closed": (("run",), ">&-", 1),
    "stdin closed": (("run",), "<&-", 1),
    "stdout full": (("ls",), ">/dev/full", 2),
    "unread": (("ls",), "| true; exit ${PIPESTATUS[0]}", 0),
}


OUTPUT = ("stdout full", "unread")
"""Those where it matters when the output is written; a closed one is replaced before."""


@needs_linux
@pytest.mark.one_database("streams are those of the program, whatever its store")
@pytest.mark.parametrize(
    ("case", "unbuffered"), [*((case, "") for case in REAL), *((case, "1") for case in OUTPUT)]
)
def test_a_shell_sees_the_same(workspace: Path, case: str, unbuffered: str) -> None:
    arguments, streams, exit_code = REAL[case]
    ran = subprocess.run(
        ["bash", "-c", f'"$@" {streams}', "bash", sys.executable, "-m", "evalstore", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**ENVIRONMENT, "PYTHONUNBUFFERED": unbuffered},
    )
    assert ran.returncode == exit_code, ran
    assert "Traceback" not in ran.stderr
    assert ("1 pass, 1 fail" in ran.stdout) == (case in ("stderr closed", "stdin closed"))


@pytest.mark.opens_no_store
def test_a_shell_without_a_locale_is_not_a_reason_to_fail(workspace: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    name_a_row(workspace)
    ran = subprocess.run(
        [sys.executable, "-m", "evalstore", "ls", "cases"],
        capture_output=True,
        check=False,
        env={**ENVIRONMENT, **plain},
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert "Tromsø 🧊" in ran.stdout.decode()
