"""A provider in virtual time, for a candidate and a judge: it counts what is asked and paid."""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from evalstore.core.values import Reply, Request, Usage
from evalstore.providers.base import ProviderError
from evalstore.providers.price_table import Price

if TYPE_CHECKING:
    from benches.virtual_time import Program

PRICE = Price("simulated", per_input_token=1e-6, per_output_token=1e-5)
JUDGE_PRICE = Price("simulated", per_input_token=3e-6, per_output_token=1.5e-5)
_VERDICT = '{"pass": true, "feedback": "good"}'
_ANSWER = re.compile(r"Answer \d+ to Question \d+\.")
"""The answer in the request of a judge."""
_FAILING = 0.01
"""The part of the calls that fail, and are not paid."""


@dataclass
class Call:
    """A call that the provider has accepted."""

    at: float
    runner: str
    question: str
    """What it is about: a question, or the answer that is judged."""
    cost: float
    """USD; 0 for a call that fails."""
    is_settled: bool = False
    """Whether its answer is stored, or known to be lost."""

    @property
    def judges(self) -> bool:
        """Return whether it is a judgement."""
        return self.question.startswith("Answer")


class Provider:
    """A provider that counts the calls, and forgets nothing."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self.calls: list[Call] = []

    def of(self, program: Program, price: Price) -> ProviderClient:
        """Return the client of a runner for the calls of one model."""
        return ProviderClient(self, program, price, Random(self._random.random()))


class ProviderClient:
    """The client of a runner for one model."""

    def __init__(self, provider: Provider, program: Program, price: Price, random: Random) -> None:
        self._provider = provider
        self._program = program
        self._price = price
        self._random = random

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Answer after a while."""
        random = self._random
        usage = Usage(random.randint(5, 20), random.randint(20, 300))
        fails = random.random() < _FAILING
        latency = min(random.lognormvariate(0.7, 0.6), timeout)
        text = request.messages[0].text
        judged = _ANSWER.search(text)
        question = judged[0] if judged else text
        cost = 0.0 if fails else self._price.cost(usage).usd
        loop = self._program.loop
        call = Call(loop.time(), self._program.name, question, cost)
        self._provider.calls.append(call)
        # Each answer is another text, which a judgement of it repeats.
        text = _VERDICT if call.judges else f"Answer {len(self._provider.calls)} to {question}"
        await asyncio.sleep(latency)
        if fails:
            raise ProviderError("status", "out of order", status=500, retry=True)
        return Reply(text, finish_reason="stop", usage=usage, latency=latency)

    async def close(self) -> None:
        """Do nothing."""
