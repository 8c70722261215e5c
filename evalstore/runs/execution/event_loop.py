"""Shares the event loop: bursts of answers, and short transactions.

Answers that arrive in a burst would all be processed before the next question is sent, and the next
answers would arrive in a burst again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

from evalstore.core.errors import StoreLockedError

_PER_ITERATION = 8


class BurstLimit:
    """Allows a few tasks to continue in each iteration of the event loop, in order."""

    def __init__(self) -> None:
        self._remaining = _PER_ITERATION
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def wait(self) -> None:
        """Wait for a turn."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_iteration)
        if self._remaining:
            self._remaining -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _begin_iteration(self) -> None:
        self._remaining = _PER_ITERATION
        while self._waiting and self._remaining:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._remaining -= 1
        self._scheduled = self._remaining < _PER_ITERATION
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._begin_iteration)


# --- short transactions: to hand one of a few rows to a thread takes longer than to carry it out
# Only a wait for another program, or for a server, needs a thread. What is in a thread goes on when
# its task is cancelled, so the task waits: else a runner that has ended could register once more.


T = TypeVar("T")


async def run_short_transaction(transaction: Callable[..., T], *, is_remote: bool) -> T:
    """Carry out a transaction; in a thread if the store is remote, or another program writes.

    Its argument `wait` is that of `Database.writing`. It changes nothing when it raises
    `StoreLockedError`.
    """
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
