"""Programs that call one account divide its limit a minute, and who joins waits for the others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from evalstore.runs.execution.limits.rate_limiter import RateLimiter
from evalstore.runs.execution.model_calls import RunEnvironment
from evalstore.runs.execution.sharing.work_sharing import RunnerPresence
from evalstore.store import Store
from evalstore.store.leases import BEAT_SECONDS, Leases

ACCOUNT = "https://api.example.com account"
A_MINUTE = 620
"""Ten a second: the calls of a minute are spread over 62 seconds."""


@dataclass
class Clock:
    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class Program:
    """A program that calls the account."""

    store: Store
    clock: Clock
    place: str
    limiter: RateLimiter = field(default_factory=lambda: RateLimiter(100, A_MINUTE))

    def __post_init__(self) -> None:
        self.leases = Leases(self.store, monotonic=self.clock)
        self.leases.runner = self.leases.runner._replace(place=self.place)
        environment = RunEnvironment(
            now=lambda: 1,
            nonce=lambda: "",
            monotonic=self.clock,
            uptime=self.clock,
            jitter=lambda: 0.0,
        )
        self.presence = RunnerPresence(self.leases, environment)

    def join(self) -> None:
        asyncio.run(self.presence.share_accounts([(ACCOUNT, self.limiter)]))

    def beat(self) -> None:
        asyncio.run(self.presence._beat())

    def starts(self, count: int) -> list[float]:
        """In how many seconds each of the next calls may start."""
        now = self.clock.seconds
        slots = [self.limiter.reserve(now, 0) for _ in range(count)]
        return [self.limiter.start_of(slot, now) - now for slot in slots]


def test_who_joins_waits_until_the_others_know_of_it_and_all_keep_to_their_part(
    store: Store,
) -> None:
    clock = Clock()
    first, second = Program(store, clock, "here"), Program(store, clock, "elsewhere")
    first.join()
    assert first.starts(1)[0] < 1
    alone = first.starts(10)
    assert alone[-1] - alone[0] < 1
    second.join()
    # The first one hears of it with its next beat.
    waited = second.starts(1)[0]
    assert BEAT_SECONDS < waited < 2 * BEAT_SECONDS
    clock.seconds += BEAT_SECONDS
    first.beat()
    clock.seconds += BEAT_SECONDS
    both = [program.starts(101) for program in (first, second)]
    per_second = A_MINUTE / 62 / 2
    for starts in both:
        assert (100 - per_second) / (starts[-1] - starts[0]) < per_second * 1.05
    second.leases.leave()
    first.beat()
    again = first.starts(101)
    assert again[-1] - again[0] < 100 / (A_MINUTE / 62) * 1.05
