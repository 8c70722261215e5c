"""Limits the calls of one account: at once, and in a minute; also their tokens, and pauses.

The time is an argument, in seconds of a monotonic clock. The number of concurrent calls starts low
and doubles with each round of answers while all of it is used. It is halved when the provider
refuses a call as too many, and then grows by one in each round.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

FIRST = 8
"""The initial number of concurrent calls, unless a quarter of the ceiling is more."""
COOL_DOWN = 10.0
"""Seconds in which several refusals count as one, because they answer the same burst."""


_AHEAD_SECONDS = 5.0
"""Seconds of calls that are prepared while other programs share the account."""
_MINUTE = 62.0
"""Seconds over which the calls of a minute are spread, so that in no minute more arrive than the
limit allows: one second that was not used may be made up for, and a call is a second on its way."""
_LOOK_SECONDS = 0.5
"""Seconds until it is checked again whether there is news of the other programs."""


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


Slot = list[float]
"""The places of a call, one for each limit a minute of its account."""


class RateLimiter:
    """Limits the rate of one account; `ceiling` is the maximum of concurrent calls."""

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
        self._windows = [window for window in (self._requests, self._tokens) if window]
        self.tokens_per_minute = tokens_per_minute or math.inf
        """The limit of all programs together."""
        self._shared_at, self._sharers = 0.0, 1
        self.is_share_current: Callable[[], bool] = lambda: True
        """Returns whether it is known how many programs share the account; else no call starts."""
        self.busy = 0
        """The number of calls in flight."""

    @property
    def limit(self) -> int:
        """Return the current limit of concurrent calls."""
        return int(self._limit)

    @property
    def ahead(self) -> int:
        """Return how many calls to prepare before they may start.

        An account that is shared has few, as others could make them sooner.
        """
        if self._requests is None or self._sharers == 1:
            return self.limit
        return min(self.limit, 1 + int(_AHEAD_SECONDS * self._requests.rate))

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
        if now + seconds > self._paused_until:
            self._paused_until = now + seconds
            for window in self._windows:
                window.stop(now, self._paused_until)

    def reserve(self, now: float, tokens: int) -> Slot:
        """Reserve a call with about this many tokens; `start_of` returns when it may start."""
        return [each.reserve(now, tokens if each is self._tokens else 1) for each in self._windows]

    def start_of(self, slot: Slot, now: float) -> float:
        """Return when a reserved call may start, as far as is known now.

        It may start later if the account pauses or more programs share it meanwhile, so callers
        that have waited ask again.
        """
        places = zip(self._windows, slot, strict=True)
        start = max(now, self._paused_until, *(window.time_of(place) for window, place in places))
        return start if self.is_share_current() else max(start, now + _LOOK_SECONDS)

    @property
    def is_limited(self) -> bool:
        """Return whether there is a limit a minute."""
        return bool(self._windows)

    def share(self, now: float, runners: int) -> None:
        """Keep to a part of the limits a minute, as this many programs call the account."""
        self._shared_at, self._sharers = now, runners
        for window in self._windows:
            window.share(now, runners)

    def begin_late(self, now: float, part: float) -> None:
        """Let the first call wait for a part of the time between two calls.

        So programs that begin together do not call at the same moment.
        """
        for window in self._windows:
            window.begin_late(now, part)

    def resume(self, now: float, seconds: float) -> None:
        """Go on after a time without news of the other programs: nothing is made up for.

        Calls start again after this many seconds, when the others know of this program again.
        """
        self._paused_until = max(self._paused_until, now + seconds)
        for window in self._windows:
            window.stop(self._shared_at, now + seconds)

    def correct(self, reserved: int, used: int) -> None:
        """Correct the tokens that were reserved for a call to those that it has used.

        The calls that wait start later, or sooner, too.
        """
        if self._tokens:
            self._tokens.correct(reserved, used)


class _Window:
    """An even rate of calls or tokens a minute, by virtual scheduling (GCRA).

    Each call has a position: how many calls or tokens are before it. The rate tells when it is
    due, also when the rate changes while the call waits. At most one second of unused rate can be
    used later. No call counts for more than the limit of a minute, so that a count that is not
    plausible delays the calls of a program that is alone by a minute at most.
    """

    def __init__(self, per_minute: float) -> None:
        self._most = per_minute
        self._whole_rate = self.rate = per_minute / _MINUTE
        self._since, self._begun = 0.0, 0.0
        """A time, and the position that is due then."""
        self._next_free = float("-inf")

    def reserve(self, now: float, amount: float) -> float:
        position = max(self._position_at(max(now, self._since) - 1.0), self._next_free)
        self._next_free = position + min(amount, self._most)
        return position

    def time_of(self, position: float) -> float:
        return self._since + (position - self._begun) / self.rate

    def share(self, now: float, runners: int) -> None:
        self.stop(now, max(now, self._since))
        self.rate = self._whole_rate / runners

    def stop(self, now: float, until: float) -> None:
        """Let what is due after now be due after `until`."""
        self._begun = self._position_at(max(now, self._since))
        self._since = until

    def begin_late(self, now: float, part: float) -> None:
        self._next_free = max(self._next_free, self._position_at(now)) + part

    def correct(self, reserved: float, used: float) -> None:
        self._begun -= min(used, self._most) - min(reserved, self._most)

    def _position_at(self, now: float) -> float:
        return self._begun + (now - self._since) * self.rate
