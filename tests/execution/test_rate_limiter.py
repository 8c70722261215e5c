"""The pace of an account: it grows when it is used, and shrinks when it is too fast."""

from __future__ import annotations

from evalstore.execution.rate_limiter import COOL_DOWN, FIRST, RateLimiter


def use(pace: RateLimiter, calls: int) -> None:
    """Answer so many calls that began when all places were taken."""
    for _ in range(calls):
        pace.succeeded(full=True)


def test_it_doubles_with_every_round_up_to_its_ceiling() -> None:
    pace = RateLimiter(30)
    assert pace.limit == FIRST
    use(pace, FIRST)
    assert pace.limit == 2 * FIRST
    use(pace, 1000)
    assert pace.limit == 30


def test_with_a_high_ceiling_it_begins_at_a_quarter() -> None:
    assert RateLimiter(128).limit == 32


def test_it_never_starts_above_its_ceiling() -> None:
    assert RateLimiter(3).limit == 3


def test_places_that_are_not_used_let_it_not_grow() -> None:
    pace = RateLimiter(30)
    pace.succeeded(full=False)
    assert pace.limit == FIRST


def test_a_refusal_halves_it_once_in_a_while() -> None:
    pace = RateLimiter(64)
    use(pace, 100)
    pace.throttled(0.0)
    pace.throttled(0.1)
    assert pace.limit == 32
    pace.throttled(COOL_DOWN + 0.1)
    assert pace.limit == 16


def test_after_a_refusal_it_grows_by_one_in_a_round() -> None:
    pace = RateLimiter(64)
    use(pace, 100)
    pace.throttled(0.0)
    use(pace, 33)
    assert pace.limit == 33


def test_it_never_falls_below_one() -> None:
    pace = RateLimiter(2)
    for round_ in range(5):
        pace.throttled(round_ * 2 * COOL_DOWN)
    assert pace.limit == 1
    assert pace.has_room


def test_the_longest_pause_counts() -> None:
    pace = RateLimiter(8)
    pace.pause(10.0, 5.0)
    pace.pause(11.0, 1.0)
    assert pace.paused_until == 15.0


def test_calls_are_spread_over_the_minute() -> None:
    pace = RateLimiter(8, requests_per_minute=60)
    starts = [pace.reserve(100.0, 0) for _ in range(4)]
    assert starts == [100.0, 100.0, 101.0, 102.0]  # one second's worth is made up for


def test_what_was_not_used_for_an_hour_is_not_made_up_for() -> None:
    pace = RateLimiter(8, requests_per_minute=60)
    pace.reserve(0.0, 0)
    starts = [pace.reserve(3600.0, 0) for _ in range(3)]
    assert starts == [3600.0, 3600.0, 3601.0]


def test_tokens_are_spread_over_the_minute_and_corrected() -> None:
    pace = RateLimiter(8, tokens_per_minute=6000)
    assert pace.reserve(100.0, 200) == 100.0
    assert pace.reserve(100.0, 100) == 101.0
    pace.correct(300)
    assert pace.reserve(100.0, 1) == 105.0


def test_the_narrower_window_decides() -> None:
    pace = RateLimiter(8, requests_per_minute=60, tokens_per_minute=600)
    pace.reserve(100.0, 100)
    assert pace.reserve(100.0, 1) == 109.0
