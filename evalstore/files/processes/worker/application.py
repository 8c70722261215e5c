"""Runs one Python function of a workspace as a model; requests and answers are single lines.

`__main__.py` starts it, in isolated mode, in a folder with copies of the trusted files, and
imports nothing of evalstore. The output of the function is discarded. When evalstore ends for any
reason, this process and all processes that it has started end.
"""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import os
import queue
import resource
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

NAME = "evalstore_application"
"""The name of the module that the file becomes."""
_LONGEST_MESSAGE = 65_536
"""More characters than are shown, because secrets are replaced before a message is shortened."""
_TRANSIENT = (ConnectionError, TimeoutError)
"""Exceptions after which the call is made again."""
LineOf = Callable[[BaseException, str], int | None]
"""Returns the innermost line of a file in the traceback of an exception."""


def main(requests: IO[bytes], replies: IO[bytes], line_of: LineOf) -> None:
    """Load the file that the first line names, then answer requests."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, lines), daemon=True).start()
    send = _Sender(replies)
    setup = json.loads(lines.get())
    function = _Function(Path(setup["path"]), setup["function"], setup["longest"], line_of)
    send({"number": setup["number"], **function.problem})
    while True:
        request = json.loads(lines.get())
        send({"number": request["number"], **function.answer(request)})


def _read(requests: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Queue the requests; after the last, end this process and those that it has started."""
    for line in requests:
        lines.put(line)
    os.killpg(os.getpgrp(), signal.SIGKILL)


class _Sender:
    """Writes replies, in this process only: a copy made by `os.fork` ends instead."""

    def __init__(self, replies: IO[bytes]) -> None:
        self._replies = replies
        self._process = os.getpid()

    def __call__(self, reply: dict[str, Any]) -> None:
        if os.getpid() != self._process:
            os._exit(0)
        self._replies.write(json.dumps(reply).encode() + b"\n")
        self._replies.flush()


class _Function:
    """The function of the loaded file."""

    def __init__(self, path: Path, name: str, longest: int, line_of: LineOf) -> None:
        """`longest` is the most characters of a returned value, as JSON."""
        self._path = path
        self._line_of = line_of
        self._longest = longest
        self._runner = asyncio.Runner()
        self._call: Callable[..., Any] = lambda *_arguments: None
        self.problem: dict[str, Any] = {}
        """The reason why the file cannot be loaded; empty when it is loaded."""
        try:
            self._call = self._load(name)
        except BaseException as error:  # noqa: BLE001 - also SystemExit
            self.problem = self._describe(error)

    def _load(self, name: str) -> Callable[..., Any]:
        root = Path.cwd()
        sys.path[:0] = list(dict.fromkeys((str((root / self._path).parent), str(root))))
        spec = importlib.util.spec_from_file_location(NAME, root / self._path)
        assert spec
        assert spec.loader
        module = importlib.util.module_from_spec(spec)
        sys.modules[NAME] = module
        spec.loader.exec_module(module)
        function = getattr(module, name, None)
        if not callable(function):
            raise TypeError(f"it has no function '{name}'")
        return function  # type: ignore[no-any-return]

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        """Return the result of the function, or the error with its line."""
        try:
            options = _accepted(self._call, request["options"])
            returned = self._call(request["messages"], **options)
            if inspect.isawaitable(returned):
                returned = self._runner.run(_wait_for(returned))
            text = json.dumps(returned, default=_refuse, allow_nan=False)
            if len(text) > self._longest:
                most = f"{self._longest:,}"
                raise ValueError(f"it returned {len(text):,} characters; the limit is {most}")
            return {"result": json.loads(text)}
        except BaseException as error:  # noqa: BLE001 - also SystemExit
            if not isinstance(error, Exception):  # its event loop may have stopped midway
                self._runner = asyncio.Runner()
            return self._describe(error)

    def _describe(self, error: BaseException) -> dict[str, Any]:
        is_syntax = isinstance(error, SyntaxError)
        line = error.lineno if is_syntax else self._line_of(error, str(Path.cwd() / self._path))  # type: ignore[attr-defined]
        try:
            words = str(error.msg if is_syntax else error)  # type: ignore[attr-defined]
        except BaseException:  # noqa: BLE001 - the exception is the function's own
            words = ""
        kind = type(error).__name__
        return {
            "error": f"{kind}: {words[:_LONGEST_MESSAGE]}" if words else kind,
            "line": line,
            "transient": isinstance(error, _TRANSIENT),
            "timeout": isinstance(error, TimeoutError),
            "missing": isinstance(error, ModuleNotFoundError),
        }


async def _wait_for(awaitable: Any) -> Any:
    return await awaitable


def _accepted(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """Return the options for which a function has parameters."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return options
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return options
    by_name = {
        parameter.name
        for parameter in list(parameters)[1:]
        if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    }
    return {name: value for name, value in options.items() if name in by_name}


def _refuse(value: Any) -> Any:
    raise TypeError(f"it returned a value of the type '{type(value).__name__}', which is not JSON")
