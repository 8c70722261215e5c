"""Programs that are compared: where one runs, at which time, and what it says."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError

if TYPE_CHECKING:
    from types import TracebackType

_SERVER = Path(__file__).with_name("server.py")
_PYTHON = re.compile(rb"""^#!(?:/bin/sh\s+'''exec' )?"?([^\s"]*python[^\s"]*)""")
"""The Python of a script, also where its path is too long for the first line."""
_KEPT = ("PATH", "TMPDIR")
_LONG = 64
"""Characters of the path of a place: where lines are wrapped may depend on it."""


@dataclass(frozen=True, slots=True)
class Order:
    """A command to run."""

    arguments: tuple[str, ...]
    folder: str
    environment: dict[str, str]
    stdout: str
    stderr: str
    now: int
    """The time that the program reads from the clock, in nanoseconds; it stands still."""


@dataclass(frozen=True, slots=True)
class Place:
    """A folder with a workspace, a home, and what a command writes."""

    base: Path

    @property
    def workspace(self) -> Path:
        """The workspace."""
        return self.base / "work"

    @property
    def home(self) -> Path:
        """The home of its user."""
        return self.base / "home"

    @property
    def out(self) -> Path:
        """Where a command writes what it exports."""
        return self.base / "out"

    @property
    def far(self) -> Path:
        """Where remotes and other workspaces are."""
        return self.base / "far"

    def make(self) -> Place:
        """Make its folders."""
        for folder in (self.workspace, self.home, self.out, self.far):
            folder.mkdir(parents=True, exist_ok=True)
        return self


def place_in(folder: Path, name: str) -> Place:
    """A place in a folder, with a path that is as long as any other's."""
    padding = _LONG - len(str(folder.resolve())) - len(name) - 2
    if padding < 1:
        raise EvalstoreError(
            f"the path of the temporary folder is too long: {folder}",
            hint="name another folder in TMPDIR",
        )
    return Place(folder.resolve() / f"{name}-{'x' * padding}").make()


class Program:
    """An evalstore that is asked; it is loaded once."""

    def __init__(self, path: Path) -> None:
        if not path.is_file() or (found := _PYTHON.match(path.read_bytes())) is None:
            raise EvalstoreError(
                f"{path}: not a program in Python",
                hint="name the program of an environment, such as .venv/bin/evalstore",
            )
        self._process = subprocess.Popen(
            [os.fsdecode(found[1]), "-X", "utf8", "-P", str(_SERVER), str(path.absolute())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Program:
        """Return the program itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End its process."""
        self._process.communicate()

    def run(
        self, place: Place, arguments: Iterable[str], *, now: int, columns: int | None = None
    ) -> tuple[int, bytes, bytes]:
        """Run a command in a place; returns the exit code, the output and the error output."""
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        environment |= {"HOME": str(place.home), "USER": "ada", "LOGNAME": "ada", "LANG": "C.UTF-8"}
        environment |= {"TZ": "UTC", "TERM": "dumb", "NO_COLOR": "1"}
        environment["GIT_CEILING_DIRECTORIES"] = str(place.base)
        if columns is not None:
            environment["COLUMNS"] = str(columns)
        stdout, stderr = place.base / "stdout", place.base / "stderr"
        order = Order(
            ("--no-pager", "--progress", "none", *arguments),
            str(place.workspace),
            environment,
            str(stdout),
            str(stderr),
            now,
        )
        stdin, answers = self._process.stdin, self._process.stdout
        if stdin is None or answers is None:
            raise EvalstoreError("the program is not running")
        stdin.write(json.dumps(asdict(order)) + "\n")
        stdin.flush()
        if not (answer := answers.readline()):
            raise EvalstoreError("the program does not start")
        return int(answer), stdout.read_bytes(), stderr.read_bytes()
