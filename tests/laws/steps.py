"""Counts what a command does: lines of evalstore, comparisons of texts, and SQLite's work."""

from __future__ import annotations

import sqlite3
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any
from unittest import mock

import evalstore
from evalstore.core import hashing
from evalstore.store import contents
from evalstore.store.sqlite.connection import harden
from evalstore.workspace.folder import WorkspaceFolder

_PACKAGE = str(Path(evalstore.__file__).parent)
_INSTRUCTIONS = 50
"""SQLite counts its own work in batches of so many instructions."""


@dataclass
class Steps:
    """What was done between the beginning and the end of `counted`."""

    lines: Counter[str] = field(default_factory=Counter)
    """Lines executed, by the function they are in; a loop on one line counts each turn."""
    comparisons: Counter[str] = field(default_factory=Counter)
    """Comparisons of paths and ids, by the function that made them."""
    selects: Counter[str] = field(default_factory=Counter)
    """Statements that read, by their text."""
    instructions: int = 0
    """What SQLite's virtual machine has executed, in batches."""


class _Compared(str):
    """A text that counts how often it is compared with another one: `in` of a list does so."""

    __slots__ = ()
    steps: Steps | None = None
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        if _Compared.steps is not None:
            _Compared.steps.comparisons[_name(sys._getframe(1).f_code)] += 1
        return str.__eq__(self, other)


class _Lines:
    """Counts the lines of one function that are executed; those of others are not looked at."""

    def __init__(self, code: CodeType) -> None:
        self.code = code
        count = 0

        def trace(_frame: FrameType, event: str, _argument: Any) -> Any:
            nonlocal count
            if event == "line":
                count += 1
            return trace

        def read() -> int:
            return count

        self.trace = trace if code.co_filename.startswith(_PACKAGE) else None
        self.count = read


def _name(code: CodeType) -> str:
    return f"{code.co_filename.removeprefix(_PACKAGE)}:{code.co_qualname}"


@contextmanager
def counted() -> Iterator[Steps]:
    """Count the steps of what is done in this context, in all threads that begin in it."""
    steps = Steps()

    # By their ids: the hash of a code object is computed from all that it holds, every time.
    functions: dict[int, _Lines] = {}

    def trace(frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        value = functions.get(id(code))
        if value is None:
            value = functions[id(code)] = _Lines(code)
        return value.trace

    def work() -> int:
        steps.instructions += 1
        return 0

    def count_select(statement: str) -> None:
        if statement.lstrip().upper().startswith(("SELECT", "WITH")):
            steps.selects[statement.split(" IN (")[0].split("= ")[0][:150]] += 1

    def watch(connection: sqlite3.Connection) -> None:
        harden(connection)
        connection.set_progress_handler(work, _INSTRUCTIONS)
        connection.set_trace_callback(count_select)

    before = sys.gettrace()
    with mock.patch("evalstore.store.sqlite.driver.harden", watch), _comparing():
        _Compared.steps = steps
        threading.settrace(trace)
        sys.settrace(trace)
        try:
            yield steps
        finally:
            sys.settrace(before)
            threading.settrace(before)
            _Compared.steps = None
    for value in functions.values():
        if value.trace:
            steps.lines[_name(value.code)] += value.count()


@contextmanager
def _comparing() -> Iterator[None]:
    """Make paths and ids count their comparisons."""
    find_files = WorkspaceFolder.find_files

    def find(*arguments: Any) -> Any:
        return {_Compared(path): stamp for path, stamp in find_files(*arguments).items()}

    intern, kept = sys.intern, dict[str, str]()

    def intern_one(text: str) -> str:
        return kept.setdefault(text, text) if isinstance(text, _Compared) else intern(text)

    with (
        mock.patch.object(WorkspaceFolder, "find_files", find),
        mock.patch.object(sys, "intern", intern_one),
    ):
        undo = _replace(
            {
                hashing.hash_bytes: lambda made: lambda data: _Compared(made(data)),
                hashing.hash_content: lambda made: lambda text: _Compared(made(text)),
                contents.as_digits: lambda made: lambda value: _Compared(made(value)),
            }
        )
        try:
            yield
        finally:
            undo()


def _replace(wrappers: Mapping[Any, Callable[[Any], Callable[..., Any]]]) -> Callable[[], None]:
    """Replace functions in all modules that have imported them; returns how to undo that."""
    others = {id(function): (function, wrap(function)) for function, wrap in wrappers.items()}
    places = [
        (module, name, *others[id(value)])
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("evalstore")
        for name, value in list(vars(module).items())
        if id(value) in others
    ]
    for module, name, _, other in places:
        setattr(module, name, other)

    def undo() -> None:
        for module, name, function, _ in places:
            setattr(module, name, function)

    return undo
