"""Bursts: only a few answers are dealt with in one round of the event loop.

Answers that come in a burst would else all be dealt with before the first of the next
questions is sent, and so the answers to those would come in a burst again.
"""

from __future__ import annotations

import asyncio
from collections import deque

_IN_A_ROUND = 8


class BurstLimit:
    """Lets a few pass in each round of the event loop, in the order in which they came."""

    def __init__(self) -> None:
        self._left = _IN_A_ROUND
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def wait(self) -> None:
        """Wait for a turn."""
        if not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._begin_round)
        if self._left:
            self._left -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _begin_round(self) -> None:
        self._left = _IN_A_ROUND
        while self._waiting and self._left:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                self._left -= 1
        self._scheduled = self._left < _IN_A_ROUND
        if self._scheduled:
            asyncio.get_running_loop().call_soon(self._begin_round)
