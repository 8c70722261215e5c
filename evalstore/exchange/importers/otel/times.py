"""Times of ISO 8601 as OTLP has them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.core.values import Json

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_nanoseconds(time: Json) -> int | None:
    """Return a time in nanoseconds since 1970, in UTC without a zone; None for other values."""
    try:
        moment = datetime.fromisoformat(str(time))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000
