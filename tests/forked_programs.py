"""Starts evalstore quickly as a real process, forked from one that has loaded all modules."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Mapping
from itertools import count
from pathlib import Path

from tests.hostile.campaign.processes import Launcher, Order, Running

_SECONDS = 60
"""The most seconds to wait for an output or an end."""


class RunningProgram:
    """A started evalstore, whose output goes to files."""

    def __init__(self, running: Running, out: Path, err: Path) -> None:
        self._running = running
        self._out, self._err = out, err

    @property
    def pid(self) -> int:
        """Return the id of the process."""
        return self._running.pid

    @property
    def out(self) -> str:
        """Return the standard output so far."""
        return self._out.read_text("utf-8", "replace")

    @property
    def err(self) -> str:
        """Return the standard error so far."""
        return self._err.read_text("utf-8", "replace")

    @property
    def has_ended(self) -> bool:
        """Return whether it has ended."""
        return self._running.has_ended(0.001)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def wait_until(self, holds: Callable[[], bool]) -> None:
        """Wait until `holds` returns true; fail when the program ends or the time is up."""
        end = time.monotonic() + _SECONDS
        while not holds():
            assert not self._running.has_ended(0.005) or holds(), self.err
            assert time.monotonic() < end, self.err

    def finish(self) -> tuple[int, str, str]:
        """Wait until it ends; returns the exit code, the output and the errors."""
        ended = self._running.wait(_SECONDS)
        assert not ended.hung, ended
        return ended.code, self.out, self.err


class Starter:
    """Starts evalstore in forks of a launcher, with the variables of the test."""

    _numbers = count()

    def __init__(self, launcher: Launcher, folder: Path) -> None:
        self._launcher = launcher
        self._folder = folder
        self._started: list[Running] = []

    def __call__(
        self,
        *arguments: str,
        folder: Path | None = None,
        limits: Mapping[str, int] | None = None,
        clock: float = 0,
        **environment: str,
    ) -> RunningProgram:
        """Start it in a folder, by default the current one, with limits named as `RLIMIT_...`.

        Its wall clock is so many seconds ahead.
        """
        name = f"launched-{next(self._numbers)}"
        out, err = (self._folder / f"{name}.{kind}" for kind in ("out", "err"))
        for path in (out, err):
            path.touch()
        running = self._launcher.start(
            Order(
                arguments,
                str(folder or Path.cwd()),
                {**os.environ, **environment},
                {0: os.devnull, 1: str(out), 2: str(err)},
                limits or {},
                clock=clock,
            )
        )
        self._started.append(running)
        return RunningProgram(running, out, err)

    def end_all(self) -> None:
        """Kill what still runs."""
        for running in self._started:
            running.close()
