"""Colours follow `--color`, else the variables that other programs follow, too."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.zygote import Popen

pytestmark = pytest.mark.extended

pty = pytest.importorskip("pty", reason="needs a pseudo-terminal")

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interfaces.cli.conftest import Evalstore


@pytest.mark.parametrize(
    ("variables", "option", "is_colored"),
    [
        ({}, "auto", False),
        ({"FORCE_COLOR": "1"}, "auto", True),
        ({"CLICOLOR_FORCE": "1"}, "auto", True),
        ({"CLICOLOR_FORCE": "0"}, "auto", False),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, "auto", False),
        ({"FORCE_COLOR": "1"}, "never", False),
        ({"NO_COLOR": "1"}, "always", True),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, "auto", True),
    ],
)
def test_colours_are_chosen(
    workspace: Path,
    evalstore: Evalstore,
    monkeypatch: pytest.MonkeyPatch,
    variables: dict[str, str],
    option: str,
    is_colored: bool,
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in evalstore("ls", "tests", "--color", option).stdout) is is_colored


COMMAND = [sys.executable, "-m", "evalstore", "--no-pager", "ls", "tests"]


def printed_to_terminal(folder: Path, environment: dict[str, str]) -> str:
    """What the command prints to a terminal."""
    master, slave = pty.openpty()
    with Popen(
        COMMAND, stdin=slave, stdout=slave, stderr=slave, cwd=folder, env=environment
    ) as process:
        os.close(slave)
        parts = []
        with suppress(OSError):  # Linux reports the end of a terminal as an error
            while part := os.read(master, 65_536):
                parts.append(part)
        assert process.wait(timeout=60) == 0
    os.close(master)
    return b"".join(parts).decode()


def printed_to_pipe(folder: Path, environment: dict[str, str]) -> str:
    """What the command prints to a pipe."""
    with Popen(COMMAND, stdout=subprocess.PIPE, text=True, cwd=folder, env=environment) as process:
        printed: str = process.communicate(timeout=60)[0]
    assert process.returncode == 0
    return printed


@pytest.mark.parametrize(
    ("variables", "in_terminal", "in_pipe"),
    [
        ({}, True, False),
        ({"NO_COLOR": "1"}, False, False),
        ({"CLICOLOR_FORCE": "1"}, True, True),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "CLICOLOR_FORCE": "1"}, True, True),
    ],
    ids=["no variables", "NO_COLOR", "CLICOLOR_FORCE", "dumb", "dumb, but forced"],
)
def test_a_terminal_has_colours_and_a_pipe_has_none(
    workspace: Path, variables: dict[str, str], in_terminal: bool, in_pipe: bool
) -> None:
    colors = ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "COLUMNS")
    plain = {name: value for name, value in os.environ.items() if name not in colors}
    environment = {**plain, "TERM": "xterm-256color", **variables}
    shown = printed_to_terminal(workspace, environment)
    assert "tests/weather.md" in shown
    assert ("\x1b[" in shown) is in_terminal
    assert ("\x1b[" in printed_to_pipe(workspace, environment)) is in_pipe
