"""Reads for a page as long as the page waits for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from evalstore.store.wanted import while_wanted

T = TypeVar("T")


class WantedReading(Generic[T]):
    """Something to read once. Then it is forgotten: the worker that has read it may stay."""

    def __init__(self, read: Callable[[], T], *, is_whole: bool) -> None:
        """Go on to the end with `is_whole`, because something is written."""
        self._read = [read]
        self._is_whole = is_whole

    def carry_out(self, is_cancelled: Callable[[], bool]) -> T:
        """Return what was read; raises `EvalstoreError` when it is cancelled meanwhile."""
        with while_wanted(None if self._is_whole else lambda: not is_cancelled()):
            return self._read.pop()()
