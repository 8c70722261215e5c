"""Calls functions, and searches patterns, in a process with limits of processor time and memory.

A template, a schema, a pattern or a path can take any time and memory, and Python cannot stop it
in the same process. So callers first decide whether its cost is bounded by its size; if not, it is
evaluated here. The process is like those of Python checks: it has no network, no keys and an empty
folder. It is started on first use, and ended when a limit is reached.
"""

from __future__ import annotations

import atexit
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core.errors import NotRunError
from evalstore.core.values import Json

if TYPE_CHECKING:
    import regex

    from evalstore.files.processes.pool import Code, Workers


class DataItem(dict[str, Json]):
    """A row: its values by the names of their columns, or by the names as written.

    In templates `item.items` is the column `items`, if the file has one; see
    `evalstore.files.jinja_sandbox`. In Python `item.items` is always the method.
    """

    __slots__ = ("__aliases", "__known")

    def __init__(
        self, values: Mapping[str, Json], known: Set[str], aliases: Mapping[str, str]
    ) -> None:
        """`known` are all columns of the file; `aliases` are the names as written of some."""
        super().__init__(values)
        self.__known, self.__aliases = known, aliases

    def __missing__(self, name: str) -> Json:
        """Return the value by the name as written."""
        known = self.__aliases.get(name)
        if known is None or not dict.__contains__(self, known):
            raise KeyError(name)
        return dict.__getitem__(self, known)

    def __contains__(self, name: object) -> bool:
        """Return whether this row has a value for the column of that name."""
        if dict.__contains__(self, name):
            return True
        known = self.__aliases.get(name) if isinstance(name, str) else None
        return known is not None and dict.__contains__(self, known)

    def get(self, name: str, default: Json = None) -> Json:
        """Return the value of a column by either of its names."""
        try:
            return self[name]
        except KeyError:
            return default


def columns_of(item: DataItem) -> tuple[Set[str], Mapping[str, str]]:
    """Return the columns of a row and their names as written; templates could call a method."""
    return getattr(item, "_DataItem__known"), getattr(item, "_DataItem__aliases")  # noqa: B009 - mypy does not know mangled names


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
    columns = {name: columns_of(item) for name, item in items.items()}
    return {
        "values": {**values, **{name: dict(row) for name, row in items.items()}},
        "items": {
            name: [sorted(known), dict(aliases)] for name, (known, aliases) in columns.items()
        },
    }


def decode_names(document: Json) -> dict[str, Json]:
    """Return the inverse of `encode_names`."""
    values: dict[str, Json] = document["values"]
    for name, (known, aliases) in document["items"].items():
        values[name] = DataItem(values[name], frozenset(known), aliases)
    return values


_FLAGS = {"ignoreCase": "I", "multiline": "M", "dotAll": "S", "verbose": "X", "ascii": "A"}
SECONDS = 1.0
"""Time limit of one pattern on one answer."""


@lru_cache(maxsize=512)
def compiled(pattern: str, flags: frozenset[str] = frozenset()) -> regex.Pattern[str]:
    """Compile a valid pattern."""
    import regex

    bits = regex.VERSION0
    for flag in flags:
        bits |= getattr(regex, _FLAGS[flag])
    return regex.compile(pattern, bits)


def pattern_problem(pattern: str, flags: frozenset[str] = frozenset()) -> str | None:
    """Return why a pattern is not a regular expression; None when it is valid.

    A pattern that may be large when it is compiled is tried with limits of time and memory first.
    """
    if not is_small(pattern):
        try:
            problem: str | None = call(__name__, "compile_problem", pattern, sorted(flags))
        except (LimitReached, NotRunError) as reason:
            return f"when it is compiled, {reason}"
        return problem
    return compile_problem(pattern, flags)


def compile_problem(pattern: str, flags: Iterable[str]) -> str | None:
    """Return why a pattern cannot be compiled; None when it can."""
    import regex

    try:
        compiled(pattern, frozenset(flags))
    except regex.error as error:
        return str(error)
    except (RecursionError, OverflowError, ValueError) as error:
        return str(error) or "it is too deep"
    return None


def has_match(pattern: str, text: str, flags: frozenset[str] = frozenset()) -> bool:
    """Return whether a pattern is found in a text; raises `LimitReached`."""
    if is_cheap_pattern(pattern, len(text)):
        with suppress(TimeoutError):
            return compiled(pattern, flags).search(text, timeout=SECONDS) is not None
    matches: bool = call(__name__, "search", pattern, text, sorted(flags))
    return matches


def search(pattern: str, text: str, flags: Iterable[str]) -> bool:
    """Return whether a pattern is found in a text, without limits of time."""
    return compiled(pattern, frozenset(flags)).search(text) is not None


# --- the cost of a pattern, estimated from its text
#
# With `k` repetitions side by side a text of `n` characters can be divided in about `n ** k` ways.
# A repeated group, a reference back and a recursion have no such bound. Those patterns are not
# refused: they are matched with limits.


_MOST_TRIES = 100_000_000
"""The number of ways that are tried in a fraction of a second."""
_COUNTED = re.compile(r"\{(\d*),?(\d*)\}")
_RECURSION = re.compile(r"\(\?(?:[R0-9&+-]|P>)")
_MOST_COPIES = 20_000
"""Copies of a part of a pattern that its counted repetitions may make."""
_MOST_DIGITS = 9
_LONGEST = 2_000
"""Characters of a pattern."""
_FLAGS_FIRST = re.compile(r"\A\(\?[aimsu]+\)")
_SINGLE = re.compile(
    r"\\[^1-9gkKGLX]|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]\\])*\]",
    re.DOTALL,
)
"""An escape or a set, each of which stands for one character."""
_COSTLY = re.compile(r"\)[*+{]|[*+?}][*{]|\\|\(\?(?!:|<?[=!]|P?<\w+>)")
"""A repeated group, a repetition of a repetition, a reference back, or a group of another kind."""
_MANY = re.compile(r"(?:[*+]|\{\d*,\})[?+]?")
_EXACT = re.compile(r"\{\d{1,2}\}")
_RANGE = re.compile(r"\{(\d{0,2}),(\d{1,2})\}")
_GROUP = re.compile(r"\((?:\?(?::|<?[=!]|P?<\w+>))?([^()]*)\)")
"""A group without groups in it."""


def is_small(pattern: str) -> bool:
    """Return whether the compiled pattern is small, however long it takes to match."""
    if len(pattern) > _LONGEST or _RECURSION.search(pattern):
        return False
    size = 1
    for repeats in _COUNTED.finditer(pattern):
        size *= max(int(repeats[2][:_MOST_DIGITS] or repeats[1][:_MOST_DIGITS] or 1), 1)
    return size <= _MOST_COPIES


@lru_cache(maxsize=1024)
def is_cheap_pattern(pattern: str, size: int) -> bool:
    """Return whether a pattern tries few ways on a text of this size, and compiles quickly."""
    rest = _SINGLE.sub("a", _FLAGS_FIRST.sub("", pattern[: _LONGEST + 1]))
    if len(pattern) > _LONGEST or _COSTLY.search(rest):
        return False
    rest, unbounded = _MANY.subn("", rest)
    ways = math.prod(int(most) - int(least or 0) + 1 for least, most in _RANGE.findall(rest))
    rest = _RANGE.sub("", _EXACT.sub("", rest))
    while groups := _GROUP.findall(rest):
        ways *= math.prod((1 << group.count("?")) * (group.count("|") + 1) for group in groups)
        rest = _GROUP.sub("", rest)
    if any(sign in rest for sign in "(){}"):
        return False
    ways *= (1 << rest.count("?")) * (rest.count("|") + 1)
    is_anchored = pattern.startswith(("^", r"\A")) and "|" not in rest
    repeats = unbounded + (not is_anchored)
    return bool(ways * max(size, 10) ** repeats <= _MOST_TRIES)
