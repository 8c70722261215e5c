"""The pace of an account: it grows when it is used, and shrinks when it is too fast."""

from __future__ import annotations

import random
from bisect import bisect_left

import pytest

from evalstore.runs.execution.limits.rate_limiter import COOL_DOWN, FIRST, RateLimiter


def starts(pace: RateLimiter, now: float, *tokens: int) -> list[float]:
    """Reserve calls with so many tokens, and return when they may start."""
    turns = [pace.reserve(now, number) for number in tokens]
    return [pace.start_of(turn, now) for turn in turns]


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


def test_refusals_until_some_time_after_a_pause_answer_the_same_burst() -> None:
    pace = RateLimiter(64)
    use(pace, 100)
    pace.pause(0.0, 30.0)
    pace.throttled(1.0)
    pace.throttled(29.0 + COOL_DOWN)
    assert pace.limit == 32
    pace.throttled(30.0 + COOL_DOWN)
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
    assert starts(pace, 11.0, 0) == [15.0]


def test_calls_are_spread_over_the_minute() -> None:
    pace = RateLimiter(8, requests_per_minute=62)
    # One second's worth is made up for.
    assert starts(pace, 100.0, 0, 0, 0, 0) == [100.0, 100.0, 101.0, 102.0]


@pytest.mark.parametrize("limit", [1, 2, 7, 60, 120, 10_000])
@pytest.mark.parametrize("late", [0.0, 0.4, 1.0])
def test_no_more_calls_than_the_limit_arrive_in_any_minute(limit: int, late: float) -> None:
    """Each call is up to a second on its way, or up to a second late and then made up for."""
    pace, delays = RateLimiter(8, requests_per_minute=limit), random.Random(limit)
    pace.reserve(0.0, 0)
    now, arrivals = 1000.0, list[float]()
    while now < 1200.0:
        now = pace.start_of(pace.reserve(now, 0), now)
        arrivals.append(now + late * delays.random())
    arrivals.sort()
    most = max(bisect_left(arrivals, at + 60.0) - number for number, at in enumerate(arrivals))
    assert most <= limit
    assert len(arrivals) > 0.95 * limit * 200 / 60 - 1


def test_what_was_not_used_for_an_hour_is_not_made_up_for() -> None:
    pace = RateLimiter(8, requests_per_minute=62)
    starts(pace, 0.0, 0)
    assert starts(pace, 3600.0, 0, 0, 0) == [3600.0, 3600.0, 3601.0]


def test_tokens_are_spread_over_the_minute_and_corrected() -> None:
    pace = RateLimiter(8, tokens_per_minute=6200)
    assert starts(pace, 100.0, 200, 100) == [100.0, 101.0]
    pace.correct(100, 400)
    assert starts(pace, 100.0, 1) == [105.0]


def test_a_correction_counts_for_the_calls_that_wait() -> None:
    pace = RateLimiter(8, tokens_per_minute=6200)
    turns = [pace.reserve(100.0, 200) for _ in range(3)]
    assert [pace.start_of(turn, 100.0) for turn in turns] == [100.0, 101.0, 103.0]
    pace.correct(200, 500)
    assert [pace.start_of(turn, 100.0) for turn in turns[1:]] == [104.0, 106.0]
    pace.correct(200, 0)
    assert [pace.start_of(turn, 100.0) for turn in turns[1:]] == [102.0, 104.0]


def test_a_call_counts_for_the_tokens_of_a_minute_at_most() -> None:
    pace = RateLimiter(8, tokens_per_minute=6200)
    turns = [pace.reserve(100.0, tokens) for tokens in (10**9, 1, 1)]
    assert pace.start_of(turns[1], 100.0) == 161.0
    pace.correct(10**9, 10**12)
    assert pace.start_of(turns[1], 100.0) == 161.0
    pace.share(100.0, 2)
    assert pace.start_of(turns[1], 100.0) == 222.0


def test_the_narrower_window_decides() -> None:
    pace = RateLimiter(8, requests_per_minute=62, tokens_per_minute=620)
    assert starts(pace, 100.0, 100, 1) == [100.0, 109.0]


def test_calls_that_wait_keep_to_a_limit_that_is_shared_meanwhile() -> None:
    pace = RateLimiter(8, requests_per_minute=62)
    turns = [pace.reserve(100.0, 0) for _ in range(4)]
    pace.share(100.0, 2)
    assert [pace.start_of(turn, 100.0) for turn in turns] == [100.0, 100.0, 102.0, 104.0]
    pace.share(103.0, 1)
    assert [pace.start_of(turn, 103.0) for turn in turns[2:]] == [103.0, 103.5]
    assert starts(pace, 103.5, 0) == [104.5]


def test_what_is_due_in_a_pause_is_spread_after_it() -> None:
    pace = RateLimiter(8, requests_per_minute=62)
    turns = [pace.reserve(100.0, 0) for _ in range(5)]
    pace.pause(101.5, 20.0)
    assert [pace.start_of(turn, 121.5) for turn in turns[3:]] == [122.0, 123.0]
    pace.pause(102.0, 30.0)
    assert [pace.start_of(turn, 132.0) for turn in turns[3:]] == [132.5, 133.5]
    assert starts(pace, 110.0, 0) == [134.5]


def test_the_rate_may_change_in_a_pause() -> None:
    pace = RateLimiter(8, requests_per_minute=62)
    turns = [pace.reserve(100.0, 0) for _ in range(4)]
    pace.pause(100.0, 10.0)
    pace.share(105.0, 2)
    assert [pace.start_of(turn, 105.0) for turn in turns] == [110.0, 110.0, 112.0, 114.0]


def test_after_a_time_without_news_nothing_is_made_up_for() -> None:
    pace, is_known = RateLimiter(8, requests_per_minute=62), True
    pace.is_share_current = lambda: is_known
    pace.share(100.0, 1)
    turns = [pace.reserve(100.0, 0) for _ in range(4)]
    is_known = False
    assert all(pace.start_of(turn, 150.0) > 150.0 for turn in turns)
    pace.resume(150.0, 5.0)
    is_known = True
    assert [pace.start_of(turn, 151.0) for turn in turns[2:]] == [156.0, 157.0]


def test_runs_that_begin_together_do_not_call_at_one_moment() -> None:
    pace = RateLimiter(8, requests_per_minute=62)
    pace.share(100.0, 30)
    pace.begin_late(100.0, 0.5)
    pace.pause(100.0, 5.0)
    assert starts(pace, 100.0, 0, 0) == [120.0, 150.0]
