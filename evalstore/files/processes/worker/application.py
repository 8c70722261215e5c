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
Plain = Callable[[Any, int], Any]
"""`plain` of `__main__.py`."""
Describe = Callable[[BaseException, str, int], dict[str, Any]]
"""`describe` of `__main__.py`."""


def main(requests: IO[bytes], replies: IO[bytes], plain: Plain, describe: Describe) -> None:
    """Load the file that the first line names, then answer requests."""
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, lines), daemon=True).start()
    process = os.getpid()

    def send(reply: dict[str, Any]) -> None:
        if os.getpid() != process:  # a copy made by `os.fork`
            os._exit(0)
        replies.write(json.dumps(reply).encode() + b"\n")
        replies.flush()

    setup = json.loads(lines.get())
    function = _Function(setup, plain, describe)
    send({"number": setup["number"], **function.problem})
    while True:
        request = json.loads(lines.get())
        send({"number": request["number"], **function.answer(request)})


def _read(requests: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    """Queue the requests; after the last, end this process and those that it has started."""
    for line in requests:
        lines.put(line)
    os.killpg(os.getpgrp(), signal.SIGKILL)


class _Function:
    """The function of the loaded file."""

    def __init__(self, setup: dict[str, Any], plain: Plain, describe: Describe) -> None:
        """`setup` has the path of the file and the function, and `longest`.

        That is the most characters of a returned value, as JSON.
        """
        self._path = Path(setup["path"])
        self._plain, self._describe_error = plain, describe
        self._longest = setup["longest"]
        self._runner = asyncio.Runner()
        self._call: Callable[..., Any] = lambda *_arguments: None
        self.problem: dict[str, Any] = {}
        """The reason why the file cannot be loaded; empty when it is loaded."""
        try:
            self._call = self._load(setup["function"])
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
            return {"result": self._plain(returned, self._longest)}
        except BaseException as error:  # noqa: BLE001 - also SystemExit
            if not isinstance(error, Exception):  # its event loop may have stopped midway
                self._runner = asyncio.Runner()
            return self._describe(error)

    def _describe(self, error: BaseException) -> dict[str, Any]:
        return {
            **self._describe_error(error, str(Path.cwd() / self._path), _LONGEST_MESSAGE),
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
