"""The heap of the process: threads share it, and collections of garbage are short.

A collection of garbage stops the screen while it looks through what was made lately, or through
everything. So it looks at less at once, and the cases of large pages, of which none is garbage as
long as its page is open, are left out of it.
"""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from contextlib import suppress

_ARENA_MAX = -8
"""`M_ARENA_MAX` of glibc's `mallopt`."""


_THRESHOLDS = (10_000, 5, 100)
"""New objects before a collection looks through them, some milliseconds; those before that does so
for the objects of the last ones; and those before all are looked through."""
MANY = 20_000
"""Cases that are left out of collections."""
_COLLECT_SECONDS = 1.0


def collect_little_at_once() -> None:
    """Let each collection of garbage be short."""
    gc.set_threshold(*_THRESHOLDS)


class LargePages:
    """The open pages with very many cases, which are left out of collections."""

    def __init__(self, later: Callable[[float, Callable[[], None]], object]) -> None:
        """`later` calls a function after so many seconds."""
        self._open: set[int] = set()
        self._later = later

    def hold(self, page: object, cases: int) -> None:
        """Leave all that there is out of collections, if a page has got very many cases."""
        if cases >= MANY:
            self._open.add(id(page))
            gc.freeze()

    def release(self, page: object) -> None:
        """Take a page that was closed; after the last, everything is in collections again."""
        if id(page) in self._open:
            self._open.remove(id(page))
            if not self._open:
                gc.unfreeze()
                self._later(_COLLECT_SECONDS, self._collect)

    def _collect(self) -> None:
        """Collect what was left out, unless another page has very many cases by now."""
        if not self._open:
            gc.collect()


def share_heap() -> None:
    """Let threads use what others have freed; glibc gives each a part of its own and keeps it.

    With 100,000 cases the browser takes a tenth less memory. Elsewhere this does nothing.
    """
    with suppress(AttributeError, OSError, TypeError):  # no glibc
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
