"""Long output in a terminal goes through a pager, as in git.

The pager is what the user's own environment names: `EVALSTORE_PAGER`, else `PAGER`, else `less`
where it is installed. `cat`, an empty text, or a program that is not installed, means none.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import sys
from contextlib import suppress

import typer

COMMANDS = frozenset({"diff", "grep", "log", "ls", "show", "sql", "stats"})
"""The commands whose output is read."""
_NONE = ("", "cat")
_PROGRAM = re.compile(r"[\w./+-]+")
"""What the shell takes for the name of a program, whatever else it knows."""
_NOT_STARTED = (126, 127)
"""What a shell ends with when it cannot start a program."""
_SETTINGS = {"LESS": "FRX", "LV": "-c"}
"""Quit if all fits, show colours, leave the text on the screen; unless the user has set others."""


class Pager:
    """A running pager."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        assert process.stdin
        self._stream = io.TextIOWrapper(
            process.stdin, encoding=sys.stdout.encoding, errors="backslashreplace"
        )

    @property
    def is_open(self) -> bool:
        """Return whether the pager still runs."""
        return self._process.poll() is None

    def write(self, text: str, *, color: bool) -> bool:
        """Show a text; returns whether the user has not left the pager."""
        try:
            typer.echo(text, nl=False, file=self._stream, color=color)
        except BrokenPipeError:
            return False
        return True

    def close(self) -> bool:
        """Show the rest, and wait until the user leaves the pager; returns whether it is one."""
        while True:
            try:
                with suppress(BrokenPipeError):
                    self._stream.close()
                return self._process.wait() not in _NOT_STARTED
            except KeyboardInterrupt:  # meant for the pager, where it ends a search
                continue


def find_pager() -> str | None:
    """Return the command line of the pager; None if the output is not paged."""
    streams = (sys.stdin, sys.stdout)
    if os.name != "posix" or not all(stream.isatty() for stream in streams):
        return None
    named = os.environ.get("EVALSTORE_PAGER", os.environ.get("PAGER"))
    if named is None:
        return "less" if shutil.which("less") else None
    return None if named.strip() in _NONE or _is_missing(named) else named


def _is_missing(command: str) -> bool:
    """Return whether a command begins with the name of a program that is not installed."""
    program = command.split()[0]
    return bool(_PROGRAM.fullmatch(program)) and shutil.which(program) is None


def start_pager(command: str) -> Pager | None:
    """Start a pager; None when that fails."""
    sys.stdout.flush()
    try:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.PIPE,
            env={**_SETTINGS, **os.environ},
        )
    except OSError:
        return None
    return Pager(process)
