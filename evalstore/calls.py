"""One answer from one model: retries within bounds, and an end to what cannot succeed.

A provider makes exactly one call; how often it is tried, how long is waited in between
and when a model is given up is decided here.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.providers.base import Provider, ProviderError
from evalstore.values import ModelVersion, Reply, Request

if TYPE_CHECKING:
    from evalstore.catalogue import Model
    from evalstore.pricing import Price

_FIRST_DELAY, _LONGEST_DELAY = 0.25, 30.0
_LONGEST_RETRY_AFTER = 300.0


@dataclass(frozen=True, slots=True)
class Door:
    """A model as it is called: its version, its provider, its price."""

    model: Model
    version: ModelVersion
    provider: Provider
    price: Price | None
    temperature: float | None = None
    structured: bool = True


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of an execution."""

    concurrency: int = 8
    timeout: float = 120.0
    retries: int = 2
    judge_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Rim:
    """What comes from outside: the clock, randomness, who watches."""

    now: Callable[[], int]
    """Microseconds since 1970, UTC."""
    nonce: Callable[[], str]
    progress: Callable[[str, int], None] = lambda _what, _count: None
    """Called with `asked`, `judged` or `failed` and how many."""
    warn: Callable[[str], None] = lambda _message: None
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits so many seconds, before a call is tried again."""
    jitter: Callable[[], float] = random.random
    """A number from 0 to 1, so that those who failed together do not come back together."""


class CallFailed(Exception):  # noqa: N818 - it is handled, never shown by itself
    """A call that brought nothing, after this many attempts."""

    def __init__(self, error: ProviderError, attempts: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.attempts = attempts


class Calls:
    """Makes the calls of one execution."""

    def __init__(self, limits: Limits, rim: Rim) -> None:
        self._limits = limits
        self._rim = rim
        self._stopped: dict[tuple[str, str], str] = {}
        """Models that cannot be called any more, and why: display id and code."""
        self._halted = asyncio.Event()

    @property
    def is_halted(self) -> bool:
        """Whether nothing new is to be started."""
        return self._halted.is_set()

    def halt(self) -> None:
        """Start nothing more, and wait for no further try."""
        self._halted.set()

    async def ask(self, door: Door, request: Request) -> Reply:
        """One answer, after as many tries as are allowed; raises `CallFailed`."""
        model = (door.model.id, door.version.code)
        attempts = 0
        while True:
            if model in self._stopped:
                raise CallFailed(ProviderError("stopped", self._stopped[model]), attempts)
            attempts += 1
            try:
                return await door.provider.ask(request, timeout=self._limits.timeout)
            except ProviderError as error:
                if error.stops_model and model not in self._stopped:
                    self._stopped[model] = error.message
                    self._rim.warn(f"model '{model[0]}' is not asked any more: {error.message}")
                if not error.retry or error.stops_model or attempts > self._limits.retries:
                    raise CallFailed(error, attempts) from error
                await self._pause(self._delay(error, attempts))
                if self.is_halted:
                    raise CallFailed(error, attempts) from error

    def _delay(self, error: ProviderError, attempts: int) -> float:
        """Seconds until the next try: what the server asks for, else a doubling bound's jitter."""
        if error.retry_after is not None:
            return min(max(error.retry_after, 0.0), _LONGEST_RETRY_AFTER)
        bound: float = min(_LONGEST_DELAY, _FIRST_DELAY * 2**attempts)
        return bound / 4 + self._rim.jitter() * bound * 3 / 4

    async def _pause(self, seconds: float) -> None:
        """Wait, unless everything is halted in the meantime."""
        if self.is_halted:
            return
        waits = [
            asyncio.ensure_future(self._rim.sleep(seconds)),
            asyncio.ensure_future(self._halted.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()
