"""Rate limits in the headers of an answer: how long an account should rest."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from evalstore.providers.errors import LONGEST, find_told_wait, find_wait


@pytest.mark.parametrize(
    ("reset", "seconds"),
    [
        ("12ms", 0.012),
        ("1s", 1.0),
        ("7.66s", 7.66),
        ("1m0s", LONGEST),
        ("6m0s", LONGEST),
        ("2h", LONGEST),
        ("3", 3.0),
        ("-3", 0.0),
        ("nan", 0.0),
        ("soon", 0.0),
        ("1.2.3s", 0.0),
        ("", 0.0),
    ],
)
def test_a_used_up_limit_says_how_long_to_rest(reset: str, seconds: float) -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": reset,
        "x-ratelimit-remaining-tokens": "900",
        "x-ratelimit-reset-tokens": "14s",
    }
    assert find_wait(headers) == pytest.approx(seconds)


def test_while_there_is_room_nobody_rests() -> None:
    assert (
        find_wait({"x-ratelimit-remaining-requests": "1", "x-ratelimit-reset-requests": "9s"}) == 0
    )
    assert find_wait({}) == 0


def test_the_longest_of_several_counts() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "0",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "2s",
    }
    assert find_wait(headers) == 2


@pytest.mark.parametrize("ending", ["Z", "+00:00"])
def test_a_date_is_a_time_to_come(ending: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstore.providers.errors.LONGEST", 60.0)
    soon = datetime.now(UTC) + timedelta(seconds=50)
    headers = {
        "anthropic-ratelimit-tokens-remaining": "0",
        "anthropic-ratelimit-tokens-reset": soon.isoformat()[:19] + ending,
    }
    assert 20 < find_wait(headers) <= 50


def test_seconds_since_1970_are_a_time_to_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalstore.providers.errors.LONGEST", 60.0)
    soon = datetime.now(UTC).timestamp() + 50
    assert 20 < find_wait({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{soon}"}) <= 50
    assert (
        20 < find_wait({"x-ratelimit-remaining": "0", "x-ratelimit-reset": f"{soon * 1000}"}) <= 50
    )


@pytest.mark.parametrize(
    ("words", "seconds"),
    [
        *(("try again in 1d2h.", 93_600), ("Try again in 1 day and 2 hours", 93_600)),
        *(("try again in 1.5s", 1.5), ("try again in 500ms", 0.5), ("retry after 7 seconds", 7)),
        *(("Try again in 3 MINUTES", 180), ("wait about 1 min", 60), ("try again in 6m0s.", 360)),
        *(("try again in 8 storms", None), ("wait for 5 more", None)),
        ("try again in 900 days", 366 * 86_400),
    ],
)
def test_a_refusal_says_in_words_how_long_to_wait(words: str, seconds: float | None) -> None:
    assert find_told_wait(words, []) == seconds
