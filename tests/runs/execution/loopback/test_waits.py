"""A server that takes no call for some time: what a run waits for, on a clock of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from evalstore.runs.execution.model_calls import RunEnvironment
from tests import endpoint
from tests.runs.execution.loopback.conftest import Place, Ran

AWAY = 8.0
"""Seconds for which the servers of these tests take no call."""
QUESTIONS = [f"question {number}?" for number in range(12)]


@pytest.fixture
def store_url() -> None:
    """Nothing here depends on the database."""


@dataclass
class Clock:
    """A clock that goes on only while somebody sleeps."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    environment = partial(RunEnvironment, sleep=clock.sleep, monotonic=clock)
    monkeypatch.setattr("evalstore.runs.run_control.RunEnvironment", environment)
    return clock


def run(place: Place, *options: str) -> Ran:
    return place.run("--timeout", "60", *options)


def be_away(place: Place, clock: Clock, refusal: endpoint.Answer) -> None:
    """Refuse all calls for a while, from the first one on."""
    answer, ends = place.server.reply, list[float]()

    def reply(request: Any) -> Any:
        if not ends:
            ends.append(clock() + AWAY)
        return refusal if clock() < ends[0] else answer(request)

    place.server.reply = reply


def refusal(status: int = 429, message: str = "Too many requests", **error: Any) -> endpoint.Answer:
    return endpoint.Answer(status, {"error": {"message": message, **error}})


def with_headers(**headers: str) -> endpoint.Answer:
    return endpoint.failure(429, "Too many requests", "rate_limit_exceeded", **headers)


RETRY_INFO = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "8s"}
REFUSALS = {
    "no word": refusal(),
    "loading": refusal(503, "Loading model"),
    "overloaded": refusal(529, "Overloaded"),
    "bad gateway": refusal(502),
    "a limit in headers": with_headers(
        x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="8s"
    ),
    "only its end in headers": with_headers(x_ratelimit_reset_requests="8s"),
    "details": refusal(details=[RETRY_INFO]),
    "details in a list": endpoint.Answer(429, [{"error": {"details": [RETRY_INFO]}}]),
    "words": refusal(message="Rate limit reached. Please try again in 8s."),
    "words of minutes": refusal(message="Please retry after 0 minutes 8 seconds."),
    "words in a 200": refusal(200, "Slow down, try again in 8s"),
    "Retry-After": with_headers(retry_after="8"),
    "milliseconds": with_headers(retry_after_ms="8000"),
}


@pytest.mark.parametrize("refused", REFUSALS.values(), ids=REFUSALS.keys())
def test_a_run_waits_for_a_server_that_takes_no_call_now(
    place: Place, clock: Clock, refused: endpoint.Answer
) -> None:
    be_away(place, clock, refused)
    place.ask(*QUESTIONS)
    ran = run(place)
    assert (ran.exit_code, ran.verdicts) == (0, {"pass": 12})
    told = ran.stderr.splitlines()
    assert len(told) <= 1, "it is said once of a model"
    assert all(line.startswith("warning: retrying calls to 'one', each for up to") for line in told)


TOLD = [
    name for name in REFUSALS if name not in ("no word", "loading", "overloaded", "bad gateway")
]


@pytest.mark.parametrize("name", TOLD)
def test_a_server_that_says_when_is_not_called_before(
    place: Place, clock: Clock, name: str
) -> None:
    be_away(place, clock, REFUSALS[name])
    place.ask("one", "two")
    assert run(place).exit_code == 0
    assert len(place.server.received) == 3


@pytest.mark.parametrize("jobs", ["1", "8"])
def test_a_limit_a_minute_of_which_nobody_speaks_is_kept_to(
    place: Place, clock: Clock, jobs: str
) -> None:
    answered: list[float] = []
    answer = place.server.reply

    def reply(request: Any) -> Any:
        now = clock()
        if sum(at > now - 4.0 for at in answered) >= 5:
            return refusal()
        answered.append(now)
        return answer(request)

    place.server.reply = reply
    place.ask(*(f"question {number}?" for number in range(20)))
    ran = run(place, "-j", jobs)
    assert (ran.exit_code, ran.verdicts) == (0, {"pass": 20})


PERSISTENT: dict[str, tuple[endpoint.Answer, tuple[str, ...], Callable[[int], bool]]] = {
    "overloaded": (refusal(), (), lambda tries: tries > 5),
    "a number of tries": (refusal(), ("--retries", "1"), lambda tries: tries == 2),
    "a failure": (refusal(500), (), lambda tries: tries == 3),
    "unreadable": (endpoint.Answer(200, {}), (), lambda tries: tries == 3),
}


@pytest.mark.parametrize(
    ("answer", "options", "is_right"), PERSISTENT.values(), ids=PERSISTENT.keys()
)
def test_a_call_is_given_up_at_last(
    place: Place,
    clock: Clock,
    answer: endpoint.Answer,
    options: tuple[str, ...],
    is_right: Callable[[int], bool],
) -> None:
    place.server.reply = lambda request: answer
    place.ask("one")
    ran = run(place, *options)
    assert (ran.exit_code, ran.counts) == (3, (0, 0, 1))
    assert is_right(len(place.server.received))
    assert clock() < 120


def test_a_wait_beyond_the_timeout_stops_the_model(place: Place, clock: Clock) -> None:
    place.server.reply = lambda request: refusal(message="Please try again in 7m12s.")
    place.ask("one", "two")
    ran = run(place)
    assert "it asks to wait 432 s, and the timeout is 60 s" in ran.stderr
    assert len(place.server.received) == 1


def test_a_server_that_stays_away_stops_the_model(place: Place, clock: Clock) -> None:
    place.server.reply = lambda request: refusal(503, "Down")
    place.ask(*QUESTIONS)
    ran = run(place)
    assert "answered 503: Down (5 times in a row until the timeout of 60 s)" in ran.stderr
    assert (ran.exit_code, ran.verdicts) == (3, {"pending": 12})
    assert clock() < 5 * 60


def test_a_quiet_run_says_once_that_it_waits(place: Place, clock: Clock) -> None:
    place.server.reply = lambda request: refusal(503, "Closed")
    place.ask(*QUESTIONS)
    assert run(place, "-q").stderr == (
        "warning: retrying calls to 'one', each for up to 60 s (--timeout): "
        "the server answered 503: Closed\n"
    )
    assert clock() > 60
