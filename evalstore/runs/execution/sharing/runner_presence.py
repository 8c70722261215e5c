"""Shows other runs that this one is alive, and notices when it was silent for too long.

Runs that call one account divide its limits a minute. One that has not heard of the others for a
while starts no calls of such an account: they may have considered it dead, and use its part.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.core.errors import StoreLockedError
from evalstore.runs.execution.short_transaction import run_in_thread
from evalstore.store.work.leases import BEAT_SECONDS, SILENT_SECONDS

if TYPE_CHECKING:
    from evalstore.runs.execution.limits.rate_limiter import RateLimiter
    from evalstore.runs.execution.model_calls import RunEnvironment
    from evalstore.store.work.leases import Leases

PlacedLimiter = tuple[str, "RateLimiter"]
"""The name of an account on all machines, and its rate limiter."""
_LONG_SILENCE = SILENT_SECONDS - BEAT_SECONDS
"""Seconds after which a run counts itself as silent: before others consider it dead."""
_NEWS_SECONDS = 1.5 * BEAT_SECONDS
"""Seconds after which others know of a change: those between two beats, and of a transaction."""


class RunnerPresence:
    """The signs of life of one run."""

    def __init__(self, leases: Leases, environment: RunEnvironment) -> None:
        self._leases = leases
        self._environment = environment
        self._limiters: Sequence[PlacedLimiter] = ()
        self.on_beat: Callable[[], Awaitable[None]] | None = None
        """Called with each beat."""
        self._last_beat = self._divided_at = environment.uptime()
        self._sleeps = 0

    async def keep_alive(self) -> None:
        """Show other runs every few seconds that this one is alive."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.count_sleeps()
            with suppress(StoreLockedError):  # the next beat will do
                await self._beat()
                if self.on_beat:
                    await self.on_beat()

    def count_sleeps(self) -> int:
        """Return how often this run was silent so long that others may have considered it dead.

        Examples are a closed laptop, a stopped process, and a server that was away. Other runs may
        have taken over items that were claimed before.
        """
        if not self._is_heard():
            self._sleeps += 1
            self._last_beat = self._environment.uptime()
        return self._sleeps

    def _is_heard(self) -> bool:
        return self._environment.uptime() - self._last_beat <= _LONG_SILENCE

    async def share_accounts(self, limiters: Sequence[PlacedLimiter]) -> None:
        """Divide the limits a minute of these accounts with other runs from now on.

        A run that is not the first one waits until the others know of it.
        """
        self._limiters = limiters
        self._leases.accounts = frozenset(place for place, _ in limiters)
        began = self._environment.uptime()
        sharers = await run_in_thread(self._leases.count_sharers)
        self._divide(sharers, began)
        now = self._environment.monotonic()
        for place, limiter in limiters:
            limiter.is_share_current = self._knows_sharers
            if sharers[place] > 1:
                limiter.begin_late(now, self._environment.jitter())
                limiter.pause(now, _NEWS_SECONDS)

    def _knows_sharers(self) -> bool:
        return self._environment.uptime() - self._divided_at <= _LONG_SILENCE

    async def _beat(self) -> None:
        began = self._environment.uptime()
        is_known = await run_in_thread(self._leases.beat)
        if not is_known:
            self._sleeps += 1  # others considered this run dead
        self._last_beat = began
        if self._limiters:
            if not (is_known and self._knows_sharers()):
                now = self._environment.monotonic()
                for _, limiter in self._limiters:
                    limiter.resume(now, _NEWS_SECONDS)
            self._divide(self._leases.sharers, began)

    def _divide(self, sharers: Mapping[str, int], began: float) -> None:
        """Divide the limits of the accounts among so many runs each, as known at this time."""
        now = self._environment.monotonic()
        for place, limiter in self._limiters:
            limiter.share(now, sharers[place])
        self._divided_at = began
