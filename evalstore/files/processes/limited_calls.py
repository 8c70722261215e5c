"""Calls functions of this package in a process with limits of processor time and memory.

A template, a schema, a pattern or a path can take any time and memory, and Python cannot stop it
in the same process. So callers first decide whether its cost is bounded by its size; if not, it is
evaluated here. The process is like those of Python checks: it has no network, no keys and an empty
folder. It is started on first use, and ended when a limit is reached.
"""

from __future__ import annotations

import atexit
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core.errors import NotRunError
from evalstore.core.values import Json
from evalstore.files.processes.data_item import DataItem, FixedNames, column_names_of

if TYPE_CHECKING:
    from evalstore.files.processes.pool import Code, Workers

CPU_SECONDS = 2.0
"""Processor time that one computation may take."""
_FILE_SECONDS, _CALL_SECONDS = 10.0, 0.02
"""Processor time that all computations of one file may take: a base, and more for each."""
MEMORY = 768
"""MiB of address space of the process, of which the imported packages take about 200."""
LONGEST_RESULT = 40_000_000
"""Characters of the result of one computation, as JSON."""
_SECONDS = 8.0
"""Elapsed time that one computation may take; more, because a busy machine is slower."""
_SOURCE = """
import importlib
import sys
import time

def compute(given):
    function = getattr(importlib.import_module(given["module"]), given["function"])
    started = time.process_time()
    found = function(*given["arguments"])
    return [found, time.process_time() - started]

sys.path.append({root!r})
importlib.import_module({module!r})
"""


class LimitReached(Exception):  # noqa: N818 - the caller names what exceeded it
    """A computation exceeded its limit of time or memory; the message completes "it …"."""


def call(
    module: str,
    function: str,
    *arguments: Json,
    cpu_seconds: float | None = None,
    strict: bool = False,
) -> Json:
    """Call a function of a module of this package; arguments and result are JSON.

    Raises `LimitReached` when it takes more processor time than `cpu_seconds` (default:
    `CPU_SECONDS`) or more memory than `MEMORY`, when its result is too long, or when all
    computations of a file (`limited_together`) take too much time. Raises `NotRunError` when the
    process cannot be started or the machine is too busy; with `strict` also when the shell allows
    less than these limits. The function must not raise exceptions: it returns its errors.
    """
    from evalstore.files.processes.pool import CodeError

    cpu_seconds = cpu_seconds or CPU_SECONDS
    request = {
        "name": "compute",
        "isClass": False,
        "args": {},
        "given": {"module": module, "function": function, "arguments": arguments},
    }
    try:
        result, seconds = _workers().call(_code(module, strict), request, _SECONDS, cpu_seconds)
    except CodeError as error:
        message = str(error)
        if "used more processor time" in message:
            words = f"it takes more than {cpu_seconds:g} seconds of processor time"
        elif "MemoryError" in message:
            words = f"it needs more than {MEMORY} MiB of memory"
        elif "characters; the limit is" in message:
            words = f"its result is longer than {LONGEST_RESULT:,} characters"
        else:  # for example, the machine is too busy
            raise NotRunError(f"it could not be computed: {message}") from None
        raise LimitReached(words) from None
    if (left := _left.get()) is not None:
        left[0] += _CALL_SECONDS - seconds
        if left[0] < 0:
            words = f"with the others of this file it takes more than {_FILE_SECONDS:g} seconds"
            raise LimitReached(f"{words} of processor time")
    return result


_left: ContextVar[list[float] | None] = ContextVar("left", default=None)
"""The remaining time of the file that is being read."""


@contextmanager
def limited_together() -> Iterator[None]:
    """Limit the total time of all calls in the block, which are those of one file."""
    token = _left.set([_FILE_SECONDS])
    try:
        yield
    finally:
        _left.reset(token)


@cache
def _workers() -> Workers:
    from evalstore.files.processes.pool import Workers

    workers = Workers()
    atexit.register(workers.close)
    return workers


@cache
def _code(module: str, strict: bool) -> Code:
    """Return the program of a process, which loads the module before its time is taken."""
    from evalstore.files.processes.pool import Code

    source = _SOURCE.format(root=str(Path(__file__).parents[3]), module=module).encode()
    return Code(source, module, MEMORY, longest=LONGEST_RESULT, strict=strict)


# --- rows of data as JSON


def encode_names(values: Mapping[str, Json]) -> Json:
    """Return values by name as JSON; rows of data have the names of their columns."""
    items = {name: value for name, value in values.items() if isinstance(value, DataItem)}
    columns = {name: column_names_of(item) for name, item in items.items()}
    return {
        "values": {**values, **{name: dict(row) for name, row in items.items()}},
        "items": {
            name: [sorted(names.known), dict(names.aliases)] for name, names in columns.items()
        },
    }


def decode_names(document: Json) -> dict[str, Json]:
    """Return the inverse of `encode_names`."""
    values: dict[str, Json] = document["values"]
    for name, (known, aliases) in document["items"].items():
        values[name] = DataItem(values[name], FixedNames(frozenset(known), aliases))
    return values
