"""Starts runners as processes of this machine: fresh interpreters that join the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path

from evalstore.planning.options import Location
from evalstore.store.location import DatabaseAddress, StoreLocation

_GRACE_SECONDS = 15.0
"""Seconds in which a process may finish what is in flight before it is killed."""
_SAID_HERE = ("interrupted", "time is up")
"""How messages begin that this program shows, too."""
_OF_THE_COMMAND = ("EVALSTORE_RUN_", "EVALSTORE_JUDGE_", "EVALSTORE_PROGRESS", "EVALSTORE_CONFIG")
"""Prefixes of variables with options of this program, which are not those of its runners."""


class RunnerProcesses:
    """The processes; used as `RunnerLauncher`.

    Their standard input is a pipe from this program: when that ends, however it ends, they do.
    """

    def __init__(
        self,
        root: Path,
        location: Location,
        store: StoreLocation,
        count: int | None,
        note: Callable[[str], None],
    ) -> None:
        """`root` is the folder of the workspace; `note` shows a message to the user."""
        self._root = root
        self._location = location
        self._store = store
        self._count = count or max(1, len(os.sched_getaffinity(0)) - 1)
        self._note = note
        self._said: set[str] = set()
        self._started: list[subprocess.Popen[str]] = []
        self._readers: list[threading.Thread] = []
        self._is_over = False
        self._lost = 0
        """How many have died while the run was in progress."""
        self._lock = threading.Lock()

    def start(self, run: str, known: Collection[str]) -> None:
        """Start the processes; `known` are warnings that were shown already."""
        self._said.update(known)
        for _ in range(self._count):
            process = subprocess.Popen(
                self._command(run),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                env=self._environment(),
                encoding="utf-8",
                errors="backslashreplace",
            )
            self._started.append(process)
            reader = threading.Thread(target=self._read, args=(process,), daemon=True)
            self._readers.append(reader)
            reader.start()

    def stop(self) -> None:
        """Close the pipes, and wait until the processes have ended; one that hangs is killed."""
        with self._lock:
            self._is_over = True
        for process in self._started:
            assert process.stdin
            with suppress(OSError):
                process.stdin.close()
        for process in self._started:
            try:
                process.wait(_GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for reader in self._readers:
            reader.join(1.0)

    @property
    def remark(self) -> str:
        """Return that all processes were lost; empty if they were not."""
        if not self._started or self._lost < len(self._started):
            return ""
        return f"all processes of the run were lost ({self._lost:,}): this program did the rest"

    def _command(self, run: str) -> list[str]:
        location = self._location
        outside = ["--allow-outside"] if location.allow_outside else []
        shown = ["--color", "never", "--progress", "none", *outside]
        # -P: no module is loaded from the current folder, which may be that of a workspace.
        program = [sys.executable, "-P", "-m", "evalstore", "-C", str(self._root), *shown]
        return [*program, "run", "--join", run, "--until-eof"]

    def _environment(self) -> dict[str, str]:
        """Return the variables of a process; its command line could be read by other users."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(_OF_THE_COMMAND)
        }
        store = self._store
        named = (
            store.with_secrets() if isinstance(store, DatabaseAddress) else str(store.absolute())
        )
        return {**kept, "EVALSTORE_STORE": named}

    def _read(self, process: subprocess.Popen[str]) -> None:
        """Show what a process tells the user, and how it has ended if others do its work."""
        assert process.stderr
        with process.stderr:
            for line in process.stderr:
                self._show(line.rstrip("\n"))
        code = process.wait()
        if code < 0 and -code not in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self._lock:
                self._lost += not self._is_over
            self._show(
                f"process {process.pid} was ended by signal {-code}: the other runners do its work"
            )

    def _show(self, text: str) -> None:
        with self._lock:
            if self._is_over or text in self._said or text.startswith(_SAID_HERE):
                return
            self._said.add(text)
        self._note(text)
