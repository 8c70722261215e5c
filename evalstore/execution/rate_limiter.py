"""How fast one account is called: calls at once, calls and tokens in a minute, pauses.

Pure: the time is passed in, as seconds of a clock that never goes back. The number of calls
at once starts low, doubles with every round of answers for as long as all of it is used, and
is halved when the provider refuses a call as too many; then it grows by one in a round.
"""

from __future__ import annotations

from dataclasses import dataclass

FIRST = 8
"""Calls at once to begin with, or a quarter of the ceiling if that is more."""
COOL_DOWN = 10.0
"""Seconds in which several refusals count as one: they answer the same burst of calls."""


@dataclass(frozen=True, slots=True)
class Account:
    """Calls that a provider counts together: an endpoint with a key; None: no limit of its own."""

    name: str = ""
    concurrency: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None


DEFAULT_ACCOUNT = Account()


class RateLimiter:
    """How fast one account may be called; `ceiling` is the most calls at once."""

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
        """Calls in flight."""

    @property
    def limit(self) -> int:
        """The most calls at once, for now."""
        return int(self._limit)

    @property
    def has_room(self) -> bool:
        """Whether one more call may be started."""
        return self.busy < self.limit

    def succeeded(self, *, full: bool) -> None:
        """A call was answered: more of them may run at once if it was `full` when it began."""
        if full:
            grown = self._limit + (1.0 if self._doubling else 1.0 / self._limit)
            self._limit = min(float(self._ceiling), grown)

    def throttled(self, now: float) -> None:
        """The provider was called too fast: halve the calls at once, at most once in a while."""
        if now < self._cooling_until:
            return
        self._doubling = False
        self._limit = max(1.0, self._limit / 2)
        self._cooling_until = max(now, self._paused_until) + COOL_DOWN

    def pause(self, now: float, seconds: float) -> None:
        """Start no call for so long, as the provider has asked."""
        self._paused_until = max(self._paused_until, now + seconds)

    def reserve(self, now: float, tokens: int) -> float:
        """Take a call of so many tokens into account; returns when it may start.

        It may start later than that while the account pauses: see `paused_until`.
        """
        start = now
        if self._requests:
            start = max(start, self._requests.reserve(now, 1))
        if self._tokens:
            start = max(start, self._tokens.reserve(now, tokens))
        return start

    def correct(self, tokens: int) -> None:
        """So many tokens more (or less) than reserved were used."""
        if self._tokens:
            self._tokens.correct(tokens)

    @property
    def paused_until(self) -> float:
        """When the account's pause ends."""
        return self._paused_until


class _Window:
    """An even flow of so many a minute, as virtual scheduling (GCRA) has it.

    At most a second's worth of what was not used is made up for.
    """

    def __init__(self, per_minute: float) -> None:
        self._rate = per_minute / 60
        self._next_free = float("-inf")

    def reserve(self, now: float, amount: float) -> float:
        start = max(now - 1.0, self._next_free)
        self._next_free = start + amount / self._rate
        return max(start, now)

    def correct(self, amount: float) -> None:
        # Whatever a server counts, it costs a minute at most.
        self._next_free += min(amount / self._rate, 60.0)
