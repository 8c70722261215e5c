"""Calls keep to a limit of tokens a minute, whatever is known of the length of answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from benches.virtual_time import VirtualLoop
from evalstore.core.values import ModelVersion, OutgoingMessage, Reply, Request, Text, Usage
from evalstore.providers.base import ProviderError
from evalstore.runs.execution.limits.rate_limiter import Account
from evalstore.runs.execution.model_calls import (
    CallFailed,
    Endpoint,
    Limits,
    ModelCaller,
    RunEnvironment,
)
from evalstore.store.events import OutputTokens
from evalstore.workspace.model_files import Model, ProviderFile

A_MINUTE = 6000
ACCOUNT = Account("account", tokens_per_minute=A_MINUTE)


@dataclass
class Server:
    """A server whose answers have this length, and take this time."""

    latency: float = 0.5
    input: int | None = 12
    outputs: Sequence[int | None] = (200,)
    text: str = "yes"
    failing: int = 0
    """The number of calls that fail first,"""
    status: int = 500
    """with this status."""
    uses: list[tuple[float, int]] = field(default_factory=list)
    """The time of each answer, with its tokens."""
    calls: list[float] = field(default_factory=list)
    """The times of the calls."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        loop = asyncio.get_running_loop()
        self.calls.append(loop.time())
        await asyncio.sleep(self.latency)
        if len(self.calls) <= self.failing:
            stops = self.status == 404
            raise ProviderError(
                "server", "failed", status=self.status, retry=not stops, stops_model=stops
            )
        output = self.outputs[len(self.uses) % len(self.outputs)]
        self.uses.append((loop.time(), (self.input or 0) + (output or 0)))
        return Reply(self.text, usage=Usage(self.input, output))

    async def close(self) -> None:
        pass

    def busiest(self, times: Sequence[tuple[float, int]] | None = None) -> int:
        """Return the most tokens of any minute."""
        uses = self.uses if times is None else times
        return max(
            sum(tokens for at, tokens in uses if begin <= at < begin + 60.0) for begin, _ in uses
        )


QUESTION = Request("m", (OutgoingMessage("user", (Text("Is it?"),)),))


def environment_of(loop: VirtualLoop) -> RunEnvironment:
    return RunEnvironment(now=lambda: 1, nonce=lambda: "n", monotonic=loop.time, jitter=lambda: 0.5)


def door_of(name: str, server: Server) -> Endpoint:
    """Return a model of the account."""
    model = Model(name, ProviderFile("s", "openai-compatible"), name)
    return Endpoint(model, ModelVersion("openai-compatible", name), server, None, account=ACCOUNT)


def run(
    server: Server, questions: int, runners: int = 1, known: OutputTokens | None = None
) -> float:
    """Let runners ask a number of questions each; return how many seconds it took."""
    loop = VirtualLoop(lambda: 0.0)
    environment, door = environment_of(loop), door_of("m", server)

    async def ask_all() -> None:
        calls = []
        for _ in range(runners):
            caller = ModelCaller(Limits(concurrency=16, timeout=1e6), environment)
            if known:
                caller.note_outputs({door.key: known})
            caller.rate_limiter(ACCOUNT).share(loop.time(), runners)
            calls += [caller.ask(door, QUESTION) for _ in range(questions)]
        answers = await asyncio.gather(*calls, return_exceptions=True)
        kind = CallFailed if server.failing else Reply
        assert all(isinstance(answer, kind) for answer in answers)

    try:
        loop.run_until_complete(ask_all())
        return loop.time()
    finally:
        loop.close()


@pytest.mark.parametrize(
    ("latency", "runners", "input", "outputs"),
    [
        (0.5, 1, 12, (200,)),
        (20.0, 3, 12, (200,)),
        (20.0, 1, 80, (20,)),
        (0.5, 3, 80, (20,)),
        (20.0, 1, 12, (20, 400, 90)),
        (0.5, 3, 12, (20, 400, 90)),
    ],
)
def test_no_minute_has_more_tokens_than_the_limit(
    latency: float, runners: int, input: int, outputs: tuple[int, ...]
) -> None:
    server = Server(latency, input, outputs)
    count = 150 // runners
    seconds = run(server, count, runners)
    total = sum(tokens for _, tokens in server.uses)
    # The first call of each runner is made before it is known how long answers are.
    assert server.busiest() <= 1.05 * A_MINUTE + (runners - 1) * max(outputs)
    assert seconds <= 62 * total / A_MINUTE * 1.05 + 4 * latency + 2


@pytest.mark.parametrize(("runners", "most"), [(1, 1), (3, 3)])
def test_answers_as_long_as_the_limit_are_asked_for_one_after_the_other(
    runners: int, most: int
) -> None:
    server = Server(outputs=(A_MINUTE,))
    run(server, 4, runners)
    by_call = [(at, 1) for at in server.calls]
    assert server.busiest(by_call) <= most
    later = [(at, 1) for at in server.calls if at > 60.0]
    assert server.busiest(later) <= most


def test_stored_answers_say_how_long_the_first_ones_are() -> None:
    server = Server(latency=30.0, outputs=(2000,))
    run(server, 9, known=OutputTokens(2000, 2500))
    assert len([at for at in server.calls if at < 60.0]) == 3


def test_a_model_that_never_answers_is_not_asked_one_call_at_a_time() -> None:
    server = Server(latency=20.0, failing=10**6)
    run(server, 16)
    assert len([at for at in server.calls if at < 60.0]) > 16


def test_a_call_that_was_not_made_gives_nothing_to_the_others_of_its_account() -> None:
    loop = VirtualLoop(lambda: 0.0)
    good, bad = Server(latency=5.0, outputs=(1000,)), Server(failing=10**6, status=404)
    known, unknown = door_of("good", good), door_of("bad", bad)

    async def ask_all() -> None:
        caller = ModelCaller(Limits(concurrency=40, timeout=1e6), environment_of(loop))
        caller.note_outputs({known.key: OutputTokens(1000, 1000)})
        refused = [caller.ask(unknown, QUESTION) for _ in range(20)]
        await asyncio.gather(
            *refused, *(caller.ask(known, QUESTION) for _ in range(20)), return_exceptions=True
        )

    try:
        loop.run_until_complete(ask_all())
    finally:
        loop.close()
    assert (len(bad.calls), len(good.calls)) == (1, 20)
    assert good.busiest() <= A_MINUTE + 2 * 1012


def test_a_count_of_0_tokens_is_none() -> None:
    server = Server(input=0, outputs=(0,), text="word " * 600)
    assert run(server, 12) > 100


def test_a_count_that_is_not_plausible_delays_calls_by_a_minute() -> None:
    server = Server(outputs=(10**12, *[10] * 19))
    assert 60 < run(server, 20) < 110


def test_tokens_that_are_not_reported_are_estimated_from_the_texts() -> None:
    server = Server(input=None, outputs=(None,), text="word " * 600)
    seconds = run(server, 12)
    assert seconds > 100
