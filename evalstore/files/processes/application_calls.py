"""Calls applications in processes of their own.

Each process has a session of its own and a folder with copies of the application's files, and
nothing else of the workspace. Its environment has the variables that its user has agreed to, and a
few that every program needs. It is ended with all it has started when a call is late or cancelled.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from evalstore.core.values import Json
from evalstore.files.processes.application import PYTHON, Application
from evalstore.files.processes.pool import AT_ONCE, PROGRAM, Child, signal_name

_KEPT = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
"""The environment variables that every application gets."""
_GRACE = 1.0
"""Seconds that a process has to end after it has closed its pipes."""
_MOST_CALLS = 1_000
"""The most calls at the same time."""
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


class _Call:
    """One call, which runs in a thread and may be stopped by another one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: Child | None = None
        self._is_stopped = False

    def use(self, child: Child | None) -> None:
        """Say which process makes the call; none when it is made."""
        with self._lock:
            self._child = child
            if child and self._is_stopped:
                child.kill()

    def stop(self) -> None:
        """Kill the process that makes the call."""
        with self._lock:
            self._is_stopped = True
            if self._child:
                self._child.kill()


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
        self._longest = longest
        self._environment = {
            **{name: os.environ[name] for name in _KEPT if name in os.environ},
            **environment,
        }
        self._idle: list[Child] = []
        self._calls: set[_Call] = set()
        self._threads = ThreadPoolExecutor(_MOST_CALLS)
        self._is_closed = False

    async def call(self, request: Json) -> tuple[Json, float]:
        """Return the answer to a request and its duration in seconds; raises `ApplicationError`.

        The answer of a program is a text. When the call is cancelled, its process is ended.
        """
        is_function = self._application.kind == PYTHON
        make = self._call_function if is_function else self._call_program
        call = _Call()
        self._calls.add(call)
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, make, request, call
            )
        except asyncio.CancelledError:
            call.stop()
            raise
        except OSError as error:
            message = f"{self._application.code} cannot be started: {error.strerror or error}"
            stops = isinstance(error, FileNotFoundError | PermissionError)
            raise ApplicationError(message, stops=stops) from error
        finally:
            self._calls.discard(call)

    def close(self) -> None:
        """End all processes."""
        self._is_closed = True
        for call in self._calls:
            call.stop()
        self._threads.shutdown()
        while self._idle:
            self._idle.pop().end()

    def _call_function(self, request: Json, call: _Call) -> tuple[Json, float]:
        child = self._take_idle()
        is_new, is_fit = child is None, False
        if child is None:
            arguments = [sys.executable, "-I", "-B", str(PROGRAM), "application"]
            child = Child(arguments, self._environment, self._application.files)
        call.use(child)
        try:
            if is_new:
                path, function = self._application.arguments
                setup = {"path": path, "function": function, "longest": self._longest}
                reply = self._ask(child, setup)
                if "error" in reply:
                    raise self._error(reply, stops=not reply.get("transient"))
            began = time.monotonic()
            reply = self._ask(child, request)
            is_fit = True  # also after an exception of the function
            if "error" in reply:
                raise self._error(reply)
            return reply.get("result"), time.monotonic() - began
        finally:
            call.use(None)
            if is_fit and not self._is_closed:
                self._idle.append(child)
            else:
                child.end()

    def _take_idle(self) -> Child | None:
        with suppress(IndexError):
            while True:
                child = self._idle.pop()
                if child.status() is None:
                    return child
                child.end()
        return None

    def _ask(self, child: Child, request: Json) -> Json:
        path, most = self._application.arguments[0], self._longest + AT_ONCE
        try:
            return child.ask(request, most)
        except OverflowError:
            words = f"{self._application.code} answered with more than {most:,} bytes"
        except EOFError:
            words = f"{path} ended its process{_how(child.status(_GRACE))}"
        except ValueError:
            words = f"{path} wrote to the output of its answer"
        raise ApplicationError(words)

    def _error(self, reply: Json, *, stops: bool = False) -> ApplicationError:
        path, line = self._application.arguments[0], reply.get("line")
        place = path if line is None else f"{path}:{line}"
        hint = " (files of the workspace that it needs belong into 'uses')"
        return ApplicationError(
            f"{place}: {reply['error']}{hint if reply.get('missing') else ''}",
            retry=bool(reply.get("transient")),
            timeout=bool(reply.get("timeout")),
            stops=stops,
        )

    def _call_program(self, request: Json, call: _Call) -> tuple[Json, float]:
        application = self._application
        longest = max((len(secret.encode()) for secret in self._secrets), default=0)
        began = time.monotonic()
        child = Child(
            application.arguments, self._environment, application.files, _MOST_STDERR + longest
        )
        call.use(child)
        try:
            try:
                answer = child.exchange(json.dumps(request).encode(), self._longest)
            except OverflowError:
                words = f"{application.code} answered with more than {self._longest:,} bytes"
                raise ApplicationError(words) from None
            if status := child.status():
                words = _last_lines(child.errors, self._secrets)
                raise ApplicationError(
                    f"{application.code} ended{_how(status)}{f': {words}' if words else ''}",
                    retry=status == _TRY_AGAIN,
                )
            return answer.decode("utf-8", "replace"), time.monotonic() - began
        finally:
            call.use(None)
            child.end()


def _how(status: int | None) -> str:
    """Describe how a process ended, as the end of a sentence."""
    if status is None:
        return " by closing its output"
    if status < 0:
        return f" by {signal_name(-status)}"
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
