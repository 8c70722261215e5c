"""Calls applications in processes of their own.

Each process has a session of its own and a folder with copies of the application's files, and
nothing else of the workspace. Its environment has the variables that its user has agreed to, and a
few that every program needs. It is ended with all it has started when a call is late or cancelled.
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from evalstore.core.values import Json
from evalstore.files.processes.application import PYTHON, Application
from evalstore.files.processes.pool import PROGRAM, kill_group, read_reply, request_line

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""The environment variables that every application gets."""
_AT_ONCE = 2**16
_POLL = 0.05
"""Seconds between two checks of whether a process has ended."""
_GRACE = 1.0
"""Seconds that a process has to end after it has closed its pipes."""
_LAST_LINES = 5
_MOST_STDERR = 8_192
"""Bytes of the end of a program's messages that are kept."""
_TRY_AGAIN = 75
"""The exit status EX_TEMPFAIL, by which a program says that another try may help."""


class ApplicationError(Exception):
    """A call that an application did not answer; the message says why."""

    def __init__(
        self, message: str, *, retry: bool = False, timeout: bool = False, stops: bool = False
    ) -> None:
        """`retry` means that another try may succeed, `stops` that no other call can succeed."""
        super().__init__(message)
        self.retry = retry
        self.timeout = timeout
        self.stops = stops


class _Process:
    """One process with its pipes."""

    def __init__(self, application: Application, environment: Mapping[str, str]) -> None:
        self.name = application.code
        self._folder = tempfile.TemporaryDirectory(prefix="evalstore-", ignore_cleanup_errors=True)
        self.root = Path(self._folder.name) / "files"
        self._environment = {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            **environment,
            "TMPDIR": self._folder.name,
        }
        self._process: subprocess.Popen[bytes] | None = None
        self._transports: list[asyncio.BaseTransport] = []
        self.is_fit = False
        """Whether another call can be made."""
        self.errors = b""
        self.most_errors = _MOST_STDERR
        """The end of what the process wrote to its standard error, if that is read."""
        try:
            self._write_files(application.files)
        except OSError:
            self._folder.cleanup()
            raise

    def _write_files(self, files: Mapping[str, bytes]) -> None:
        self.root.mkdir()
        for path, data in files.items():
            place = self.root / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            place.chmod(0o700)

    async def start(self, arguments: list[str], *, has_errors: bool) -> None:
        """Start the program; raises `OSError`."""
        self._process = process = subprocess.Popen(
            arguments,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if has_errors else subprocess.DEVNULL,
            cwd=self.root,
            env=self._environment,
            start_new_session=True,
            bufsize=0,
        )
        loop = asyncio.get_running_loop()
        self._input, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, process.stdin)
        self._transports.append(self._input)
        self._output = await self._reader(process.stdout)
        if has_errors:
            self._messages = await self._reader(process.stderr)

    async def _reader(self, pipe: object) -> asyncio.StreamReader:
        reader = asyncio.StreamReader()
        transport, _ = await asyncio.get_running_loop().connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), pipe
        )
        self._transports.append(transport)
        return reader

    def write(self, data: bytes, *, end: bool = False) -> None:
        """Send data without waiting; with `end` nothing follows."""
        self._input.write(data)
        if end and not self._input.is_closing():
            self._input.write_eof()

    async def read(self, most: int, *, until_line: bool = False) -> bytes:
        """Return what the process writes: one line, or everything until it ends.

        A line without a line end means that the process has ended. Raises `ApplicationError` for
        more than `most` bytes.
        """
        received = bytearray()
        has_ended = False
        while not (until_line and received.endswith(b"\n")):
            try:
                async with asyncio.timeout(_POLL):
                    chunk = await self._output.read(_AT_ONCE)
            except TimeoutError:
                if has_ended:  # something that it started has the pipe open
                    break
                has_ended = self.status is not None
                continue
            if not chunk:
                break
            received += chunk
            if len(received) > most:
                raise ApplicationError(f"{self.name} answered with more than {most:,} bytes")
        return bytes(received)

    async def read_errors(self) -> None:
        """Keep the end of what the process writes to its standard error."""
        while chunk := await self._messages.read(_AT_ONCE):
            self.errors = (self.errors + chunk)[-self.most_errors :]

    @property
    def status(self) -> int | None:
        """Return the exit status; None while it runs."""
        return self._process.poll() if self._process else None

    async def ended(self, seconds: float = math.inf) -> int | None:
        """Return the exit status of a process whose output is closed; None if it keeps running."""
        until = time.monotonic() + seconds
        while self.status is None and time.monotonic() < until:
            await asyncio.sleep(_POLL)
        return self.status

    def end(self) -> None:
        """End the process with all that it has started."""
        for transport in self._transports:
            if transport.is_closing():
                continue
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()
            else:
                transport.close()
        process, self._process = self._process, None
        if process is not None:
            kill_group(process)
            process.kill()
            process.wait()
        self._folder.cleanup()


class _FunctionProcess(_Process):
    """A process that has loaded a Python function, for one call after the other."""

    def __init__(
        self, application: Application, environment: Mapping[str, str], longest: int
    ) -> None:
        super().__init__(application, environment)
        self._path, self._function = application.arguments
        self._longest = longest
        self._number = 0
        """The number of the newest request; a reply with another number is ignored."""

    async def load(self) -> None:
        """Start the process and load the file; raises `ApplicationError` and `OSError`."""
        await self.start(
            [sys.executable, "-I", "-B", str(PROGRAM), "application"], has_errors=False
        )
        setup = {"path": self._path, "function": self._function, "longest": self._longest}
        reply = await self._exchange(setup)
        if "error" in reply:
            raise self._error(reply, stops=not reply["transient"])

    async def ask(self, request: Json) -> Json:
        """Return the result of the function; raises `ApplicationError`.

        After an exception of the function the process can be used again (`is_fit`).
        """
        self.is_fit = False
        reply = await self._exchange(request)
        self.is_fit = True
        if "error" in reply:
            raise self._error(reply)
        return reply.get("result")

    async def _exchange(self, request: Json) -> Json:
        self._number += 1
        self.write(request_line(request, self._number))
        line = await self.read(self._longest + _AT_ONCE, until_line=True)
        if not line.endswith(b"\n"):
            raise ApplicationError(
                f"{self._path} ended its process{_how(await self.ended(_GRACE))}"
            )
        reply = read_reply(line, self._number)
        if reply is None:
            raise ApplicationError(f"{self._path} wrote to the output of its answer")
        return reply

    def _error(self, reply: Json, *, stops: bool = False) -> ApplicationError:
        line = reply["line"]
        place = self._path if line is None else f"{self._path}:{line}"
        hint = " (files of the workspace that it needs belong into 'uses')"
        return ApplicationError(
            f"{place}: {reply['error']}{hint if reply['missing'] else ''}",
            retry=reply["transient"],
            timeout=reply["timeout"],
            stops=stops,
        )


class ApplicationCalls:
    """Calls one application; any number of calls may run at the same time.

    The processes of a Python function are kept for further calls; a program is started for each.
    """

    def __init__(
        self,
        application: Application,
        environment: Mapping[str, str],
        longest: int,
        secrets: Sequence[str] = (),
    ) -> None:
        """`longest` is the most bytes of an answer as JSON.

        `secrets`, the longest first, are replaced in messages.
        """
        self._secrets = secrets
        self._application = application
        self._environment = environment
        self._longest = longest
        self._idle: list[_FunctionProcess] = []
        self._busy: set[_Process] = set()

    async def call(self, request: Json) -> tuple[Json, float]:
        """Return the answer to a request and its duration in seconds; raises `ApplicationError`.

        The answer of a program is a text. When the call is cancelled, its process is ended.
        """
        is_function = self._application.kind == PYTHON
        try:
            return await (self._call_function if is_function else self._call_program)(request)
        except OSError as error:
            message = f"{self._application.code} cannot be started: {error.strerror or error}"
            stops = isinstance(error, FileNotFoundError | PermissionError)
            raise ApplicationError(message, stops=stops) from error

    def close(self) -> None:
        """End all processes."""
        for process in (*self._idle, *self._busy):
            process.end()
        self._idle.clear()
        self._busy.clear()

    async def _call_function(self, request: Json) -> tuple[Json, float]:
        process = self._take_idle()
        is_new = process is None
        if process is None:
            process = _FunctionProcess(self._application, self._environment, self._longest)
        self._busy.add(process)
        try:
            if is_new:
                await process.load()
            began = time.monotonic()
            return await process.ask(request), time.monotonic() - began
        finally:
            self._release(process)

    def _take_idle(self) -> _FunctionProcess | None:
        while self._idle:
            process = self._idle.pop()
            if process.status is None:
                return process
            process.end()
        return None

    def _release(self, process: _FunctionProcess) -> None:
        if process not in self._busy:  # closed in the meantime
            return
        self._busy.discard(process)
        if process.is_fit:
            self._idle.append(process)
        else:
            process.end()

    async def _call_program(self, request: Json) -> tuple[Json, float]:
        process = _Process(self._application, self._environment)
        longest = max((len(secret.encode()) for secret in self._secrets), default=0)
        process.most_errors = _MOST_STDERR + longest
        self._busy.add(process)
        name, *arguments = self._application.arguments
        if "/" in name and not Path(name).is_absolute():
            name = str(process.root / name)
        try:
            began = time.monotonic()
            await process.start([name, *arguments], has_errors=True)
            errors = asyncio.create_task(process.read_errors())
            try:
                process.write(json.dumps(request).encode(), end=True)
                answer = await process.read(self._longest)
                status = await process.ended()
                await asyncio.wait([errors], timeout=_POLL)
            finally:
                errors.cancel()
            if status != 0:
                words = _last_lines(process.errors, self._secrets)
                raise ApplicationError(
                    f"{self._application.code} ended{_how(status)}{f': {words}' if words else ''}",
                    retry=status == _TRY_AGAIN,
                )
            return answer.decode("utf-8", "replace"), time.monotonic() - began
        finally:
            self._busy.discard(process)
            process.end()


def _how(status: int | None) -> str:
    """Describe how a process ended, as the end of a sentence."""
    if status is None:
        return " by closing its output"
    if status < 0:
        known = -status in {*signal.Signals}
        return f" by {signal.Signals(-status).name if known else f'signal {-status}'}"
    return f" with status {status}"


def _last_lines(errors: bytes, secrets: Sequence[str]) -> str:
    """Return the last lines of an output without secrets.

    Secrets are replaced before the text is shortened. A beginning that may be a part of a secret
    is cut off.
    """
    for secret in secrets:
        errors = errors.replace(secret.encode(), b"*" * len(secret.encode()))
    text = re.sub(r"\*{8,}", "***", errors[-_MOST_STDERR:].decode("utf-8", "replace"))
    return "\n".join([line for line in text.splitlines() if line.strip()][-_LAST_LINES:])
