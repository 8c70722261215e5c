"""The clock, and times as people read them."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now() -> int:
    """Microseconds since 1970, UTC."""
    return time.time_ns() // 1000


def today() -> str:
    """The day in UTC, as `YYYY-MM-DD`."""
    return iso(now())[:10]


def iso(microseconds: int) -> str:
    """A time as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(microseconds // 1_000_000, tz=UTC).isoformat()[:19] + "Z"
