"""The heap of the process: threads share it, and collections of garbage are short.

A collection of garbage stops the screen while it looks through what was made lately, or through
everything. So it looks at less at once; what there is when the browser begins, which hardly ever
becomes garbage, is left out; and while a page with many cases is open, so is all that is old.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.worker import Worker

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's `mallopt`."""


_THRESHOLDS = (10_000, 5, 100)
"""New objects before a collection looks through them, some milliseconds; those before that does so
for the objects of the last ones; and those before all are looked through."""
MANY = 20_000
"""Cases with which not everything is looked through."""
_NEVER = 2**30
_COLLECT_SECONDS = 1.0
_leave_out = cache(gc.freeze)  # a second browser of a process would leave out the first one


def collect_little_at_once() -> None:
    """Let each collection of garbage be short, and leave out what there is by now."""
    gc.set_threshold(*_THRESHOLDS)
    _leave_out()


class LargePages:
    """The open pages with many cases: meanwhile not everything is looked through."""

    def __init__(
        self,
        later: Callable[[float, Callable[[], None]], object],
        workers: Iterable[Worker[Any]] = (),
    ) -> None:
        """`later` calls a function after so many seconds; what the workers read can be much."""
        self._open: set[int] = set()
        self._later = later
        self._workers = workers
        self._has_begun = False

    def hold(self, page: object, cases: int) -> None:
        """Look through nothing but what was made lately, if a page has got many cases."""
        if cases < MANY:
            return
        self._open.add(id(page))
        gc.set_threshold(*_THRESHOLDS[:2], _NEVER)
        if not self._has_begun:  # by now the modules that such a page needs have been loaded
            self._has_begun = True
            gc.freeze()

    def release(self, page: object) -> None:
        """Take a page that was closed; what the last one has left is collected."""
        if id(page) in self._open:
            self._open.remove(id(page))
            if not self._open:
                gc.set_threshold(*_THRESHOLDS)
                self._later(_COLLECT_SECONDS, self._collect)

    def _collect(self) -> None:
        """Collect what was left, once nothing is read; not if a page has many cases by now."""
        if self._open:
            return
        if any(worker.is_running for worker in self._workers):
            self._later(_COLLECT_SECONDS, self._collect)
        else:
            gc.collect()


def share_heap() -> None:
    """Let threads use what others have freed; glibc gives each a part of its own and keeps it.

    With 100,000 cases the browser takes a tenth less memory. Elsewhere this does nothing.
    """
    with suppress(AttributeError, OSError, TypeError):  # no glibc
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
