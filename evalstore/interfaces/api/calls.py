"""Calls operations inside an event loop, and turns system errors into `EvalstoreError`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from evalstore.core.errors import EvalstoreError

_T = TypeVar("_T")


@contextmanager
def system_errors() -> Iterator[None]:
    """Raise an `OSError` as an `EvalstoreError`."""
    try:
        yield
    except OSError as error:
        name = "" if error.filename is None else f"'{error.filename}': "
        raise EvalstoreError(f"{name}{error.strerror or error}") from error


def outside_of_a_loop(call: Callable[[], _T]) -> _T:
    """Make a call that runs an event loop, from inside another one too; return its result.

    A notebook has one in its thread: there the call is made in a thread of its own.
    """
    from concurrent.futures import ThreadPoolExecutor

    if not _is_in_a_loop():
        return call()
    with ThreadPoolExecutor(1, "evalstore") as executor:
        return executor.submit(call).result()


def _is_in_a_loop() -> bool:
    import asyncio

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
