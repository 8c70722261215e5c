"""Ends what a thread reads from a store when nobody waits for it any more.

The same for both databases: SQLite asks during a statement, and the server is told to end it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import local

from evalstore.errors import StoreError

GoOn = Callable[[], bool]
"""Returns whether somebody still waits for what is read."""


class UnwantedError(StoreError):
    """Nobody waits any more for what was read."""

    def __init__(self) -> None:
        super().__init__("this was not read to its end, as nobody waits for it any more")


class _Thread(local):
    go_on: GoOn | None = None


_thread = _Thread()


@contextmanager
def while_wanted(go_on: GoOn | None) -> Iterator[None]:
    """End what this thread reads in the block with `UnwantedError` once `go_on` returns False.

    None: it is read to its end.
    """
    before, _thread.go_on = _thread.go_on, go_on
    try:
        yield
    finally:
        _thread.go_on = before


def may_end() -> bool:
    """Return whether what this thread reads can be ended."""
    return _thread.go_on is not None


def is_unwanted() -> bool:
    """Return whether nobody waits any more for what this thread reads."""
    return _thread.go_on is not None and not _thread.go_on()


def refuse_unwanted() -> None:
    """Raise `UnwantedError` if nobody waits any more for what this thread reads."""
    if is_unwanted():
        raise UnwantedError
