"""The processes in which Python checks run, one for each file.

A process is used for many judgements, one after the other. It has a session and a folder of its
own and an environment without keys. A process that takes too long, writes too much or ends by
itself is ended with its child processes, and the next judgement starts a new one.

An error of a check raises `CodeError`. A problem of the machine (no process can be started, the
limits of the shell are too low, the system ends the process) raises `NotRunError`.
"""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalstore.core.errors import NotRunError
from evalstore.core.values import Json

LOAD_SECONDS = 60.0
"""Seconds for starting a process and loading its file, in addition to the check's own time."""
PROGRAM = Path(__file__).parent / "worker" / "__main__.py"
_KEPT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""The environment variables that a check can read."""
_AT_ONCE = 2**16
_MOST_STARTS = 3
"""The consecutive failures to start after which a file is not started again in this run."""


_ENDED = "the run has ended"


class CodeError(Exception):
    """A check that returned no result; the message names its file."""


@dataclass(frozen=True, slots=True)
class Code:
    """A Python file with the limits of its process."""

    source: bytes = field(repr=False)
    path: str
    """The name of the file in messages."""
    memory: int
    """MiB of address space."""
    network: bool = False
    longest: int = 200_000
    """The most characters of a returned value, as JSON."""
    strict: bool = True
    """Whether an error is raised instead of running it when the limits of the shell are lower."""


def _not_run(path: str, why: str) -> NotRunError:
    return NotRunError(f"{path} could not be run: {why}")


class Workers:
    """All processes of one execution; may be used from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._workers: dict[Code, _Worker] = {}
        self._closed = False

    def call(
        self, code: Code, request: Json, seconds: float, cpu_seconds: float | None = None
    ) -> Json:
        """Return the result of a function of a file; raises `CodeError` or `NotRunError`.

        It may take `seconds`, and as much processor time unless `cpu_seconds` is lower.
        """
        with self._lock:
            if self._closed:
                raise _not_run(code.path, _ENDED)
            worker = self._workers.setdefault(code, _Worker(code))
        return worker.call(request, seconds, cpu_seconds or seconds)

    def close(self) -> None:
        """End all processes."""
        with self._lock:
            self._closed = True
            workers, self._workers = list(self._workers.values()), {}
        for worker in workers:
            worker.end()


class _Worker:
    """A process for one file, which is started when it is needed."""

    def __init__(self, code: Code) -> None:
        self._code = code
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._closed = False
        self._is_new = True
        """Whether the process has not judged anything yet."""
        self._failed_starts = 0
        self._number = 0
        """The number of the newest request; a reply with another number is ignored."""

    def call(self, request: Json, seconds: float, cpu_seconds: float) -> Json:
        with self._lock:
            try:
                reply = self._ask({**request, "seconds": cpu_seconds}, seconds)
            except (CodeError, NotRunError):
                self._end()
                raise
        if "result" in reply:
            return reply["result"]
        if "lacks" in reply:
            raise _not_run(self._code.path, reply["lacks"])
        if "isSpent" in reply:
            raise _not_run(
                self._code.path, "loading it used all the processor time that its shell allows"
            )
        line = reply.get("line")
        place = f"{self._code.path}:{line}" if isinstance(line, int) else self._code.path
        raise CodeError(f"{place}: {reply.get('error', 'no verdict')}")

    def _ask(self, request: Json, seconds: float) -> Json:
        """Return the reply to a request; a process that ran out of resources is replaced once."""
        for _ in range(2):
            if self._process is None:
                self._start(seconds)
            was_new, self._is_new = self._is_new, False
            try:
                reply = self._exchange(request, seconds)
            except NotRunError:
                if was_new or self._closed:
                    raise
            else:
                if was_new or not reply.get("isSpent"):
                    return reply
            self._end()
        raise AssertionError("the second process is new")

    def _start(self, seconds: float) -> None:
        if self._failed_starts >= _MOST_STARTS:
            raise _not_run(self._code.path, "its process could not be started before")
        self._failed_starts += 1
        try:
            self._open()
            self._set_up(seconds)
        except OSError as error:
            raise _not_run(self._code.path, f"no process can be started: {error}") from error
        self._failed_starts = 0
        self._is_new = True
        load = {"source": base64.b64encode(self._code.source).decode()}
        self._exchange(load, seconds + LOAD_SECONDS)

    def _open(self) -> None:
        if self._closed:
            raise _not_run(self._code.path, _ENDED)
        self._folder = tempfile.TemporaryDirectory(prefix="evalstore-", ignore_cleanup_errors=True)
        home = self._folder.name
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-B", str(PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=home,
            env={**environment, "HOME": home, "TMPDIR": home},
            start_new_session=True,
            bufsize=0,
        )

    def _set_up(self, seconds: float) -> None:
        """Have the process drop its rights and set its limits, before the check is loaded."""
        setup = {
            "path": self._code.path,
            "memory": self._code.memory,
            "network": self._code.network,
            "longest": self._code.longest,
            "strict": self._code.strict,
            "seconds": seconds,
            "loadSeconds": seconds + LOAD_SECONDS,
        }
        if self._closed:  # while it started
            raise _not_run(self._code.path, _ENDED)
        try:
            reply = self._exchange(setup, LOAD_SECONDS)
        except CodeError as error:
            raise _not_run(self._code.path, f"its process did not start: {error}") from error
        if "lacks" in reply:
            raise _not_run(self._code.path, reply["lacks"])

    def _exchange(self, request: Json, seconds: float) -> Json:
        """Send a line and read one, within this many seconds."""
        process = self._process
        assert process
        assert process.stdin
        assert process.stdout
        into, out = process.stdin.fileno(), process.stdout.fileno()
        os.set_blocking(into, False)
        self._number += 1
        waiting = memoryview(request_line(request, self._number))
        received = bytearray()
        until = time.monotonic() + seconds
        pipes = select.poll()
        pipes.register(out, select.POLLIN)
        pipes.register(into, select.POLLOUT)
        while not received.endswith(b"\n"):
            remaining = until - time.monotonic()
            ready = dict(pipes.poll(max(remaining, 0) * 1000))
            if remaining <= 0 or not ready:
                raise CodeError(
                    f"{self._code.path} took longer than {seconds:g} seconds, and was stopped"
                )
            if into in ready:
                try:
                    waiting = waiting[os.write(into, waiting[:_AT_ONCE]) :]
                except BrokenPipeError:
                    raise self._ended() from None
                if not waiting:
                    pipes.unregister(into)
            if out in ready:
                chunk = os.read(out, _AT_ONCE)
                if not chunk:
                    raise self._ended()
                received += chunk
            if len(received) > 12 * self._code.longest + _AT_ONCE:
                raise CodeError(f"{self._code.path} wrote without end, and was stopped")
        reply = read_reply(received, self._number)
        if reply is None:
            raise CodeError(f"{self._code.path} wrote to the output of its result")
        return reply

    def _ended(self) -> CodeError | NotRunError:
        """Return the error for a process that ended or was killed."""
        assert self._process
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)
        code = self._process.returncode
        if code in (-signal.SIGPROF, -signal.SIGXCPU):
            return CodeError(f"{self._code.path} used more processor time than its check may")
        if code == -signal.SIGKILL:  # sent by the system, or by the check itself
            words = (
                _ENDED
                if self._closed
                else "the system ended its process, perhaps for lack of memory"
            )
            return _not_run(self._code.path, words)
        if code is not None and code < 0:
            return CodeError(f"{self._code.path} was ended by {signal.Signals(-code).name}")
        return CodeError(f"{self._code.path} ended its process instead of returning a verdict")

    def _end(self) -> None:
        process, folder = self._process, self._folder
        self._process = self._folder = None
        if process is not None:
            kill_group(process)
            process.kill()
            for pipe in (process.stdin, process.stdout):
                if pipe:
                    pipe.close()
            process.wait()
        if folder is not None:
            folder.cleanup()

    def end(self) -> None:
        """End the process; a judgement in progress fails."""
        self._closed = True
        process = self._process
        if process is not None:
            kill_group(process)
        with self._lock:
            self._end()


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with those that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def request_line(request: Json, number: int) -> bytes:
    """Return the line of a request."""
    return json.dumps({**request, "number": number}).encode() + b"\n"


def read_reply(line: bytes | bytearray, number: int) -> dict[str, Any] | None:
    """Return the reply to the request of this number; None if the line is anything else."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) and reply.get("number") == number else None
