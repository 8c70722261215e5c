"""Standard streams that are closed, full, unread or cannot show a character."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalstore.cli.main import commands
from tests.hostile import forking
from tests.hostile.conftest import CALLS

ROOT = Path(__file__).parents[2]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
NAMES = [
    name
    for name in commands().commands  # type: ignore[attr-defined]
    if name != "tui"  # the same as `view`
]
needs_linux = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")

Ended = tuple[int, str, str]


def run_all(cases: list[tuple[str, list[str]]]) -> list[Ended]:
    """Run commands with odd streams: exit code, stdout and stderr of each."""
    ran = subprocess.run(
        [sys.executable, "-m", "tests.hostile.forking"],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        env=ENVIRONMENT,
    )
    return [(code, out, err) for code, out, err in json.loads(ran.stdout)]


OFTEN = ("plain", "stdout full", "all closed", "folder gone")
RARE = tuple(streams for streams in forking.STREAMS if streams not in OFTEN)


@needs_linux
def test_no_command_ends_with_a_traceback_or_another_exit_code(workspace: Path) -> None:
    check_all([(*OFTEN, RARE[number % len(RARE)]) for number in range(len(NAMES))])


@needs_linux
@pytest.mark.slow
def test_no_command_ends_with_a_traceback_whatever_the_streams(workspace: Path) -> None:
    check_all([forking.STREAMS] * len(NAMES))


def check_all(streams_of: list[tuple[str, ...]]) -> None:
    """Run each command with its streams; what comes of it must not depend on them."""
    first = [("plain", ["run"]), ("plain", ["import", *CALLS["import"]])]
    cases = [
        (streams, [name, *CALLS.get(name, ())])
        for name, listed in zip(NAMES, streams_of, strict=True)
        for streams in listed
    ]
    ended = run_all([*first, *cases])[len(first) :]
    codes: dict[str, int] = {}
    for (streams, (name, *_)), (code, out, err) in zip(cases, ended, strict=True):
        place = f"{name}, {streams}: {code}\n{out}{err}"
        assert "Traceback" not in err, place
        assert "Exception ignored" not in err, place
        if streams == "plain":
            codes[name] = code
        if streams == "stdout full":
            assert code == (codes[name] or 2), place
            assert name == "view" or "the standard output cannot be written" in err, place
        elif streams == "folder gone":
            assert (code, err.splitlines()[0]) == (
                2,
                "error: the current folder has been removed",
            ), place
        else:
            assert code == codes[name], place


def test_a_folder_that_is_gone_does_not_matter_when_another_is_named(workspace: Path) -> None:
    ((code, out, err),) = run_all([("folder gone", ["-C", str(workspace), "check"])])
    assert (code, out, err) == (0, "1 test file, 2 cases: no errors\n", "")


def test_json_can_be_read_whatever_the_encoding(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("Oslo", "Tromsø 🧊"), encoding="utf-8")
    streams = ("plain", *forking.ENCODED)
    ended = run_all([(one, ["ls", "cases", "--json"]) for one in streams])
    documents = [json.loads(out.encode("latin-1").decode("utf-8")) for _, out, _ in ended]
    assert documents[0]["cases"][0]["row"] == "city=Tromsø 🧊"
    assert documents == [documents[0]] * len(streams)


def test_what_cannot_be_shown_is_an_escape(workspace: Path) -> None:
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("Oslo", "Tromsø 🧊"), encoding="utf-8")
    plain, ascii_, latin = run_all([(one, ["ls", "cases"]) for one in ("plain", "ascii", "latin")])
    assert "Tromsø 🧊" in plain[1].encode("latin-1").decode("utf-8")
    assert ascii_ == plain  # without a locale, UTF-8 is written
    assert "Tromsø \\U0001f9ca" in latin[1]


REAL = {
    "stderr closed": (("run",), "2>&-", 1),
    "stdout closed": (("run",), ">&-", 1),
    "stdin closed": (("run",), "<&-", 1),
    "stdout full": (("ls",), ">/dev/full", 2),
    "unread": (("ls",), "| true; exit ${PIPESTATUS[0]}", 0),
}


@needs_linux
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize("case", REAL)
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


def test_a_shell_without_a_locale_is_no_reason_to_fail(workspace: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    test = workspace / "tests/weather.md"
    test.write_text(test.read_text().replace("Oslo", "Tromsø 🧊"), encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "-m", "evalstore", "ls", "cases"],
        capture_output=True,
        check=False,
        env={**ENVIRONMENT, **plain},
    )
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert "Tromsø 🧊" in ran.stdout.decode()
