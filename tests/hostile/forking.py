"""Runs commands, each in a fork of one process that has loaded the program.

Each line that is read is a case, and each line that is written is how it ended.
"""

from __future__ import annotations

import gc
import importlib
import io
import json
import os
import pkgutil
import signal
import sys
import tempfile
import threading
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from types import BuiltinFunctionType, FrameType
from typing import IO, Any, NamedTuple, NoReturn

import evalstore
from evalstore.__main__ import run
from evalstore.interfaces.cli.main import commands
from evalstore.interfaces.cli.main import main as run_command
from tests.builders import tree
from tests.interfaces.cli.conftest import WEATHER_WORKSPACE

CLOSED = {"stdin closed": 0, "stdout closed": 1, "stderr closed": 2}
FULL = {"stdout full": 1, "stderr full": 2}
UNREAD = {"stdout unread": 1, "stderr unread": 2}
ENCODED = {"ascii": "ascii", "latin": "iso-8859-1"}
STREAMS = ("plain", *CLOSED, *FULL, *UNREAD, *ENCODED, "all closed", "folder gone")
SOUND = ("plain", "folder gone")
"""Those that nothing is left to go wrong with when the interpreter takes itself apart."""
NAMES = ("stdin", "stdout", "stderr")
STEPS = {
    *("open", "write", "flush", "fsync", "flock", "fchmod"),
    *("replace", "rename", "link", "unlink", "mkdir"),
    *("execute", "executemany", "commit", "backup"),
}
"""Functions that write, and those around them."""
OWNERS = {"posix", "fcntl", "io", "_io", "sqlite3"}
"""The modules of these functions."""
STATEMENTS = {"execute", "executemany"}
"""Functions that send statements to a server, in `psycopg/cursor.py`."""


class Case(NamedTuple):
    """A command to run."""

    arguments: tuple[str, ...]
    folder: str
    environment: Mapping[str, str] = {}
    streams: str = "plain"
    """One of `STREAMS`."""
    killed_at: int | None = None
    """Before or after which step of writing the process is killed; 0: the steps are counted."""


class Ended(NamedTuple):
    """How it ended; in the texts each byte is a character."""

    exit_code: int
    out: str
    err: str
    steps: int = 0


def change(streams: str) -> None:
    """Give this process the streams that a case names."""
    if streams in FULL:
        os.dup2(os.open("/dev/full", os.O_WRONLY), FULL[streams])
    if streams in UNREAD:
        reading, writing = os.pipe()
        os.dup2(writing, UNREAD[streams])
        os.close(reading)
        os.close(writing)
    # The streams of the parent remember what they were: a file.
    encoding = ENCODED.get(streams, "utf-8")
    sys.stdout, sys.stderr = (os.fdopen(n, "w", encoding=encoding, closefd=False) for n in (1, 2))
    for number in range(3) if streams == "all closed" else [CLOSED.get(streams)]:
        if number is not None:
            os.close(number)
            setattr(sys, NAMES[number], None)
    if streams == "folder gone":
        os.chdir(tempfile.mkdtemp())
        Path.cwd().rmdir()


class Killer:
    """Kills the process at the n-th step of writing, and counts the steps."""

    def __init__(self, killed_at: int) -> None:
        self.killed_at = killed_at
        self.steps = 0

    def __call__(self, frame: FrameType, event: str, called: Any) -> None:
        if self._is_step(frame, event, called):
            self.steps += 1
            if self.steps == self.killed_at:
                os.kill(os.getpid(), signal.SIGKILL)

    @staticmethod
    def _is_step(frame: FrameType, event: str, called: Any) -> bool:
        if event in ("call", "return"):
            code = frame.f_code
            return code.co_name in STATEMENTS and code.co_filename.endswith("psycopg/cursor.py")
        if not isinstance(called, BuiltinFunctionType) or called.__name__ not in STEPS:
            return False
        owner = called.__self__
        return getattr(owner, "__name__", type(owner).__module__) in OWNERS


def run_case(case: Case, steps: IO[bytes]) -> NoReturn:
    """Do what the program does, in this process."""
    os.chdir(case.folder)
    os.environ.update(case.environment)
    change(case.streams)
    sys.argv = ["evalstore", *case.arguments]
    if case.killed_at is None:
        leave(run(), case.streams)
    killer = Killer(case.killed_at)
    threading.setprofile(killer)
    sys.setprofile(killer)
    exit_code = run()
    sys.setprofile(None)
    steps.write(str(killer.steps).encode())
    steps.flush()
    leave(exit_code, case.streams)


def leave(exit_code: int, streams: str) -> NoReturn:
    """End this process: with all that an interpreter does at its end, if that can matter.

    Taking every module apart costs more than most commands.
    """
    if streams not in SOUND:
        sys.exit(exit_code)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(exit_code)


def fork(case: Case) -> Ended:
    """Run a case in a process of its own."""
    with (
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
        tempfile.TemporaryFile() as steps,
    ):
        child = os.fork()
        if not child:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            run_case(case, steps)
        _, status = os.waitpid(child, 0)
        texts = []
        for file in (out, err, steps):
            file.seek(0)
            texts.append(file.read().decode("latin-1"))
        code = os.waitstatus_to_exitcode(status)
        return Ended(code, texts[0], texts[1], int(texts[2] or 0))


def do_once() -> None:
    """Do what each process does when it first runs something, so that no fork has to."""
    with (
        tempfile.TemporaryDirectory() as folder,
        redirect_stdout(io.StringIO()),
        redirect_stderr(io.StringIO()),
    ):
        tree(Path(folder), WEATHER_WORKSPACE)
        for command in ("run", "status", "log"):
            run_command(["-C", folder, command])
    assert threading.active_count() == 1, "a fork has none of the other threads"


def main() -> None:
    """Run all cases, one after the other."""
    commands()
    for module in pkgutil.walk_packages(evalstore.__path__, "evalstore."):
        if not module.name.endswith("__main__") and not module.name.startswith(
            "evalstore.interfaces.tui"
        ):
            importlib.import_module(module.name)  # once, not in each fork
    do_once()
    gc.collect()
    gc.freeze()
    while line := sys.stdin.buffer.readline():
        sys.stdout.write(json.dumps(fork(Case(*json.loads(line)))) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
