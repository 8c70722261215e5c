"""The times in listings of `sftp`, which leaves out the year or the time of day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OLDEST = timedelta(days=184)
"""The age up to which `sftp` prints the time of day in place of the year."""


def latest_time(text: str, now: int) -> int | None:
    """Return the latest time that is printed as `text`, in microseconds since 1970.

    It is such as `Nov 23 17:10` or `Nov 23 2025`, in UTC; None for another text. `now` is the
    current time: a time without a year is one of the last six months, or in the future.
    """
    try:
        month, day, last = text.split()
        date = (_MONTHS.index(month) + 1, int(day))
        if ":" not in last:
            return _microseconds(datetime(int(last), *date, 23, 59, 59, tzinfo=UTC))
        hour, minute = map(int, last.split(":"))
        current = datetime.fromtimestamp(now / 1_000_000, tz=UTC)
        for year in (current.year - 1, current.year, current.year + 1):
            if date == (2, 29) and not _is_leap(year):
                continue
            moment = datetime(year, *date, hour, minute, 59, tzinfo=UTC)
            if moment >= current - _OLDEST:
                return _microseconds(moment)
    except ValueError:
        pass
    return None


def _is_leap(year: int) -> bool:
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


def _microseconds(moment: datetime) -> int:
    return int(moment.timestamp()) * 1_000_000
