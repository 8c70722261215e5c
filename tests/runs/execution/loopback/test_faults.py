"""What a run makes of everything that can go wrong on the way to a model."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple

import pytest

from evalstore.providers import errors, openai_compatible
from evalstore.providers.base import ProviderError
from evalstore.providers.deadline import deadline
from evalstore.runs.execution import model_calls
from evalstore.runs.execution.model_calls import RunEnvironment
from tests import endpoint
from tests.runs.execution.loopback.conftest import Place, Ran

pytestmark = pytest.mark.extended

RETRIES = 1


class Expected(NamedTuple):
    """What a fault is called in the report and in the store."""

    message: str
    type: str
    status: int | None = None


def answered(status: int, message: str) -> Expected:
    return Expected(f"the server answered {status}: {message}", "status", status)


PASSING = {
    "429 soon": answered(429, "Rate limit reached"),
    "429 absurd": answered(429, "Rate limit reached"),
    "429 bare": answered(429, "Rate limit reached"),
    "500": answered(500, "The server had an error"),
    "503": answered(503, "Overloaded"),
    "cut": Expected("the connection failed: Response payload is not completed", "connection"),
    "silent": Expected("the connection failed: Server disconnected", "connection"),
    "half": Expected("the server's answer is not JSON: {", "malformed"),
    "broken off": Expected("the provider cut its answer off: finish reason 'error'", "malformed"),
    "not text": Expected("the content of the server's answer is not text", "malformed"),
    "no choices": Expected("the server's answer has no message", "malformed"),
}
"""What may pass: it is tried again in the same run."""
LASTING = {
    "400": answered(400, "Invalid value"),
    "context": Expected(
        "the server answered 400: This model's maximum context length is 4096 tokens",
        "context",
        400,
    ),
    "huge": Expected("the answer is larger than 1000000 bytes", "malformed"),
    "hang": Expected("no answer within 60 s", "timeout"),
}
"""What is not tried again in the same run: it would be met again, or all its time is used up."""
STOPPING = {
    "401": answered(401, "Incorrect API key provided"),
    "402": answered(402, "Insufficient credits"),
    "403": answered(403, "Country not supported"),
    "404": answered(404, "The model does not exist"),
    "quota": answered(429, "You exceeded your current quota"),
}
"""What every other question to this model would meet, too."""


@pytest.fixture(autouse=True)
def _small_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A small answer is too large, and the next try follows soon."""
    monkeypatch.setattr(errors, "MAX_ANSWER", 1_000_000)
    monkeypatch.setattr(model_calls, "_FIRST_DELAY", 0.01)


@pytest.fixture(autouse=True)
def _no_long_wait(monkeypatch: pytest.MonkeyPatch, place: Place) -> None:
    """Let time pass when the server answers none of the calls under way."""
    under_way = given_up = 0
    passed = 0.0

    def now() -> float:
        return time.monotonic() + passed

    async def pass_time() -> None:
        nonlocal passed
        while True:
            await asyncio.sleep(0.001)
            passed += 0.5 * (place.server.hanging - given_up >= under_way)

    @asynccontextmanager
    async def hurried(timeout: float) -> AsyncIterator[None]:
        nonlocal under_way, given_up
        asyncio.get_running_loop().time = now  # type: ignore[method-assign]
        under_way += 1
        passing = asyncio.create_task(pass_time())
        try:
            async with deadline(timeout):
                yield
        except ProviderError as error:
            given_up += error.kind == "timeout"
            raise
        finally:
            under_way -= 1
            passing.cancel()

    monkeypatch.setattr(openai_compatible, "deadline", hurried)
    environment = partial(RunEnvironment, monotonic=now)
    monkeypatch.setattr("evalstore.runs.run_control.RunEnvironment", environment)


OPTIONS = ("--retries", str(RETRIES), "--timeout", "60")
IN_A_FILE = pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
"""What becomes of each fault is decided without the store; all together are in both databases."""


def ask_with(place: Place, fault: str, times: int) -> None:
    """Three questions; the one in the middle meets the fault so many times."""
    place.ask("first", f"second [[fail={fault}]] [[times={times}]]", "third")


def only_failure(place: Place, expected: Expected, attempts: int) -> None:
    """The store has one failure, and it is the expected one."""
    (failure,) = place.stored("failures")
    assert failure["message"].startswith(expected.message)
    assert failure["type"] == expected.type
    assert failure.get("status") == expected.status
    assert (failure["attempts"], failure["model"]) == (attempts, "one")


# --- each alone


@IN_A_FILE
@pytest.mark.parametrize("fault", PASSING)
def test_what_passes_is_not_even_reported(place: Place, fault: str) -> None:
    ask_with(place, fault, 1)
    ran = place.run(*OPTIONS)
    assert (ran.exit_code, ran.report["status"], ran.stderr) == (0, "complete", "")
    assert (ran.counts, ran.report["failures"]) == ((3, 3, 0), [])
    assert len(place.server.received) == 4
    assert place.stored("failures") == []


@IN_A_FILE
@pytest.mark.parametrize("fault", PASSING)
def test_what_does_not_pass_leaves_only_its_answer_missing(place: Place, fault: str) -> None:
    tries = 1 + RETRIES
    ask_with(place, fault, tries)
    ran = place.run(*OPTIONS)
    assert (ran.exit_code, ran.report["status"], ran.stderr) == (3, "incomplete", "")
    assert (ran.counts, ran.verdicts) == ((2, 2, 1), {"pass": 2, "pending": 1})
    (failure,) = ran.report["failures"]
    assert failure["message"].startswith(f"one: {PASSING[fault].message}")
    assert failure["count"] == 1
    assert len(place.server.received) == 2 + tries
    only_failure(place, PASSING[fault], tries)
    again = place.run(*OPTIONS)
    assert (again.exit_code, again.counts) == (0, (1, 1, 0))
    assert len(place.server.received) == 2 + tries + 1
    only_failure(place, PASSING[fault], tries)


@IN_A_FILE
@pytest.mark.parametrize("fault", LASTING)
def test_what_would_come_again_is_tried_once_a_run(place: Place, fault: str) -> None:
    ask_with(place, fault, 1)
    ran = place.run(*OPTIONS)
    assert (ran.exit_code, ran.report["status"], ran.stderr) == (3, "incomplete", "")
    assert (ran.counts, ran.verdicts) == ((2, 2, 1), {"pass": 2, "pending": 1})
    assert ran.report["failures"] == [{"message": f"one: {LASTING[fault].message}", "count": 1}]
    assert len(place.server.received) == 3
    only_failure(place, LASTING[fault], 1)
    again = place.run(*OPTIONS)
    assert (again.exit_code, again.counts) == (0, (1, 1, 0))
    assert len(place.server.received) == 4


@IN_A_FILE
@pytest.mark.parametrize("fault", STOPPING)
def test_a_model_that_cannot_be_called_is_not_called_again(place: Place, fault: str) -> None:
    message = STOPPING[fault].message
    if fault == "404":
        message = message.replace("404", f"404 at {place.server.url}/chat/completions")
    ask_with(place, fault, 1)
    ran = place.run(*OPTIONS)
    assert (ran.exit_code, ran.report["status"]) == (3, "incomplete")
    assert ran.stderr == f"model 'one' is not asked again in this run: {message}\n"
    assert (ran.counts, ran.verdicts) == ((1, 1, 2), {"pass": 1, "pending": 2})
    assert ran.report["failures"] == [{"message": f"one: {message}", "count": 2}]
    assert len(place.server.received) == 2
    only_failure(place, STOPPING[fault]._replace(message=message), 1)
    again = place.run(*OPTIONS)
    assert (again.exit_code, again.counts, again.stderr) == (0, (2, 2, 0), "")
    assert len(place.server.received) == 4


@IN_A_FILE
@pytest.mark.parametrize("fault", ["filtered", "filter"])
def test_an_answer_or_a_prompt_that_was_filtered_is_an_answer(place: Place, fault: str) -> None:
    ask_with(place, fault, 1)
    ran = place.run()
    assert (ran.exit_code, ran.report["status"]) == (1, "complete")
    assert (ran.counts, ran.verdicts) == ((3, 3, 0), {"pass": 2, "fail": 1})
    again = place.run()
    assert (again.exit_code, again.counts) == (1, (0, 0, 0))
    assert len(place.server.received) == 3


@IN_A_FILE
def test_a_server_that_asks_for_time_gets_it(place: Place) -> None:
    place.ask("only [[fail=429 soon]] [[times=1]]")
    assert place.run().exit_code == 0
    first, second = place.server.received
    assert second.at - first.at >= 0.2


@IN_A_FILE
def test_a_failing_judge_costs_no_answer(place: Place) -> None:
    place.write({"tests/told.md": "# 👤\n\nHello\n\n---\n\nExpect a greeting.\n"})
    opinions: list[str | endpoint.Answer] = ['{"pass": true}', endpoint.FAULTS["500"]]
    place.server.reply = lambda request: opinions.pop() if request["model"] == "judge" else "Hi"
    ran = place.run("--retries", "0")
    assert (ran.exit_code, ran.counts, ran.verdicts) == (3, (1, 0, 1), {"pending": 1})
    (failure,) = place.stored("failures")
    assert (failure["subject"], failure["model"]) == (ran.report["cases"][0]["session"], "judge")
    again = place.run("--retries", "0")
    assert (again.exit_code, again.counts, again.verdicts) == (0, (0, 1, 0), {"pass": 1})
    assert len(place.server.received) == 3


# --- all together


def test_all_faults_together_end_with_every_answer_once(place: Place) -> None:
    chance = random.Random(5)
    often = [fault for fault in (*PASSING, *LASTING) if fault != "hang"]
    # The others stop the model, or take their time: each comes but once.
    faults = [*STOPPING, "hang", *often, *chance.choices(often, k=60)][:60]
    questions = {f"Question {number}?": 1 for number in range(40)}
    for number, fault in enumerate(faults):
        times = chance.randint(1, 2)
        questions[f"Trouble {number}: [[fail={fault}]] [[times={times}]]"] = 1 + times
    place.ask(*chance.sample(list(questions), 100))
    runs: list[Ran] = []
    while not runs or runs[-1].exit_code:
        runs.append(place.run("-j", "16", *OPTIONS))
        assert runs[-1].exit_code in (0, 3)
        assert len(runs) <= 12
    assert runs[-1].verdicts == {"pass": 100}
    assert sum(run.counts[0] for run in runs) == 100
    assert Counter(json.loads(answer)["feedback"] for answer in place.answers()) == Counter(
        [*questions]
    )
    assert len(place.stored("evaluations")) == 100
    # As many calls as faults and answers: no answer was paid twice.
    called = Counter(endpoint.echo(received.body) for received in place.server.received)
    assert called == questions
    assert place.run().counts == (0, 0, 0)
