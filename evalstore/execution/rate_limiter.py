"""Limits the calls of one account: at once, and in a minute; also their tokens, and pauses.

The time is an argument, in seconds of a monotonic clock. The number of concurrent calls starts low
and doubles with each round of answers while all of it is used. It is halved when the provider
refuses a call as too many, and then grows by one in each round.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST = 8
"""The initial number of concurrent calls, unless a quarter of the ceiling is more."""
COOL_DOWN = 10.0
"""Seconds in which several refusals count as one, because they answer the same burst."""


@dataclass(frozen=True, slots=True)
class Account:
    """An endpoint with a key, whose calls a provider counts together; None means no own limit."""

    name: str = ""
    place: str = ""
    """The endpoint, by the same name in all programs that call it; has no key."""
    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


DEFAULT_ACCOUNT = Account()


class RateLimiter:
    """Limits the rate of one account; `ceiling` is the most concurrent calls."""

    def __init__(
        self,
        ceiling: int,
        requests_per_minute: float | None = None,
        tokens_per_minute: float | None = None,
    ) -> None:
        self._ceiling = ceiling
        self._limit = float(min(ceiling, max(FIRST, ceiling // 4)))
        self._doubling = True
        self._cooling_until = self._paused_until = float("-inf")
        self._requests = _Window(requests_per_minute) if requests_per_minute else None
        self._tokens = _Window(tokens_per_minute) if tokens_per_minute else None
        self.busy = 0
        """The number of calls in flight."""

    @property
    def limit(self) -> int:
        """Return the current limit of concurrent calls."""
        return int(self._limit)

    @property
    def has_room(self) -> bool:
        """Return whether one more call may be started."""
        return self.busy < self.limit

    def succeeded(self, *, full: bool) -> None:
        """Note an answered call; the limit grows if it was reached (`full`) when the call began."""
        if full:
            grown = self._limit + (1.0 if self._doubling else 1.0 / self._limit)
            self._limit = min(float(self._ceiling), grown)

    def throttled(self, now: float) -> None:
        """Note a refusal for too many calls: halve the limit, but only once in `COOL_DOWN`."""
        if now < self._cooling_until:
            return
        self._doubling = False
        self._limit = max(1.0, self._limit / 2)
        self._cooling_until = max(now, self._paused_until) + COOL_DOWN

    def pause(self, now: float, seconds: float) -> None:
        """Start no call for this many seconds, as the provider has requested."""
        self._paused_until = max(self._paused_until, now + seconds)

    def reserve(self, now: float, tokens: int) -> float:
        """Reserve a call with this many tokens; returns the time at which it may start.

        While the account pauses, it may start only after `paused_until`.
        """
        start = now
        if self._requests:
            start = max(start, self._requests.reserve(now, 1))
        if self._tokens:
            start = max(start, self._tokens.reserve(now, tokens))
        return start

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit a minute."""
        return self._requests is not None or self._tokens is not None

    def share(self, runners: int) -> None:
        """Keep to a part of the limits a minute, as this many programs call the account."""
        for window in (self._requests, self._tokens):
            if window:
                window.share(runners)

    def correct(self, tokens: int) -> None:
        """Correct the reservation of a call by the tokens that it used more, or less."""
        if self._tokens:
            self._tokens.correct(tokens)

    @property
    def paused_until(self) -> float:
        """Return the time at which the account's pause ends."""
        return self._paused_until


class _Window:
    """An even rate of calls or tokens a minute, by virtual scheduling (GCRA).

    At most one second of unused rate can be used later.
    """

    def __init__(self, per_minute: float) -> None:
        self._whole_rate = self._rate = per_minute / 60
        self._next_free = float("-inf")

    def reserve(self, now: float, amount: float) -> float:
        start = max(now - 1.0, self._next_free)
        self._next_free = start + amount / self._rate
        return max(start, now)

    def share(self, runners: int) -> None:
        self._rate = self._whole_rate / runners

    def correct(self, amount: float) -> None:
        # An implausible count delays calls by a minute at most.
        self._next_free += min(amount / self._rate, 60.0)
