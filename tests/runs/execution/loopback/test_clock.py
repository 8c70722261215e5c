"""The system's clock may jump; what is stored keeps its order all the same."""

from __future__ import annotations

import os
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest

from tests.runs.execution.loopback.conftest import Place

HOUR = 3_600_000_000
DAY = 24 * HOUR
START = 1_900_000_000_000_000
JUMPS = pytest.mark.parametrize("jump", [-DAY, DAY], ids=["back", "forward"])


class Clock:
    """The wall clock in microseconds: a thousand more at each look."""

    def __init__(self) -> None:
        self.at = START

    def time_ns(self) -> int:
        self.at += 1000
        return 1000 * self.at


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("evalstore.core.clock.time", SimpleNamespace(time_ns=clock.time_ns))
    return clock


def started(place: Place, table: str) -> list[int]:
    """When each fact of a table started, in the order they were stored."""
    return [row["started"] for row in place.stored(table)]


def is_ascending(moments: list[int]) -> bool:
    return all(moment < other for moment, other in pairwise(moments))


def jump_while_asked(place: Place, clock: Clock, jump: int) -> None:
    """Let the clock jump at every call."""
    reply = place.server.reply

    def jump_and_reply(request: Any) -> Any:
        clock.at += jump
        return reply(request)

    place.server.reply = jump_and_reply


@JUMPS
def test_a_jump_between_runs_changes_nothing_that_counts(
    place: Place, clock: Clock, jump: int
) -> None:
    place.ask("one", "two")
    first = place.run()
    clock.at += jump
    again = place.run()
    assert (first.counts, again.counts) == ((2, 2, 0), (0, 0, 0))
    assert again.report["cases"] == first.report["cases"]


@JUMPS
def test_a_later_sample_never_comes_before_an_earlier_one(
    place: Place, clock: Clock, jump: int
) -> None:
    place.ask("one")
    sessions: list[str] = []
    for attempts in range(1, 5):
        ran = place.run("--attempts", str(attempts))
        assert ran.counts == (1, 1, 0)
        (case,) = ran.report["cases"]
        assert case["sessions"][:-1] == sessions
        sessions = case["sessions"]
        clock.at += jump
    assert is_ascending(started(place, "sessions"))
    assert place.run("--attempts", "2").report["cases"][0]["sessions"] == sessions[:2]


def test_a_jump_inside_of_a_run_keeps_the_order_of_samples(place: Place, clock: Clock) -> None:
    jump_while_asked(place, clock, -HOUR)
    place.ask("one")
    first = place.run("--attempts", "3")
    assert first.counts == (3, 3, 0)
    assert is_ascending(started(place, "sessions"))


@JUMPS
def test_an_answer_took_as_long_as_it_took(place: Place, clock: Clock, jump: int) -> None:
    jump_while_asked(place, clock, jump)
    place.ask("one")
    place.run()
    (session,) = place.stored("sessions")
    assert 0 < session["turns"][0]["latency"] < 60


@JUMPS
def test_a_run_never_ends_before_it_started(place: Place, clock: Clock, jump: int) -> None:
    jump_while_asked(place, clock, jump)
    place.ask("one")
    place.run()
    (run,) = place.stored("runs")
    assert run["started"] <= run["ended"]


@JUMPS
def test_the_last_run_is_the_one_that_was_last(place: Place, clock: Clock, jump: int) -> None:
    place.ask("one")
    runs = []
    for number in range(3):
        place.ask(*(f"question {index}" for index in range(number + 1)))
        runs.append(place.run().report["run"])
        clock.at += jump
    assert is_ascending(started(place, "runs"))


@JUMPS
def test_a_later_vote_never_comes_before_an_earlier_one(
    place: Place, clock: Clock, jump: int
) -> None:
    settings = "candidates: [one]\nevaluators: [judge]\nevaluationsPerEvaluator: {}\n"
    place.write({"tests/told.md": "# 👤\n\nHello\n\n---\n\nExpect a greeting.\n"})
    first = place.run()
    assert first.verdicts == {"pass": 1}
    clock.at += jump
    place.server.reply = lambda request: '{"pass": false, "feedback": "no"}'
    place.write({"evalstore.yaml": settings.format(2)})
    assert place.run("--fail-on", "none").counts == (0, 1, 0)
    place.write({"evalstore.yaml": settings.format(1)})
    again = place.run()
    assert (again.counts, again.verdicts) == ((0, 0, 0), {"pass": 1})
    assert is_ascending(started(place, "evaluations"))


@pytest.mark.parametrize("seconds", [-1e6, 1e6], ids=["back", "forward"])
def test_an_edit_is_seen_whatever_its_date(place: Place, seconds: float) -> None:
    path = place.root / "tests/questions.md"
    place.ask("one")
    was = path.stat().st_mtime
    os.utime(path, (was - 1e7, was - 1e7))
    place.run()
    place.ask("two")
    os.utime(path, (was - 1e7 + seconds, was - 1e7 + seconds))
    assert place.run().counts == (1, 1, 0)
