"""How long a call may take."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evalstore.providers.base import ProviderError

_SLEPT = 1.0
"""Seconds. A timer that is later than that was held up by more than other work."""


@asynccontextmanager
async def deadline(timeout: float) -> AsyncIterator[None]:
    """Give what happens inside `timeout` seconds, then raise a `ProviderError`.

    While this process sleeps (a laptop that is closed, a process that is stopped) no time
    passes: an answer that came in the meantime is read.
    """
    loop = asyncio.get_running_loop()
    scope = asyncio.timeout(None)

    timers: list[asyncio.TimerHandle] = []

    def wait() -> None:
        timers.append(loop.call_later(timeout, expire, loop.time() + timeout))

    def expire(ends: float) -> None:
        if loop.time() - ends > _SLEPT:
            wait()
        else:
            scope.reschedule(loop.time())

    wait()
    try:
        async with scope:
            try:
                yield
            finally:
                timers[-1].cancel()
    except TimeoutError as late:
        raise ProviderError("timeout", f"no answer within {timeout:g} s", retry=True) from late
