"""The most a run may cost: no call is started that could lead beyond it.

Before a call its likely cost is set aside; when it does not fit, the call waits for those in
flight to cost less than was set aside for them. What fits beside no other call is not made.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from evalstore.values import FilePart, Request, Usage

if TYPE_CHECKING:
    from evalstore.planning.pricing import Price

_CHARACTERS_PER_TOKEN = 3
"""Fewer than there are in most texts: too high an estimate is the safe one."""
_IMAGE_TOKENS = 2_000
_BYTES_PER_TOKEN = 8
"""Of files that are not images."""
_ROUNDING = 1e-9
"""USD: three times 0.1 are 0.3, whatever floats say."""
_OUTPUT_GUESS = 300
"""Tokens of an answer without a limit, until a longer one has been seen."""


class OverBudgetError(Exception):
    """The next call could cost more than is left."""


class Budget:
    """What is spent, what is set aside, and the most of both in USD; None: no bound."""

    def __init__(self, most: float | None = None) -> None:
        self._most = most
        self._aside = 0.0
        self._calls = 0
        self.spent = 0.0
        self._changed: asyncio.Future[None] | None = None

    async def reserve(self, usd: float) -> None:
        """Set the cost of a call aside; raises `OverBudgetError` if it fits in no way."""
        if self._most is not None:
            while self.spent + self._aside + usd > self._most + _ROUNDING:
                if not self._calls:
                    raise OverBudgetError
                if self._changed is None:
                    self._changed = asyncio.get_running_loop().create_future()
                await asyncio.shield(self._changed)
        self._aside += usd
        self._calls += 1

    @property
    def left(self) -> float:
        """What may still be spent, in USD."""
        return max((self._most or 0.0) - self.spent, 0.0)

    def settle(self, reserved: float, cost: float) -> None:
        """A call is over: it has cost this instead of what was set aside for it."""
        self._calls -= 1
        self._aside = self._aside - reserved if self._calls else 0.0
        self.spent += cost
        if self._changed is not None:
            self._changed.set_result(None)
            self._changed = None


def count_input(request: Request) -> int:
    """About how many tokens a request has, rather more than less."""
    tokens = 0
    for message in request.messages:
        for part in message.parts:
            if not isinstance(part, FilePart):
                tokens += len(part.text) // _CHARACTERS_PER_TOKEN + 1
            elif part.media_type.startswith("image/"):
                tokens += _IMAGE_TOKENS
            else:
                tokens += len(part.data) // _BYTES_PER_TOKEN
    if request.schema is not None or request.tools:
        tokens += (len(str(request.schema)) + len(str(request.tools))) // _CHARACTERS_PER_TOKEN
    return tokens


def likely_cost(price: Price | None, request: Request, longest: int) -> float:
    """What a call may cost in USD; `longest` is the most output tokens seen so far."""
    if price is None:
        return 0.0
    output = request.max_output_tokens or max(_OUTPUT_GUESS, longest)
    return price.cost(Usage(count_input(request), output)).usd
