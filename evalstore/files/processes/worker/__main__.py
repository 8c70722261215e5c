"""Runs one Python file of a workspace: reads a request from each line, and writes a reply.

It is started as a script, in isolated mode, and imports nothing of evalstore. Before the file is
loaded the process limits its memory, and gives up core dumps, the network, and the standard
streams that the requests and replies use.
"""

from __future__ import annotations

import base64
import ctypes
import errno
import importlib.util
import json
import math
import os
import resource
import signal
import socket
import sys
import types
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

NAME = "evalstore_check"
"""The name of the file's module."""
_LONGEST_MESSAGE = 2_000
_FILE_BYTES = 64 * 2**20
"""The largest file that may be written."""
_OPEN_FILES = 256
_NEW_USER, _NEW_NET = 0x10000000, 0x40000000
_OF_THE_MACHINE = (errno.ENOSPC, errno.EDQUOT, errno.ENFILE)
"""Errors of the machine: a full disk, or too many open files."""


def main(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Set the limits of the first line, load the file of the second, then answer requests."""
    setup = json.loads(requests.readline())
    lacks = _limit(setup["memory"] * 2**20)
    if not _limit_cpu(setup["seconds"]):
        lacks = f"its shell does not allow {setup['seconds']:g} s of processor time (ulimit -t)"
    if not setup["strict"]:
        lacks = ""
    if not lacks and not setup["network"]:
        _shut_out_network()
    _send(replies, {"number": setup["number"], **({"lacks": lacks} if lacks else {})})
    load = json.loads(requests.readline())
    _limit_cpu(setup["loadSeconds"])
    answer = _Answerer(setup["path"], base64.b64decode(load["source"]), setup["longest"]).answer
    _send(replies, {"number": load["number"]})
    for line in requests:
        request = json.loads(line)
        is_allowed = _limit_cpu(request["seconds"]) or not setup["strict"]
        reply = answer(request) if is_allowed else {"isSpent": True}
        _send(replies, {**reply, "number": request["number"]})


def _take_pipes() -> tuple[IO[bytes], IO[bytes]]:
    """Return the two pipes, which `print`, `input` and programs that the file starts cannot use."""
    pipes = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    return pipes


def _send(replies: IO[bytes], reply: dict[str, Any]) -> None:
    replies.write(json.dumps(reply).encode() + b"\n")
    replies.flush()


# --- limits


def _limit(memory: int) -> str:
    """Set the limits; returns a message if the shell allows less than these.

    With lower limits the result of a check could depend on the shell.
    """
    lacks = ""
    for name, most, words in (
        (resource.RLIMIT_CORE, 0, ""),
        (resource.RLIMIT_AS, memory, f"{memory // 2**20} MiB of memory (ulimit -v)"),
        (resource.RLIMIT_FSIZE, _FILE_BYTES, "files of 64 MiB (ulimit -f)"),
        (resource.RLIMIT_NOFILE, _OPEN_FILES, f"{_OPEN_FILES} open files (ulimit -n)"),
    ):
        _, hard = resource.getrlimit(name)
        if hard != resource.RLIM_INFINITY and hard < most:
            lacks = f"its shell does not allow {words}"
            continue
        try:
            resource.setrlimit(name, (most, most))
        except (OSError, ValueError):  # some systems have a limit but refuse to set it
            continue
    return lacks


def _limit_cpu(seconds: float) -> bool:
    """Allow this much more processor time; returns whether the shell permits all of it.

    The timer is exact. Without a parent, the limit is what ends an endless loop, whatever the
    file does with the timer.
    """
    signal.setitimer(signal.ITIMER_PROF, seconds)
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    allowed = hard == resource.RLIM_INFINITY or most <= hard
    resource.setrlimit(resource.RLIMIT_CPU, (most if allowed else hard, hard))
    return allowed


# --- the network


def _shut_out_network() -> None:
    """Disable the network permanently: in the kernel if possible, and in Python.

    In a network namespace of its own, a process and its children cannot reach the network. Where
    the system refuses one, only Python's sockets are disabled, which native code can circumvent.
    The namespace needs a user namespace, in which the process cannot read the environment of its
    parent.
    """
    with suppress(OSError, AttributeError):  # not Linux
        ctypes.CDLL(None).unshare(_NEW_USER | _NEW_NET)
    setattr(socket, "socket", _NoSocket)  # noqa: B010 - a type is not a plain attribute to mypy
    for name in ("getaddrinfo", "gethostbyname", "gethostbyname_ex", "gethostbyaddr"):
        setattr(socket, name, _refuse_network)


class _NoSocket(socket.socket):
    """A socket for this machine only."""

    def __init__(
        self, family: int = -1, type: int = -1, proto: int = -1, fileno: int | None = None
    ) -> None:
        if fileno is None and family != getattr(socket, "AF_UNIX", None):
            _refuse_network()
        super().__init__(family, type, proto, fileno)


def _refuse_network(*_arguments: Any, **_named: Any) -> Any:
    raise PermissionError("this check has no network: it needs 'network: true'")


# --- the file


class _Answerer:
    """Calls the functions of the file; if it cannot be loaded, every reply contains the reason."""

    def __init__(self, path: str, source: bytes, longest: int) -> None:
        """`longest` is the most characters of a returned value, as JSON."""
        self._path = path
        self._longest = longest
        self._module = types.ModuleType(NAME)
        self._module.__file__ = path
        self._problem: dict[str, Any] | None = None
        _module("lve_checkers").offer()
        sys.modules[NAME] = self._module
        try:
            exec(compile(source, path, "exec"), self._module.__dict__)
        except BaseException as error:  # noqa: BLE001 - also SystemExit
            self._problem = self._describe(error)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the reply to a request: the returned value, or the error with its line."""
        if self._problem:
            return self._problem
        try:
            return {"result": plain(self._call(request), self._longest)}
        except BaseException as error:  # noqa: BLE001 - also SystemExit
            return self._describe(error)

    def _call(self, request: dict[str, Any]) -> Any:
        name, facts, arguments = request["name"], request["given"], request["args"]
        target = getattr(self._module, name, None)
        if getattr(target, "__module__", NAME) != NAME:
            raise TypeError(f"'{name}' is not defined in the file itself, but imported")
        if not request["isClass"]:
            if not callable(target):
                raise TypeError(f"'{name}' is not a function")
            return target(facts, **arguments)
        if not isinstance(target, type):
            raise TypeError(f"'{name}' is not a class")
        shim = sys.modules["lve.checkers.base"]
        if issubclass(target, shim.BaseChecker):
            shim.refuse_own_names(name)
            return shim.judge(target(**arguments), facts)
        return target(**arguments)(facts)

    def _describe(self, error: BaseException) -> dict[str, Any]:
        if isinstance(error, OSError) and error.errno in _OF_THE_MACHINE:
            return {"lacks": str(error)}
        return describe(error, self._path, _LONGEST_MESSAGE)


def describe(error: BaseException, path: str, longest: int) -> dict[str, Any]:
    """Return an exception as a reply: its words, and the innermost line of a file in it."""
    line, place, said = None, error.__traceback__, error
    while place:
        if place.tb_frame.f_code.co_filename == path:
            line = place.tb_lineno
        place = place.tb_next
    if isinstance(error, SyntaxError):
        line, said = error.lineno, error.msg  # type: ignore[assignment]
    try:
        words = str(said)[:longest]
    except BaseException:  # noqa: BLE001 - the exception is the file's own
        words = ""
    kind = type(error).__name__
    return {"error": f"{kind}: {words}" if words else kind, "line": line}


def plain(value: Any, longest: int) -> Any:
    """Return a value as JSON, of at most `longest` characters."""
    text = json.dumps(value, default=_plain, allow_nan=False)
    if len(text) > longest:
        raise ValueError(f"it returned {len(text):,} characters; the limit is {longest:,}")
    return json.loads(text)


def _plain(value: Any) -> Any:
    """Return a number of numpy as a plain number."""
    if hasattr(value, "item") and hasattr(value, "dtype"):
        return value.item()
    raise TypeError(f"it returned a value of the type '{type(value).__name__}', which is not JSON")


def _module(name: str) -> Any:
    """Load a module beside this one, which isolated mode does not find on the path."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"_evalstore_{name}", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    if sys.argv[1:] == ["application"]:
        _module("application").main(*_take_pipes(), plain, describe)
    else:
        main(*_take_pipes())
