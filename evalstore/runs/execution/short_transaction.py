"""Runs short transactions in the event loop, with a thread only while the store is locked.

Handing a transaction of a few rows to a thread takes longer than carrying it out. Only a wait for
another program, or for a server, needs a thread. What is in a thread goes on when its task is
cancelled, so the task waits for it: else a runner that has ended could register once more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeVar

from evalstore.core.errors import StoreLockedError

R = TypeVar("R", covariant=True)
T = TypeVar("T")


class Transaction(Protocol[R]):
    """A transaction that changes nothing when it raises `StoreLockedError`."""

    def __call__(self, *, wait: bool) -> R:
        """Carry out the transaction; `wait` is that of `Database.writing`."""


async def run_short_transaction(transaction: Transaction[R], *, is_remote: bool = False) -> R:
    """Carry out a transaction; in a thread if the store is remote, or another program writes."""
    if is_remote:
        return await run_in_thread(partial(transaction, wait=True))
    try:
        return transaction(wait=False)
    except StoreLockedError:
        return await run_in_thread(partial(transaction, wait=True))


async def run_in_thread(transaction: Callable[[], T]) -> T:
    """Carry out a transaction in a thread, to its end even if the waiting task is cancelled."""
    done = asyncio.ensure_future(asyncio.to_thread(transaction))
    try:
        return await asyncio.shield(done)
    except asyncio.CancelledError:
        while not done.done():
            with suppress(asyncio.CancelledError):
                await asyncio.wait({done})
        if not done.cancelled():
            done.exception()  # is not reported as one that nobody has seen
        raise
