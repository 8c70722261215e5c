"""Dates as people write them, in the time zone of the system."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime

import pytest

from evalstore.core import clock

THURSDAY = "2026-11-26 15:30:00"


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A Thursday afternoon in Berlin."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    at = datetime.fromisoformat(f"{THURSDAY}+01:00").timestamp()
    monkeypatch.setattr(clock, "now", lambda: round(at * 1e6))
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", "2026-11-26 15:30"),
        ("today", "2026-11-26 00:00"),
        ("yesterday", "2026-11-25 00:00"),
        ("Yesterday 14:00", "2026-11-25 14:00"),
        ("monday", "2026-11-23 00:00"),
        ("last mon", "2026-11-23 00:00"),
        ("thursday", "2026-11-26 00:00"),
        ("last thursday", "2026-11-19 00:00"),
        ("last thu 9:05", "2026-11-19 09:05"),
        ("friday 9:05", "2026-11-20 09:05"),
        ("09:05", "2026-11-26 09:05"),
        ("2026-11-23", "2026-11-23 00:00"),
        ("2026-11-23 14:00", "2026-11-23 14:00"),
        ("2026-11-23T14:00", "2026-11-23 14:00"),
        ("2026-11-23T14:00Z", "2026-11-23 15:00"),
        ("2026-07-01", "2026-07-01 00:00"),
        ("2.days", "2026-11-24 15:30"),
        ("2d", "2026-11-24 15:30"),
        ("3h", "2026-11-26 12:30"),
        ("5 min ago", "2026-11-26 15:25"),
        ("2 weeks ago", "2026-11-12 15:30"),
        ("1.hour", "2026-11-26 14:30"),
        ("90.minutes.ago", "2026-11-26 14:00"),
    ],
)
def test_a_date_is_read(zone: None, text: str, meant: str) -> None:
    moment = clock.read_moment(text)
    assert moment is not None
    assert clock.local_minute(moment) == meant


@pytest.mark.parametrize(
    "text",
    ["", "frob", "2026-13-01", "25:00", "monday monday", "1", "999999.years", "2 parsecs", "last"],
)
def test_another_text_is_no_date(zone: None, text: str) -> None:
    assert clock.read_moment(text) is None
