"""The clock, and times as people read them."""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from time import monotonic, monotonic_ns

_UPTIME = getattr(
    time, {"linux": "CLOCK_BOOTTIME", "darwin": "CLOCK_MONOTONIC"}.get(sys.platform, ""), None
)
"""The clock of the system that goes on while it sleeps; elsewhere that of `time.monotonic` does."""
_read = getattr(time, "clock_gettime", None)  # Windows has none


def uptime() -> float:
    """Return the seconds of a clock that goes on while the machine sleeps."""
    return monotonic() if _UPTIME is None or _read is None else _read(_UPTIME)


def now() -> int:
    """Return the microseconds since 1970, UTC."""
    return time.time_ns() // 1000


class Clock:
    """Microseconds since 1970 that never decrease, even if the system's clock does.

    They begin with the system's time, but after `after`, and go on with a clock that knows
    no jumps.
    """

    def __init__(self, after: int = 0) -> None:
        self._begin = max(now(), after + 1)
        self._since = monotonic_ns()

    def __call__(self) -> int:
        """Return the current time."""
        return self._begin + (monotonic_ns() - self._since) // 1000


def today() -> str:
    """Return the day in UTC, as `YYYY-MM-DD`."""
    return iso(now())[:10]


def minute(microseconds: int) -> str:
    """Return a time in UTC for people, to the minute."""
    return f"{iso(microseconds)[:16].replace('T', ' ')} UTC"


def iso(microseconds: int) -> str:
    """Format a time as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(microseconds // 1_000_000, tz=UTC).isoformat()[:19] + "Z"
