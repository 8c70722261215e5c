"""The retry rule: when a failed call is made again, and when its model is not called any more.

Nothing is called or awaited here: `model_calls` does what this module decides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.providers.base import ProviderError

ModelKey = tuple[str, str]
"""The display id and the code of a model."""
_FIRST_DELAY, _LONGEST_DELAY = 0.25, 30.0
"""Seconds."""
_MOST_FAILURES_IN_A_ROW = 20
"""After so many connection failures without an answer a model is not called any more."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often one call is tried, and the delay before each further try."""

    retries: int
    """The most tries after the first one."""
    jitter: Callable[[], float]
    """A number from 0 to 1, so that calls that failed together are not retried together."""

    def allows(self, error: ProviderError, attempts: int, remaining: float) -> bool:
        """Whether a failed call is tried again; `remaining` is the time left, in seconds."""
        return error.retry and remaining > 0 and attempts <= self.retries

    def delay(self, error: ProviderError, attempts: int) -> float:
        """Seconds until the next try: as the server asks, else exponential backoff with jitter."""
        if error.retry_after:
            return error.retry_after
        bound: float = min(_LONGEST_DELAY, _FIRST_DELAY * 2**attempts)
        return bound / 4 + self.jitter() * bound * 3 / 4


class CircuitBreaker:
    """Which models are not called any more, because no call of them can succeed."""

    def __init__(self, timeout: float, warn: Callable[[str], None]) -> None:
        """`timeout` is that of one call in seconds; `warn` is called once for each model."""
        self._timeout = timeout
        self._warn = warn
        self._reasons: dict[ModelKey, str] = {}
        self._failures_in_a_row: dict[ModelKey, int] = {}
        """Failures of the connection since the model last answered."""

    def reason(self, model: ModelKey) -> str | None:
        """Why a model is not called any more; None when it is called."""
        return self._reasons.get(model)

    def check_failure(self, model: ModelKey, error: ProviderError) -> bool:
        """Stop calling the model if no other try can succeed; whether that is so."""
        if error.stops_model:
            self._stop(model, error.message)
            return True
        wait = error.retry_after or 0.0
        if error.retry and wait >= self._timeout:
            waits = f"it asks to wait {wait:,.0f} s, and the timeout is {self._timeout:g} s"
            self._stop(model, f"{error.message} ({waits})")
            return True
        return False

    def count_failure(self, model: ModelKey, error: ProviderError) -> None:
        """Count a call that failed in all its tries; too many without a connection are the end."""
        if error.kind not in ("connection", "timeout"):
            self._failures_in_a_row[model] = 0  # the server has answered
            return
        self._failures_in_a_row[model] = self._failures_in_a_row.get(model, 0) + 1
        if self._failures_in_a_row[model] >= _MOST_FAILURES_IN_A_ROW:
            self._stop(model, f"{error.message} ({_MOST_FAILURES_IN_A_ROW} times in a row)")

    def count_success(self, model: ModelKey) -> None:
        """The model has answered."""
        self._failures_in_a_row[model] = 0

    def _stop(self, model: ModelKey, reason: str) -> None:
        if model not in self._reasons:
            self._reasons[model] = reason
            self._warn(f"model '{model[0]}' is not asked any more: {reason}")
