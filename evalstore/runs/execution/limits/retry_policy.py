"""Decides when a failed call is made again, and when all calls to its model are stopped.

This module makes no calls; `model_calls` carries out its decisions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from evalstore.providers.base import ProviderError

ModelKey = tuple[str, str]
"""The display id and the code of a model."""
_FIRST_DELAY, _LONGEST_DELAY = 0.25, 30.0
"""Seconds."""
_PASSING = frozenset({408, 425, 429, 502, 503, 504, 520, 529})
"""Statuses of a server that takes no call now: the same call succeeds later."""
_RETRIES = 2
"""The most tries after the first one for other failures that may pass."""
_MOST_FAILURES_IN_A_ROW = 20
"""The number of consecutive connection failures after which calls to a model are stopped."""
_MOST_WAITS_IN_A_ROW = 5
"""The same for calls that waited for an overloaded server until the timeout."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Decides how often a call is tried, and the delay before each retry."""

    retries: int | None
    """The most tries after the first one; None: until the timeout if the server is overloaded."""
    jitter: Callable[[], float]
    """A number from 0 to 1, so that calls that failed together are not retried together."""
    timeout: float = 120.0
    """Seconds for a call with all its tries."""

    def allows(self, error: ProviderError, attempts: int, remaining: float) -> bool:
        """Return whether a failed call is tried again; `remaining` is the time left, in seconds."""
        if self.waits(error):
            return remaining > 0
        retries = _RETRIES if self.retries is None else self.retries
        return error.retry and remaining > 0 and attempts <= retries

    def waits(self, error: ProviderError) -> bool:
        """Return whether a failed call is tried again until the timeout."""
        passes = error.status in _PASSING or bool(error.retry_after)
        return self.retries is None and error.retry and passes

    def delay(self, error: ProviderError, attempts: int) -> float:
        """Return the seconds until the next try: the server's, else exponential with jitter."""
        if error.retry_after:
            return error.retry_after
        bound: float = min(_LONGEST_DELAY, self.timeout / 4, _FIRST_DELAY * 2**attempts)
        return bound / 4 + self.jitter() * bound * 3 / 4


class CircuitBreaker:
    """Stops the calls to a model when none of them can succeed."""

    def __init__(self, timeout: float, warn: Callable[[str], None]) -> None:
        """`timeout` is that of one call in seconds; `warn` is called once for each such model."""
        self._timeout = timeout
        self._warn = warn
        self._errors: dict[ModelKey, ProviderError] = {}
        self._failures_in_a_row: dict[ModelKey, int] = {}
        """Connection failures since the model last answered."""

    def error(self, model: ModelKey) -> ProviderError | None:
        """Return why calls to a model are stopped; None if they are not."""
        return self._errors.get(model)

    def check_failure(self, model: ModelKey, error: ProviderError) -> bool:
        """Stop calls to the model if no other try can succeed; returns whether they are stopped."""
        if error.stops_model:
            self._stop(model, error.message, error)
            return True
        wait = error.retry_after or 0.0
        if error.retry and wait >= self._timeout:
            waits = f"it asks to wait {wait:,.0f} s, and the timeout is {self._timeout:g} s"
            self._stop(model, f"{error.message} ({waits})", error)
            return True
        return False

    def count_failure(self, model: ModelKey, error: ProviderError, *, waited: bool) -> None:
        """Count a call that failed in all tries; too many failures of the connection stop calls.

        So do calls that `waited` until the timeout.
        """
        most = _MOST_WAITS_IN_A_ROW if waited else _MOST_FAILURES_IN_A_ROW
        if not waited and error.kind not in ("connection", "timeout"):
            self._failures_in_a_row[model] = 0  # the server has answered
            return
        self._failures_in_a_row[model] = self._failures_in_a_row.get(model, 0) + 1
        if self._failures_in_a_row[model] >= most:
            until = f" until the timeout of {self._timeout:g} s" if waited else ""
            self._stop(model, f"{error.message} ({most} times in a row{until})", error)

    def count_success(self, model: ModelKey) -> None:
        """Note that the model has answered."""
        self._failures_in_a_row[model] = 0

    def _stop(self, model: ModelKey, reason: str, error: ProviderError) -> None:
        if model not in self._errors:
            self._errors[model] = ProviderError("stopped", reason, lasts=error.is_permanent)
            self._warn(f"model '{model[0]}' is not asked again in this run: {reason}")
