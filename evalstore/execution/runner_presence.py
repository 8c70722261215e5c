"""Shows other runs that this one is alive, and notices when it was silent for too long.

Runs that call one account divide its limits a minute.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.errors import StoreLockedError
from evalstore.store.leases import BEAT_SECONDS, SILENT_SECONDS

if TYPE_CHECKING:
    from evalstore.execution.model_calls import RunEnvironment
    from evalstore.execution.rate_limiter import RateLimiter
    from evalstore.store.leases import Leases

PlacedLimiter = tuple[str, "RateLimiter"]
"""The name of an account on all machines, and its rate limiter."""


class RunnerPresence:
    """The signs of life of one run."""

    def __init__(self, leases: Leases, environment: RunEnvironment) -> None:
        self._leases = leases
        self._environment = environment
        self._limiters: Sequence[PlacedLimiter] = ()
        self.on_beat: Callable[[], Awaitable[None]] | None = None
        """Called with each beat."""
        self._last_beat = self._environment.uptime()
        self._sleeps = 0

    async def keep_alive(self) -> None:
        """Show other runs every few seconds that this one is alive."""
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            self.count_sleeps()
            with suppress(StoreLockedError):  # the next beat will do
                if not await asyncio.to_thread(self._beat):
                    self._sleeps += 1  # others considered this run dead
                self._last_beat = self._environment.uptime()
                if self.on_beat:
                    await self.on_beat()

    def count_sleeps(self) -> int:
        """Return how often this run was silent so long that others may have considered it dead.

        Examples are a closed laptop, a stopped process, and a server that was away. Other runs may
        have taken over items that were claimed before.
        """
        now = self._environment.uptime()
        if now - self._last_beat > SILENT_SECONDS:
            self._sleeps += 1
            self._last_beat = now
        return self._sleeps

    def share_accounts(self, limiters: Sequence[PlacedLimiter]) -> None:
        """Divide the limits a minute of these accounts with other runs from now on.

        A run that is not the first one waits until the others know of it.
        """
        self._limiters = limiters
        self._leases.accounts = frozenset(place for place, _ in limiters)
        now = self._environment.monotonic()
        for place, sharers in self._divide().items():
            for other, limiter in limiters:
                if other == place and sharers > 1:
                    limiter.pause(now, BEAT_SECONDS)

    def _beat(self) -> bool:
        is_known = self._leases.beat()
        self._divide()
        return is_known

    def _divide(self) -> dict[str, int]:
        """Divide the limits of the accounts; returns how many runs use each."""
        sharers = self._leases.count_sharers() if self._limiters else {}
        for place, limiter in self._limiters:
            limiter.share(sharers[place])
        return sharers
