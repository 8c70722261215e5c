"""The trend of the pass rates in one line."""

from __future__ import annotations

import time

import pytest

from evalstore.interfaces.tui.render.dashboard import DatedRate, trend_spans

DAY = 86_400_000_000


def points(count: int) -> list[DatedRate]:
    """So many points, a day apart; the last is now, the lowest and the highest before it."""
    now = time.time_ns() // 1000
    rates = [0.5] * count
    rates[-3], rates[-2] = 0.25, 0.75
    times = [now - DAY * (count - 1 - number) for number in range(count - 1)]
    return [DatedRate(*pair) for pair in zip(rates, [*times, None], strict=True)]


def text(count: int, room: int) -> str:
    return "".join(span.text for span in trend_spans(points(count), room))


@pytest.mark.parametrize("room", [26, 40, 52, 66, 86, 106, 126, 186])
@pytest.mark.parametrize("count", [4, 12, 60])
def test_it_fits_and_ends_with_the_newest(count: int, room: int) -> None:
    shown = text(count, room)
    assert len(shown) <= room
    assert shown.startswith("50.0% ")
    assert "▃▆▅ 50.0%" in shown


def test_in_80_columns_it_has_the_lowest_the_highest_and_the_times() -> None:
    bars = "▅▃▆▅"
    assert text(4, 67) == f"50.0% {bars} 50.0%  lowest 25.0%, highest 75.0%, 3 days ago to now"


def test_the_words_are_about_the_bars_that_are_shown() -> None:
    told = dict.fromkeys((" days ago to now", " runs of all cases and now"), 0)
    for room in range(30, 130):
        shown = text(60, room)
        bars = shown.split()[1]
        for words in told:
            if words in shown:
                assert f" {len(bars) - 1}{words}" in shown
                told[words] += 1
    assert min(told.values()) > 10


def test_with_much_room_it_has_an_axis_and_says_what_it_is_about() -> None:
    shown = text(12, 120)
    assert "  (0% to 100%)  lowest 25.0%, highest 75.0%, 11 days ago to now" in shown
    assert shown.endswith("; 11 runs of all cases and now")


def test_with_little_room_there_are_twelve_bars_and_the_extremes() -> None:
    shown = text(60, 46)
    assert len(shown.split()[1]) >= 12
    assert shown.endswith("  25.0% to 75.0%")
