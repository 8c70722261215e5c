"""Processes in sessions and folders of their own, and those in which Python checks run.

A check's process has an environment without keys. It is used for many judgements of one file, one
after the other. A process that takes too long, writes too much or ends by itself is ended with its
child processes, and the next judgement starts a new one.

An error of a check raises `CodeError`. A problem of the machine (no process can be started, the
limits of the shell are too low, the system ends the process) raises `NotRunError`.
"""

from __future__ import annotations

import base64
import json
import math
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
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
AT_ONCE = 2**16
_MOST_STARTS = 3
"""The consecutive failures to start after which a file is not started again in this run."""


_POLL = 0.05
"""Seconds between two checks of whether a process has ended."""
_GRACE = 1.0
"""Seconds after the end of a process in which what it has started may go on writing."""


class Child:
    """A program in a session of its own, in a folder that has copies of files, and nothing else."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        files: Mapping[str, bytes] | None = None,
        most_errors: int = 0,
    ) -> None:
        """Start it; `files` are by their paths. Raises `OSError`.

        Of its standard error the last `most_errors` bytes are kept, in `errors`.
        """
        self.errors = b""
        self._most_errors = most_errors
        self._number = 0
        """The number of the newest request; a reply with another number is not the one."""
        self._folder = tempfile.TemporaryDirectory(prefix="evalstore-", ignore_cleanup_errors=True)
        home, root = self._folder.name, Path(self._folder.name, "files")
        try:
            root.mkdir()
            for path, data in (files or {}).items():
                place = root / path
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
                place.chmod(0o700)
            self._process = subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE if most_errors else subprocess.DEVNULL,
                cwd=root,
                env={"HOME": home, **environment, "TMPDIR": home},
                start_new_session=True,
                bufsize=0,
            )
        except BaseException:
            self._folder.cleanup()
            raise

    def ask(self, request: Json, most: int, seconds: float = math.inf) -> dict[str, Any]:
        """Return the reply to a request; each is a line of JSON.

        Raises `TimeoutError` after `seconds`, `OverflowError` for more than `most` bytes,
        `EOFError` when the process has ended, and `ValueError` for anything but the reply.
        """
        self._number += 1
        line = json.dumps({**request, "number": self._number}).encode() + b"\n"
        received = self.exchange(line, most, seconds, until_line=True)
        if not received.endswith(b"\n"):
            raise EOFError
        try:
            reply = json.loads(received)
        except RecursionError as error:
            raise ValueError from error
        if not isinstance(reply, dict) or reply.get("number") != self._number:
            raise ValueError
        return reply

    def exchange(
        self, data: bytes, most: int, seconds: float = math.inf, *, until_line: bool = False
    ) -> bytes:
        """Send data, and return a line that the process writes, or everything until it ends.

        A line without a line end means that it has ended. Raises as `ask`.
        """
        process = self._process
        assert process.stdin
        assert process.stdout
        into, out = process.stdin.fileno(), process.stdout.fileno()
        errors = process.stderr.fileno() if process.stderr else -1
        os.set_blocking(into, False)
        pipes = select.poll()
        pipes.register(into, select.POLLOUT)
        pipes.register(out, select.POLLIN)
        if process.stderr:
            pipes.register(errors, select.POLLIN)
        waiting, received = memoryview(data), bytearray()
        until, ended = time.monotonic() + seconds, math.inf
        while not (until_line and received.endswith(b"\n")):
            now = time.monotonic()
            ready = dict(pipes.poll(min(max(until - now, 0), _POLL) * 1000))
            if now >= until:
                raise TimeoutError
            if into in ready:
                try:
                    waiting = waiting[os.write(into, waiting[:AT_ONCE]) :]
                except BrokenPipeError:
                    waiting = waiting[:0]
                if not waiting:
                    pipes.unregister(into)
                    if not until_line:
                        process.stdin.close()
            if errors in ready:
                chunk = os.read(errors, AT_ONCE)
                self.errors = (self.errors + chunk)[-self._most_errors :]
                if not chunk:
                    pipes.unregister(errors)
            if out in ready:
                chunk = os.read(out, AT_ONCE)
                received += chunk
                if len(received) > most:
                    raise OverflowError
                if not chunk and until_line:
                    break
                if not chunk:
                    pipes.unregister(out)
            if ended < now and (not ready or now > ended + _GRACE):
                break  # something that it has started may have the pipes open
            if ended == math.inf and process.poll() is not None:
                ended = now
        return bytes(received)

    def status(self, seconds: float = 0) -> int | None:
        """Return the exit status, for which it waits; None while the process runs."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self._process.returncode

    def kill(self) -> None:
        """Kill the process with those that it has started; another thread may be using it."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """End the process with those that it has started, and remove its folder."""
        self.kill()
        self._process.kill()
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe:
                pipe.close()
        self._process.wait()
        self._folder.cleanup()


def signal_name(number: int) -> str:
    """Return the name of a signal, if it has one."""
    return signal.Signals(number).name if number in {*signal.Signals} else f"signal {number}"


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
        self._child: Child | None = None
        self._closed = False
        self._is_new = True
        """Whether the process has not judged anything yet."""
        self._failed_starts = 0

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
            if self._child is None:
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
        if self._closed:
            raise _not_run(self._code.path, _ENDED)
        environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
        try:
            self._child = Child([sys.executable, "-I", "-B", str(PROGRAM)], environment)
            self._set_up(seconds)
        except OSError as error:
            raise _not_run(self._code.path, f"no process can be started: {error}") from error
        self._failed_starts = 0
        self._is_new = True
        load = {"source": base64.b64encode(self._code.source).decode()}
        self._exchange(load, seconds + LOAD_SECONDS)

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
        """Return the reply to a request, within this many seconds."""
        assert self._child
        path = self._code.path
        try:
            return self._child.ask(request, 12 * self._code.longest + AT_ONCE, seconds)
        except TimeoutError:
            words = f"{path} took longer than {seconds:g} seconds, and was stopped"
        except OverflowError:
            words = f"{path} wrote without end, and was stopped"
        except EOFError:
            raise self._ended(self._child.status(5)) from None
        except ValueError:
            words = f"{path} wrote to the output of its result"
        raise CodeError(words)

    def _ended(self, code: int | None) -> CodeError | NotRunError:
        """Return the error for a process that ended or was killed."""
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
            return CodeError(f"{self._code.path} was ended by {signal_name(-code)}")
        return CodeError(f"{self._code.path} ended its process instead of returning a verdict")

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            child.end()

    def end(self) -> None:
        """End the process; a judgement in progress fails."""
        self._closed = True
        if (child := self._child) is not None:
            child.kill()
        with self._lock:
            self._end()
