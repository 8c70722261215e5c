"""Limits the answers that are processed in one iteration of the event loop.

Otherwise, answers that arrive in a burst would all be processed before the next question is sent,
and the next answers would arrive in a burst again.
"""

from __future__ import annotations

import asyncio
from collections import deque

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
