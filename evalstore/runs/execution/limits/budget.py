"""Limits the cost of a run: no call is started that could exceed the limit.

The estimated cost of a call is reserved before it. If too little remains, the call waits until
calls in flight have ended below their estimates. If it exceeds the rest alone, it is not made.
"""

from __future__ import annotations

import asyncio
from typing import Protocol

from evalstore.core.values import FilePart, Request, Usage
from evalstore.planning.pricing import Price

_CHARACTERS_PER_TOKEN = 3
"""Fewer than in most texts, because an estimate that is too high is safe."""
_IMAGE_TOKENS = 2_000
_BYTES_PER_TOKEN = 8
"""Bytes of a token in files other than images."""
_ROUNDING = 1e-9
"""USD; allows for the rounding errors of floats."""
OUTPUT_GUESS = 300
"""The assumed tokens of an answer without a limit, until there is a longer one."""


class OverBudgetError(Exception):
    """The next call could cost more than remains."""


class CallBudget(Protocol):
    """What calls may cost; the cost of each is reserved before it is made."""

    async def reserve(self, usd: float) -> None:
        """Reserve the cost of a call; raises `OverBudgetError` if it does not fit."""

    def settle(self, reserved: float, cost: float) -> None:
        """Replace the reserved cost of a call that has ended with its real cost."""

    @property
    def remaining(self) -> float:
        """Return the cost that may still be spent, in USD."""


class Budget:
    """The spent and the reserved cost, and the limit of both, in USD; None for no limit."""

    def __init__(self, limit: float | None = None) -> None:
        self._limit = limit
        self._reserved = 0.0
        self._calls_in_flight = 0
        self.spent = 0.0
        self._settled: asyncio.Future[None] | None = None

    async def reserve(self, usd: float) -> None:
        """Reserve the cost of a call; raises `OverBudgetError` if it does not fit alone."""
        if self._limit is not None:
            while not fits_in(self._limit, self.spent + self._reserved + usd):
                if not self._calls_in_flight:
                    raise OverBudgetError
                if self._settled is None:
                    self._settled = asyncio.get_running_loop().create_future()
                await asyncio.shield(self._settled)
        self._reserved += usd
        self._calls_in_flight += 1

    @property
    def remaining(self) -> float:
        """Return the cost that may still be spent, in USD."""
        return max((self._limit or 0.0) - self.spent, 0.0)

    def settle(self, reserved: float, cost: float) -> None:
        """Replace the reserved cost of a call that has ended with its real cost."""
        self._calls_in_flight -= 1
        self._reserved = self._reserved - reserved if self._calls_in_flight else 0.0
        self.spent += cost
        if self._settled is not None:
            self._settled.set_result(None)
            self._settled = None


def fits_in(limit: float, usd: float) -> bool:
    """Return whether a cost is within a limit, both in USD."""
    return usd <= limit + _ROUNDING


def count_text(text: str) -> int:
    """Return about how many tokens a text has, erring on the high side."""
    return len(text) // _CHARACTERS_PER_TOKEN + 1


def count_input(request: Request) -> int:
    """Return about how many tokens a request has, erring on the high side."""
    tokens = 0
    for message in request.messages:
        for part in message.parts:
            if not isinstance(part, FilePart):
                tokens += count_text(part.text)
            elif part.media_type.startswith("image/"):
                tokens += _IMAGE_TOKENS
            else:
                tokens += len(part.data) // _BYTES_PER_TOKEN
    if request.schema is not None or request.tools:
        tokens += (len(str(request.schema)) + len(str(request.tools))) // _CHARACTERS_PER_TOKEN
    return tokens


def estimate_call_cost(price: Price | None, request: Request, longest: int) -> float:
    """Return the most that a call may cost in USD; `longest` is the most output tokens so far."""
    if price is None:
        return 0.0
    output = request.max_output_tokens or max(OUTPUT_GUESS, longest)
    return price.cost(Usage(count_input(request), output)).usd
