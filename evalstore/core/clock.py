"""The clock, and times as people read them."""

from __future__ import annotations

import re
import sys
import time
from datetime import UTC, datetime, timedelta
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


def local_minute(microseconds: int) -> str:
    """Return a time for people in the time zone of the system: `2026-11-23 14:05`."""
    return datetime.fromtimestamp(microseconds / 1e6).astimezone().isoformat(" ")[:16]


MOMENTS = "monday, yesterday, 2026-11-23, 2026-11-23 14:00 or 7d"
"""Examples of what `read_moment` reads."""
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_AGO = re.compile(r"([0-9]{1,4})(?:(min(?:ute)?|hour|day|week|month|year)s?|([mhdw]))(?:ago)?")
"""Matches a time before now; a unit of one letter is what `--max-age` takes."""
_LETTERS = {"m": "minute", "min": "minute", "h": "hour", "d": "day", "w": "week"}
_TIME = re.compile(r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?")
_DAYS = {"week": 7, "month": 30, "year": 365}


def read_moment(text: str) -> int | None:
    """Return the microseconds since 1970 of a date, in the time zone of the system; None: none.

    A day, such as `monday`, `last friday`, `yesterday` or `2026-11-23`, is its beginning, and may
    be followed by a time; `2.days`, `2d` and `2 weeks ago` count from now. On a Monday, `monday` is
    today and `last monday` a week ago.
    """
    here = datetime.fromtimestamp(now() / 1e6).astimezone().replace(tzinfo=None)
    text = " ".join(text.lower().split())
    ago = _AGO.fullmatch(re.sub("[ .]", "", text))
    try:
        if ago:
            count, unit = int(ago[1]), ago[2] or ago[3]
            unit = _LETTERS.get(unit, unit)
            days = count * _DAYS.get(unit, 1)
            span = {f"{unit}s": count} if unit in ("minute", "hour") else {"days": days}
            return now() - round(timedelta(**span).total_seconds() * 1e6)
        if text == "now":
            return now()
        day, _, hour = text.rpartition(" ")
        if not (day and _TIME.fullmatch(hour)):
            day, hour = text, "00:00"
            if _TIME.fullmatch(day):
                day, hour = "today", day
        found = _day(day, here)
        moment = found and datetime.fromisoformat(f"{found.isoformat()[:10]} {hour:0>5}")
        moment = moment or datetime.fromisoformat(text.upper())
        return round(moment.timestamp() * 1e6)
    except (ValueError, OverflowError, OSError):
        return None


def _day(word: str, here: datetime) -> datetime | None:
    """Return the day that a word names; None for another word."""
    days = {"today": 0, "yesterday": 1}
    for number, name in enumerate(_WEEKDAYS):
        days[name] = days[name[:3]] = (here.weekday() - number) % 7
        days[f"last {name}"] = days[f"last {name[:3]}"] = days[name] or 7
    return here - timedelta(days=days[word]) if word in days else None


def iso(microseconds: int) -> str:
    """Format a time as ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(microseconds // 1_000_000, tz=UTC).isoformat()[:19] + "Z"
