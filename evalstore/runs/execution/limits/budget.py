"""Limits the cost of a run: no call is started that could exceed the limit.

The estimated cost of a call is reserved before it. If too little remains, the call waits until
calls in flight have ended below their estimates. If it exceeds the rest alone, it is not made.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

from evalstore.core.values import FilePart, Request, Usage
from evalstore.providers.price_table import Price
from evalstore.runs.execution.sharing.run_share import ShareWriter

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


# --- the limit of a run that several runners carry out, on several machines


_DIGITS = 12
"""Digits of a cost in USD, without the rounding errors of sums."""
_FIRST_LOOK, _LONGEST_LOOK = 0.2, 2.0
"""Seconds until it is checked again what the calls of other runners have left."""


FindAlive = Callable[[Collection[str]], Awaitable[Collection[str]]]
"""Returns those of these runners that are not known to be dead."""


class SharedBudget:
    """The limit of a shared run, in USD; used as `Budget`.

    What a call may cost is reserved in the store before it is made. Calls that wait at the same
    time are reserved together. What a dead runner had reserved counts as spent, as its calls may be
    paid.
    """

    def __init__(self, share: ShareWriter, limit: float, find_alive: FindAlive) -> None:
        self._share = share
        self._find_alive = find_alive
        self._limit = limit
        self._waiting: list[tuple[float, asyncio.Future[bool]]] = []
        """What calls may cost, with what is set when they may be made, or must not."""
        self._granting: asyncio.Task[None] | None = None
        self._calls_in_flight = 0
        self._settled = asyncio.Event()
        """Set when a call has been settled since the last try to reserve something."""

    @property
    def remaining(self) -> float:
        """Return what this runner knows to be left, in USD."""
        others = self._share.state
        return max(self._limit - self._share.spent - (others.spent + others.reserved), 0.0)

    async def reserve(self, usd: float) -> None:
        """Reserve the cost of a call; raises `OverBudgetError` if it does not fit."""
        granted: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append((usd, granted))
        if self._granting is None or self._granting.done():
            self._granting = asyncio.create_task(self._grant())
        if not await granted:
            raise OverBudgetError

    def settle(self, reserved: float, cost: float) -> None:
        """Replace the reserved cost of a call that has ended with its real cost."""
        self._calls_in_flight -= 1
        # Another call may just be reserved, so this is not zero when no call is in flight.
        self._share.reserved = max(round(self._share.reserved - reserved, _DIGITS), 0.0)
        self._share.spent += cost
        self._settled.set()

    async def _grant(self) -> None:
        """Reserve what calls wait for, until none waits."""
        while self._waiting:
            batch, self._waiting = self._waiting, []
            try:
                await self._grant_all(batch)
            except BaseException as error:
                for _, granted in [*batch, *self._waiting]:
                    if not granted.done():
                        granted.set_exception(error)
                self._waiting = []
                if not isinstance(error, Exception):
                    raise
                return  # the calls that wait raise it

    async def _grant_all(self, batch: list[tuple[float, asyncio.Future[bool]]]) -> None:
        """Reserve these costs together if they fit, else one after the other."""
        if len(batch) > 1 and await self._try(batch):
            return
        for call in batch:
            delay = _FIRST_LOOK
            self._settled.clear()
            while not call[1].done() and not await self._try([call]):
                # A call may have been settled while this one was refused.
                are_others = self._calls_in_flight or self._settled.is_set()
                if not are_others and not await self._may_be_settled():
                    _answer(call[1], granted=False)
                    break
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._settled.wait(), delay)
                self._settled.clear()
                delay = min(1.5 * delay, _LONGEST_LOOK)

    async def _may_be_settled(self) -> bool:
        """Return whether another runner may give back some of what it has reserved."""
        if reserving := self._share.state.reserving:
            # What the dead have reserved counts as spent now; others may just have left.
            await self._find_alive(reserving)
        return bool(reserving)

    async def _try(self, batch: list[tuple[float, asyncio.Future[bool]]]) -> bool:
        waiting = [(usd, granted) for usd, granted in batch if not granted.done()]
        total = sum(usd for usd, _ in waiting)
        if not await self._share.reserve(total):
            return False
        for usd, granted in waiting:
            if granted.done():  # cancelled meanwhile
                self._share.reserved -= usd
            else:
                self._calls_in_flight += 1
                granted.set_result(True)
        return True


def _answer(waiting: asyncio.Future[bool], *, granted: bool) -> None:
    if not waiting.done():  # it may be cancelled
        waiting.set_result(granted)
