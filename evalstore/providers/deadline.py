"""Limits the duration of a call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from evalstore.providers.base import ProviderError

_SLEPT = 1.0
"""Seconds. A timer that fires later than this was delayed because the process slept."""


@asynccontextmanager
async def deadline(timeout: float) -> AsyncIterator[None]:
    """Limit the block to `timeout` seconds; raises `ProviderError` when they have passed.

    Time in which this process sleeps (a closed laptop, a stopped process) does not count, so that
    an answer that arrived in the meantime is read.
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
