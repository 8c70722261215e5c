"""Programs under attack: how they are started, signalled, waited for and measured."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[3]
"""The checkout."""
ADDRESS_SPACE = 4 << 30
"""Bytes that a program may reserve; what needs more fails by itself."""
LARGEST_FILE = 1 << 30
DEAF = 12
"""Seconds within which a program must end after an interrupt."""
LONGEST_OUTPUT = 4 << 20
"""Bytes of an output that are read."""


@dataclass(frozen=True)
class Order:
    """A program to start."""

    argv: tuple[str, ...]
    folder: str
    environment: Mapping[str, str]
    streams: Mapping[int, str | None]
    """The file for each descriptor; None closes it."""
    limits: Mapping[str, int] = field(default_factory=dict)
    """By the names of `RLIMIT_...`."""
    module: str = "evalstore.interfaces.cli.main"
    """Its `main` is called in a fork."""
    execute: tuple[str, ...] = ()
    """A command line that takes the place of `module`."""
    clock: float = 0
    """Seconds by which the wall clock is ahead."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """How the program divides its work, as `tests.work_sizes` draws it."""


@dataclass(frozen=True)
class Ended:
    """What a program did."""

    argv: tuple[str, ...]
    code: int
    """Negative: the signal that ended it."""
    stdout: str
    stderr: str
    wall: float
    """Seconds; `cpu` too."""
    cpu: float
    peak: int
    """Bytes of resident memory."""
    hung: bool = False
    """It had to be interrupted because its time was up."""
    deaf: bool = False
    """It had to be killed because it did not end after an interrupt."""


class Running:
    """A program that has been started."""

    def __init__(self, order: Order, connection: socket.socket) -> None:
        self.order = order
        self._connection = connection
        self._received = b""
        self.pid: int = json.loads(self._line(60))
        self._report = ""

    def _line(self, seconds: float) -> str:
        """The launcher's next line; empty when none comes within so many seconds."""
        deadline = time.monotonic() + seconds
        while b"\n" not in self._received:
            self._connection.settimeout(max(deadline - time.monotonic(), 0.001))
            try:
                data = self._connection.recv(4096)
            except TimeoutError:
                return ""
            if not data:
                raise RuntimeError("the launcher has ended")
            self._received += data
        line, _, self._received = self._received.partition(b"\n")
        return line.decode()

    def send(self, number: signal.Signals) -> None:
        """Send a signal, unless it has ended."""
        if not self.has_ended(0):
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def has_ended(self, seconds: float) -> bool:
        """Whether it ends within so many seconds."""
        self._report = self._report or self._line(seconds)
        return bool(self._report)

    def wait(self, limit: float, patience: float = 1) -> Ended:
        """Wait for its end; interrupt it after `limit` seconds, then kill it."""
        hung = deaf = False
        if not self.has_ended(limit):
            hung = True
            self.send(signal.SIGINT)
            if not self.has_ended(DEAF * patience):
                deaf = True
        self.kill()
        self.has_ended(60)
        self._connection.close()
        report = json.loads(self._report)
        out, err = (_read(self.order.streams.get(number)) for number in (1, 2))
        return Ended(self.order.argv, stdout=out, stderr=err, hung=hung, deaf=deaf, **report)

    def close(self) -> None:
        """Kill it, unless it is known to have ended, and hear no more of it."""
        if not self._report:
            self.kill()
        self._connection.close()

    def kill(self) -> None:
        """Kill it and what it has started and left; the group is its own."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)


def _read(path: str | None) -> str:
    if path is None or not Path(path).is_file():
        return ""
    with Path(path).open("rb") as file:
        return file.read(LONGEST_OUTPUT).decode("utf-8", "surrogateescape")


class Launcher:
    """Starts programs."""

    def __init__(self, path: str) -> None:
        self._path = path

    def start(self, order: Order) -> Running:
        """Start one; it is there when this returns."""
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._path)
        connection.sendall(json.dumps(asdict(order)).encode() + b"\n")
        return Running(order, connection)


@contextmanager
def launching() -> Iterator[Launcher]:
    """A launcher until the block ends."""
    with tempfile.TemporaryDirectory(prefix="evalstore-attack-") as folder:
        path = f"{folder}/socket"
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.hostile.campaign.launcher", path],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the campaign
        )
        try:
            if process.stdout is None or not process.stdout.readline():
                raise RuntimeError("the launcher does not start")
            yield Launcher(path)
        finally:
            process.kill()
            process.communicate()
