"""One answer from one model: retries within bounds, and an end to what cannot succeed.

A provider makes exactly one call; how often it is tried, how long is waited in between, how
fast its account is called and when a model is abandoned is decided here. A bug in a provider
is a failed call: other questions are not lost by it.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.execution.budget import Budget, OverBudgetError, count_input, likely_cost
from evalstore.execution.rate_limiter import ANYWHERE, Account, RateLimiter
from evalstore.providers.base import Provider, ProviderError
from evalstore.providers.errors import clean, find_secrets
from evalstore.values import ModelVersion, Reply, Request

if TYPE_CHECKING:
    from evalstore.planning.pricing import Price
    from evalstore.workspace.model_files import Model

_FIRST_DELAY, _LONGEST_DELAY = 0.25, 30.0
_TOO_FAST = (429, 503, 529)
"""Statuses of a server that has more to do than it can."""
_MOST_IN_A_ROW = 20
"""After so many failures of the connection without an answer a model is abandoned."""
STOPPED, HALTED, OVER_BUDGET = "stopped", "halted", "budget"
"""Kinds of a call that was not made: its model was abandoned, or everything ends."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model as it is called: its version, its provider, its price."""

    model: Model
    version: ModelVersion
    provider: Provider
    price: Price | None
    temperature: float | None = None
    structured: bool = True
    account: Account = ANYWHERE


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of an execution."""

    concurrency: int = 8
    """The most calls at once, for each account."""
    timeout: float = 120.0
    """Seconds for one call with all its tries."""
    retries: int = 2
    judge_tokens: int | None = None
    max_cost: float | None = None
    """USD"""
    requests_per_minute: float | None = None
    """For accounts that do not say it themselves."""
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """What comes from outside: the clock, randomness, who watches."""

    now: Callable[[], int]
    """Microseconds since 1970, UTC."""
    nonce: Callable[[], str]
    progress: Callable[[str, int], None] = lambda _what, _count: None
    """Called with `asked`, `judged` or `failed` and how many."""
    spent: Callable[[float | None, int], None] = lambda _usd, _tokens: None
    """Called with what a call has cost in USD, None if unknown, and its tokens."""
    warn: Callable[[str], None] = lambda _message: None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits so many seconds, before a call is tried again."""
    monotonic: Callable[[], float] = time.monotonic
    """Seconds of a clock that never goes back, and that `sleep` moves."""
    jitter: Callable[[], float] = random.random
    """A number from 0 to 1, so that those who failed together do not come back together."""


class LeaseLostError(Exception):
    """A call that was not made because another run has taken its work over."""


async def _always() -> bool:
    return True


class CallFailed(Exception):  # noqa: N818 - it is handled, never shown by itself
    """A failed call, after this many attempts."""

    def __init__(self, error: ProviderError, attempts: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.attempts = attempts


class ModelCaller:
    """Makes the calls of one execution."""

    def __init__(
        self,
        limits: Limits,
        environment: RunEnvironment,
        is_ours: Callable[[], Awaitable[bool]] = _always,
    ) -> None:
        """`is_ours` says before each try whether the work it is for is still this run's."""
        self._limits = limits
        self._environment = environment
        self._is_ours = is_ours
        self.budget = Budget(limits.max_cost)
        self._paces: dict[str, RateLimiter] = {}
        self._stopped: dict[tuple[str, str], str] = {}
        """Models that cannot be called any more, and why: display id and code."""
        self._in_a_row: dict[tuple[str, str], int] = {}
        """Model -> failures of its connection since it last answered."""
        self._longest: dict[tuple[str, str], int] = {}
        """Model -> the most output tokens of an answer."""
        self._told_of_budget = False
        self._halted = asyncio.Event()

    def is_halted(self) -> bool:
        """Whether nothing new is to be started."""
        return self._halted.is_set()

    def halt(self) -> None:
        """Start nothing more, and wait for no further try."""
        self._halted.set()

    def pace(self, account: Account) -> RateLimiter:
        """The pace of an account."""
        if account.name not in self._paces:
            limits = self._limits
            self._paces[account.name] = RateLimiter(
                min(limits.concurrency, account.concurrency or limits.concurrency),
                account.requests_per_minute or limits.requests_per_minute,
                account.tokens_per_minute or limits.tokens_per_minute,
            )
        return self._paces[account.name]

    async def ask(self, endpoint: Endpoint, request: Request) -> Reply:
        """One answer, after as many tries as are allowed.

        Raises `CallFailed`, or `LeaseLostError` when another run has taken the work over.
        """
        model = (endpoint.model.id, endpoint.version.code)
        pace = self.pace(endpoint.account)
        tokens = count_input(request)
        attempts = 0
        left = self._limits.timeout
        while True:
            await self._admit(model, pace, tokens, attempts)
            likely = likely_cost(endpoint.price, request, self._longest.get(model, 0))
            await self._afford(likely, attempts)
            if not await self._is_ours():
                self.budget.settle(likely, 0.0)
                raise LeaseLostError
            attempts += 1
            # Only the call and the waits it causes count, not those for its account's turn.
            began, full = self._environment.monotonic(), not pace.has_room
            try:
                reply = await self._try(endpoint, request, left, likely)
            except ProviderError as error:
                self._learn(model, pace, error)
                delay = self._delay(error, attempts)
                left -= self._environment.monotonic() - began + delay
                if not error.retry or left <= 0 or attempts > self._limits.retries:
                    self._give_up(model, error)
                    raise CallFailed(error, attempts) from error
                await self._pause(delay)
                if self.is_halted():
                    raise CallFailed(error, attempts) from error
                continue
            self._in_a_row[model] = 0
            pace.succeeded(full=full)
            pace.correct(_tokens(reply) - tokens)
            if reply.wait:
                pace.pause(self._environment.monotonic(), min(reply.wait, self._limits.timeout))
            return reply

    async def _admit(
        self, model: tuple[str, str], pace: RateLimiter, tokens: int, attempts: int
    ) -> None:
        """Wait until the account may be called; raises `CallFailed` when it must not be."""
        self._require_hope(model, attempts)
        start = pace.reserve(self._environment.monotonic(), tokens)
        while (wait := max(start, pace.resumes) - self._environment.monotonic()) > 0:
            await self._pause(wait)
            self._require_hope(model, attempts)

    def _require_hope(self, model: tuple[str, str], attempts: int) -> None:
        """Raise `CallFailed` when everything is halted, or the model was abandoned."""
        if self.is_halted():
            raise CallFailed(ProviderError(HALTED, "the run was stopped"), attempts)
        if model in self._stopped:
            raise CallFailed(ProviderError(STOPPED, self._stopped[model]), attempts)

    async def _afford(self, likely: float, attempts: int) -> None:
        """Set aside what the next try may cost; raises `CallFailed` when it must not be made."""
        try:
            await self.budget.reserve(likely)
        except OverBudgetError:
            words = (
                f"the next call may cost up to ${likely:.4f}, and ${self.budget.left:.4f} is left"
            )
            if not self._told_of_budget:
                self._told_of_budget = True
                self._environment.warn(words)
            raise CallFailed(ProviderError(OVER_BUDGET, words), attempts) from None
        if self.is_halted():
            self.budget.settle(likely, 0.0)
            raise CallFailed(ProviderError(HALTED, "the run was stopped"), attempts)

    async def _try(
        self, endpoint: Endpoint, request: Request, timeout: float, likely: float
    ) -> Reply:
        """One call, paid from what was set aside for it."""
        cost = 0.0
        try:
            reply = await _ask(endpoint.provider, request, timeout)
            model = (endpoint.model.id, endpoint.version.code)
            output = reply.usage.output_tokens or 0
            self._longest[model] = max(self._longest.get(model, 0), output)
            if endpoint.price is not None:
                known = endpoint.price.covers(reply.usage)
                cost = endpoint.price.cost(reply.usage, reply.latency).usd if known else likely
            self._environment.spent(cost if endpoint.price is not None else None, _tokens(reply))
            return reply
        finally:
            self.budget.settle(likely, cost)

    def _learn(self, model: tuple[str, str], pace: RateLimiter, error: ProviderError) -> None:
        """Slow the account down, or give the model up, as a failure asks for."""
        now = self._environment.monotonic()
        if error.status in _TOO_FAST or error.kind == "timeout":
            pace.throttled(now)
        wait = error.retry_after or 0.0
        if error.stops_model:
            self._stop(model, error.message)
        elif error.retry and wait >= self._limits.timeout:
            asks = f"it asks to wait {wait:,.0f} s"
            self._stop(
                model, f"{error.message} ({asks}, and the timeout is {self._limits.timeout:g} s)"
            )
        elif error.retry and error.status in _TOO_FAST:
            pace.pause(now, wait)

    def _give_up(self, model: tuple[str, str], error: ProviderError) -> None:
        """Count the failures of a connection; after too many of them no more calls are made."""
        if error.kind not in ("connection", "timeout"):
            self._in_a_row[model] = 0  # somebody is there
            return
        self._in_a_row[model] = self._in_a_row.get(model, 0) + 1
        if self._in_a_row[model] >= _MOST_IN_A_ROW:
            self._stop(model, f"{error.message} ({_MOST_IN_A_ROW} times in a row)")

    def _stop(self, model: tuple[str, str], why: str) -> None:
        if model not in self._stopped:
            self._stopped[model] = why
            self._environment.warn(f"model '{model[0]}' is not asked any more: {why}")

    def _delay(self, error: ProviderError, attempts: int) -> float:
        """Seconds until the next try: what the server asks for, else a doubling bound's jitter."""
        if error.retry_after:
            return error.retry_after
        bound: float = min(_LONGEST_DELAY, _FIRST_DELAY * 2**attempts)
        return bound / 4 + self._environment.jitter() * bound * 3 / 4

    async def _pause(self, seconds: float) -> None:
        """Wait, unless everything is halted in the meantime."""
        if self.is_halted():
            return
        waits = [
            asyncio.ensure_future(self._environment.sleep(seconds)),
            asyncio.ensure_future(self._halted.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


async def _ask(provider: Provider, request: Request, timeout: float) -> Reply:
    """One call; what the provider's code raises against its promise fails this call only."""
    try:
        return await provider.ask(request, timeout=timeout)
    except (ProviderError, EvalstoreError):
        raise
    except Exception as problem:
        told = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        words = clean(told, find_secrets(None))
        raise ProviderError("bug", f"a bug in the provider: {words}") from problem


def _tokens(reply: Reply) -> int:
    return (reply.usage.input_tokens or 0) + (reply.usage.output_tokens or 0)
