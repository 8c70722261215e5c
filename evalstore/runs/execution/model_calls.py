"""Gets one answer from one model, within the limits of its account, the budget and retries.

A provider makes exactly one call. This module calls it when its account and the budget allow it,
and again as `RetryPolicy` decides. A bug in a provider is treated as a failed call, so that other
questions are not lost.
"""

from __future__ import annotations

import asyncio
import math
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Container, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Literal

from evalstore.core import clock
from evalstore.core.display import money
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import ProgressListener
from evalstore.core.values import (
    Json,
    ModelVersion,
    OutgoingMessage,
    Reply,
    Request,
    Text,
)
from evalstore.providers.base import OLLAMA, Provider, ProviderError
from evalstore.providers.errors import clean, find_secrets
from evalstore.providers.price_table import Price
from evalstore.runs.execution.limits.budget import (
    OUTPUT_GUESS,
    Budget,
    OverBudgetError,
    SharedBudget,
    count_input,
    count_text,
    estimate_call_cost,
)
from evalstore.runs.execution.limits.rate_limiter import DEFAULT_ACCOUNT, Account, RateLimiter
from evalstore.store.events import OutputTokens
from evalstore.store.leases import LeaseHolder, this_program
from evalstore.workspace.model_files import Model

ModelKey = tuple[str, str]
"""The display id and the code of a model."""
Change = Literal["limit", "system"]
Ask = Callable[[Request], "Awaitable[Reply]"]

_LIMIT = re.compile(r"max_?(completion_?)?tokens", re.IGNORECASE)
_OF_VALUE = re.compile(
    r"too (large|high|big|small|low|many)|at (most|least)|maximum|minimum|exceed|greater|less than"
    r"|between|range",
    re.IGNORECASE,
)
"""Words about the value of a limit; another name does not help."""
_SYSTEM = re.compile(
    r"\bsystem\W{0,3}(role|messages?|prompts?|instructions?)\b|\broles?\b.{0,60}\bsystem\b"
    r"|developer (instruction|message|role)|roles must alternate",
    re.IGNORECASE | re.DOTALL,
)
_NOT_TAKEN = re.compile(
    r"not (be )?(supported|support|allowed|accepted|accept|enabled|permitted|one of|implemented)"
    r"|n't (support|allow|accept)|unsupported|must alternate|only (support|accept|allow)",
    re.IGNORECASE,
)
_WRONG = re.compile(r"invalid|unexpected|unknown|unrecogni[sz]ed|must be", re.IGNORECASE)
"""Words of a refusal which a server that has failed says of itself as well."""
_ONLY_NATIVE = frozenset(
    {
        *("keep_alive", "min_p", "mirostat", "mirostat_eta", "mirostat_tau", "num_batch"),
        *("num_ctx", "num_gpu", "num_keep", "num_predict", "num_thread", "options"),
        *("repeat_last_n", "repeat_penalty", "tfs_z", "top_k", "typical_p"),
    }
)
"""Options that Ollama ignores in requests of OpenAI's form, which it answers without a word."""


class Adaptations:
    """What the models of a run refuse."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        """`warn` is told once what is sent in another way."""
        self._warn = warn
        self._helped: set[tuple[ModelKey, Change]] = set()
        """What a model has answered after a refusal."""
        self._ignored: set[str] = set()

    async def ask(self, model: ModelKey, provider: str, request: Request, ask: Ask) -> Reply:
        """Return the reply of a model of this kind of provider; raises `ProviderError`.

        A refusal of the name of the limit or of the system role is answered by the same request
        in the other way. It counts as one call: a refused request costs nothing.
        """
        words = _describe_ignored(model[0], provider, request.provider_options)
        if words and words not in self._ignored:
            self._ignored.add(words)
            self._warn(words)
        refusals: dict[Change, ProviderError] = {}
        while True:
            sent = self._adapt(model, provider, request, refusals)
            try:
                reply = await ask(sent)
            except ProviderError as error:
                if _names_limit(error) and "limit" in refusals:
                    raise refusals["limit"] from None  # refused by both names
                if (change := _refused(sent, error)) is None:
                    raise
                refusals[change] = error
            else:
                self._learn(model, refusals)
                return reply

    def _adapt(
        self, model: ModelKey, provider: str, request: Request, changes: Container[Change]
    ) -> Request:
        limit = request.max_output_tokens
        if limit is not None and ("limit" in changes or (model, "limit") in self._helped):
            is_new = provider == "openai"  # its client has sent the new name
            name = "max_tokens" if is_new else "max_completion_tokens"
            options = {name: limit, **request.provider_options}
            request = replace(request, max_output_tokens=None, provider_options=options)
        if "system" in changes or (model, "system") in self._helped:
            request = replace(request, messages=without_system(request.messages))
        return request

    def _learn(self, model: ModelKey, changes: Iterable[Change]) -> None:
        """Send all further requests in the way that was answered."""
        for change in changes:
            if change == "system" and (model, change) not in self._helped:
                words = "its system prompt is sent at the beginning of the user's message"
                self._warn(f"model '{model[0]}' does not accept a system message: {words}")
            self._helped.add((model, change))


def _refused(sent: Request, error: ProviderError) -> Change | None:
    """Return what to send in another way after an error; None if nothing would help."""
    if sent.max_output_tokens is not None and _names_limit(error):
        return "limit"
    if _refuses_system(error) and without_system(sent.messages) != sent.messages:
        return "system"
    return None


def _is_refusal(error: ProviderError, statuses: Container[int | None]) -> bool:
    return error.kind == "unsupported" or (error.kind == "status" and error.status in statuses)


def _names_limit(error: ProviderError) -> bool:
    words = error.message
    named = _LIMIT.search(words) is not None and _OF_VALUE.search(words) is None
    return named and _is_refusal(error, (400, 422))


def _refuses_system(error: ProviderError) -> bool:
    if not _SYSTEM.search(error.message):
        return False
    if _NOT_TAKEN.search(error.message):
        return _is_refusal(error, (400, 422, 500, 501))  # some fail to fill their template
    return _WRONG.search(error.message) is not None and _is_refusal(error, (400, 422))


def without_system(messages: tuple[OutgoingMessage, ...]) -> tuple[OutgoingMessage, ...]:
    """Return a conversation whose system message is the beginning of the first user message.

    It stays as it is where that would change who says what: with a later system message.
    """
    roles = [message.role for message in messages]
    if roles[:1] != ["system"] or "system" in roles[1:]:
        return messages
    system, *rest = messages
    if not rest or rest[0].role != "user" or rest[0].filled:
        return (replace(system, role="user"), *rest)
    parts = (*system.parts, Text("\n\n"), *rest[0].parts)
    return (replace(rest[0], parts=parts), *rest[1:])


def _describe_ignored(model: str, provider: str, options: Mapping[str, Json]) -> str:
    """Return a warning about provider options that an Ollama server ignores; else nothing."""
    names = [name for name in _ONLY_NATIVE & options.keys() if options[name] is not None]
    if provider not in OLLAMA or not names:
        return ""
    listed = ", ".join(f"'{name}'" for name in sorted(names))
    return (
        f"Ollama ignores {listed} of model '{model}', as its API of OpenAI's form has no such "
        "options: put PARAMETER lines into a Modelfile, or set OLLAMA_CONTEXT_LENGTH for 'num_ctx'"
    )


_OVERLOADED = (429, 503, 529)
"""Statuses of an overloaded server."""
_LONGEST_WAIT = 2.0
"""Seconds after which a call that waits looks whether its turn comes sooner by now."""
_TOLD_AFTER = 10.0
"""Seconds of retries of one call after which the user is told."""
HALTED, OVER_BUDGET = "halted", "budget"
"""Kinds of calls that were not made, because the run ends."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model with its provider, its options and its price."""

    model: Model
    version: ModelVersion
    provider: Provider
    price: Price | None
    temperature: float | None = None
    structured: bool = True
    account: Account = DEFAULT_ACCOUNT

    @property
    def key(self) -> ModelKey:
        """Return what the model is called by, here and at its provider."""
        return self.model.id, self.version.code


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of an execution."""

    concurrency: int = 8
    """The most calls at once, for each account."""
    timeout: float = 120.0
    """Seconds for one call with all its tries."""
    retries: int | None = None
    """The most retries of a call; None: until the timeout if the server is overloaded."""
    judge_tokens: int | None = None
    max_cost: float | None = None
    """The most that may be spent, in USD."""
    requests_per_minute: float | None = None
    """The limit of accounts without their own."""
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class RunEnvironment:
    """The dependencies of a run: the clock, randomness and the listener."""

    now: Callable[[], int]
    """Microseconds since 1970, UTC."""
    nonce: Callable[[], str]
    listener: ProgressListener = field(default_factory=ProgressListener)
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    """Waits this many seconds before a call is retried."""
    monotonic: Callable[[], float] = time.monotonic
    """The seconds of a monotonic clock, which `sleep` advances."""
    uptime: Callable[[], float] = clock.uptime
    """The seconds of a clock that goes on while the machine sleeps."""
    runner: Callable[[], LeaseHolder] = this_program
    """Returns what other runs on the store know this one by."""
    jitter: Callable[[], float] = random.random
    """A number from 0 to 1, so that calls that failed together are not retried together."""


class LeaseLostError(Exception):
    """A call that was not made because another run has taken over the work."""


async def _always() -> bool:
    return True


class CallFailed(Exception):  # noqa: N818 - it is handled, never shown
    """A call that failed, after this many attempts."""

    def __init__(self, error: ProviderError, attempts: int) -> None:
        super().__init__(error.message)
        self.error = error
        self.attempts = attempts


@dataclass(slots=True)
class _Turn:
    """The turn of one call of an account."""

    used: int = 0
    """The tokens of the call, sent and answered; 0 if it was not made."""


class ModelCaller:
    """Makes the calls of one execution."""

    def __init__(
        self,
        limits: Limits,
        environment: RunEnvironment,
        is_ours: Callable[[], Awaitable[bool]] = _always,
        budget: Budget | SharedBudget | None = None,
    ) -> None:
        """`is_ours` is called before each try and returns whether this run still has the lease.

        `budget` is that of several runners; without one, `limits.max_cost` is the limit.
        """
        self._limits = limits
        self._environment = environment
        self._is_ours = is_ours
        self.budget: Budget | SharedBudget = budget or Budget(limits.max_cost)
        self._limiters: dict[str, RateLimiter] = {}
        self._retry_policy = RetryPolicy(limits.retries, environment.jitter, limits.timeout)
        self._circuit_breaker = CircuitBreaker(limits.timeout, environment.listener.note)
        self._adaptations = Adaptations(environment.listener.note)
        self._sizes = CallSizes()
        self._longest_output: dict[ModelKey, int] = {}
        """Model -> the most output tokens of an answer so far."""
        self._highest_cost: dict[ModelKey, float] = {}
        """Model whose provider says what an answer cost -> the most USD of an answer so far."""
        self._warned_of_budget = False
        self._slow = set[ModelKey]()
        """The models that were retried for so long that the user was told."""
        self._halted = asyncio.Event()

    def note_outputs(self, outputs: Mapping[ModelKey, OutputTokens]) -> None:
        """Note the output tokens of the stored answers of each model, before the first call."""
        self._sizes.begin({model: tokens.mean for model, tokens in outputs.items()})
        self._longest_output |= {model: tokens.most for model, tokens in outputs.items()}

    def is_halted(self) -> bool:
        """Return whether no more calls are to be started."""
        return self._halted.is_set()

    def halt(self) -> None:
        """Start no more calls, and stop waiting for retries."""
        self._halted.set()

    def rate_limiter(self, account: Account) -> RateLimiter:
        """Return the rate limiter of an account."""
        if account.name not in self._limiters:
            limits = self._limits
            self._limiters[account.name] = RateLimiter(
                min(limits.concurrency, account.concurrency or limits.concurrency),
                account.requests_per_minute or limits.requests_per_minute,
                account.tokens_per_minute or limits.tokens_per_minute,
            )
        return self._limiters[account.name]

    async def ask(self, endpoint: Endpoint, request: Request) -> Reply:
        """Return one answer, after as many tries as are allowed.

        Raises `CallFailed`, or `LeaseLostError` when another run has taken over the work.
        """
        model = endpoint.key
        limiter = self.rate_limiter(endpoint.account)
        attempts = 0
        remaining = self._limits.timeout
        while True:
            async with self._turn(model, limiter, request, attempts) as turn:
                reserved = await self._reserve_cost(endpoint, request, attempts)
                if not await self._is_ours():
                    self.budget.settle(reserved, 0.0)
                    raise LeaseLostError
                attempts += 1
                turn.used = count_input(request)
                # The time of the call and its retries counts, not the wait for the turn.
                began, full = self._environment.monotonic(), not limiter.has_room
                try:
                    reply = await self._call_once(endpoint, request, remaining, reserved)
                    turn.used = self._sizes.note(model, request, reply, limiter.tokens_per_minute)
                except ProviderError as failure:
                    error = failure
                else:
                    self._circuit_breaker.count_success(model)
                    limiter.succeeded(full=full)
                    if reply.wait:
                        now = self._environment.monotonic()
                        limiter.pause(now, min(reply.wait, self._limits.timeout))
                    return reply
            self._adapt_to_failure(model, limiter, error)
            delay = self._retry_policy.delay(error, attempts)
            remaining -= self._environment.monotonic() - began + delay
            if not self._retry_policy.allows(error, attempts, remaining):
                if not await self._is_ours():  # another run may have the answer
                    raise LeaseLostError from error
                waited = self._retry_policy.waits(error)
                self._circuit_breaker.count_failure(model, error, waited=waited)
                raise CallFailed(error, attempts) from error
            if self._limits.timeout - remaining >= _TOLD_AFTER and model not in self._slow:
                self._slow.add(model)
                calls = (
                    f"calls to '{model[0]}', each for up to {self._limits.timeout:g} s (--timeout)"
                )
                self._environment.listener.warn(f"retrying {calls}: {error.message}")
            await self._pause(delay)
            if self.is_halted():
                raise CallFailed(error, attempts) from error

    @asynccontextmanager
    async def _turn(
        self, model: ModelKey, limiter: RateLimiter, request: Request, attempts: int
    ) -> AsyncIterator[_Turn]:
        """Wait until the account may be called; raises `CallFailed` when it must not be.

        In the end, what was reserved of the tokens a minute is corrected to what was used.
        """
        self._require_callable(model, attempts)
        if limiter.tokens_per_minute < math.inf:
            await self._sizes.wait_until_known(model)
        turn, reserved, slot = _Turn(), self._sizes.estimate(model, request), None
        monotonic = self._environment.monotonic
        try:
            self._require_callable(model, attempts)
            slot = limiter.reserve(monotonic(), reserved)
            while (wait := limiter.start_of(slot, now := monotonic()) - now) > 0:
                await self._pause(min(wait, _LONGEST_WAIT))
                self._require_callable(model, attempts)
            yield turn
        finally:
            if slot is not None:
                limiter.correct(reserved, turn.used)
            self._sizes.end(model, was_called=turn.used > 0)

    def _require_callable(self, model: ModelKey, attempts: int) -> None:
        """Raise `CallFailed` when the run is halted or calls to the model are stopped."""
        if self.is_halted():
            raise CallFailed(ProviderError(HALTED, "the run was stopped"), attempts)
        if stopped := self._circuit_breaker.error(model):
            raise CallFailed(stopped, attempts)

    async def _reserve_cost(self, endpoint: Endpoint, request: Request, attempts: int) -> float:
        """Reserve what the next try may cost, in USD, and return it.

        Raises `CallFailed` when it must not be made.
        """
        longest = self._longest_output.get(endpoint.key, 0)
        reserved = estimate_call_cost(endpoint.price, request, longest)
        reserved = max(reserved, self._highest_cost.get(endpoint.key, 0.0))
        try:
            await self.budget.reserve(reserved)
        except OverBudgetError:
            left = round(self.budget.remaining, 10)
            rest = f"{money(left)} is left" if left > 0 else "nothing is left"
            words = f"the next call may cost up to {money(reserved)}, and {rest}"
            if not self._warned_of_budget:
                self._warned_of_budget = True
                self._environment.listener.note(words)
            raise CallFailed(ProviderError(OVER_BUDGET, words), attempts) from None
        if self.is_halted():
            self.budget.settle(reserved, 0.0)
            raise CallFailed(ProviderError(HALTED, "the run was stopped"), attempts)
        return reserved

    async def _call_once(
        self, endpoint: Endpoint, request: Request, timeout: float, reserved: float
    ) -> Reply:
        """Make one call, and settle the cost that was reserved for it."""
        cost = 0.0
        try:
            provider = endpoint.provider
            reply = await self._adaptations.ask(
                endpoint.key,
                endpoint.version.provider,
                request,
                lambda sent: _ask(provider, sent, timeout),
            )
            model = endpoint.key
            output = reply.usage.output_tokens or 0
            self._longest_output[model] = max(self._longest_output.get(model, 0), output)
            if reply.cost is not None:
                cost = reply.cost
                self._highest_cost[model] = max(self._highest_cost.get(model, 0.0), cost)
            elif endpoint.price is not None:
                known = endpoint.price.covers(reply.usage)
                cost = endpoint.price.cost(reply.usage, reply.latency).usd if known else reserved
            is_priced = endpoint.price is not None or reply.cost is not None
            self._environment.listener.spent(cost if is_priced else None, _tokens(reply))
            return reply
        finally:
            self.budget.settle(reserved, cost)

    def _adapt_to_failure(
        self, model: ModelKey, limiter: RateLimiter, error: ProviderError
    ) -> None:
        """Slow the account down or stop calling the model, depending on the failure."""
        now = self._environment.monotonic()
        if error.status in _OVERLOADED or error.kind == "timeout":
            limiter.throttled(now)
        is_stopped = self._circuit_breaker.check_failure(model, error)
        if error.retry and error.status in _OVERLOADED and not is_stopped:
            limiter.pause(now, error.retry_after or 0.0)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the run is halted in the meantime."""
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
    """Make one call; an unexpected exception of the provider's code is a failed call."""
    try:
        return await provider.ask(request, timeout=timeout)
    except (ProviderError, EvalstoreError):
        raise
    except Exception as problem:
        description = f"{type(problem).__name__}: {problem}".removesuffix(": ")
        words = clean(description, find_secrets(None))
        raise ProviderError("bug", f"a bug in the provider: {words}") from problem


def _tokens(reply: Reply) -> int:
    return (reply.usage.input_tokens or 0) + (reply.usage.output_tokens or 0)


# --- estimates how many tokens the next call of a model uses, from those of the calls before it


_MOST_COUNTED = 50
"""The mean follows the last calls: each counts for a fiftieth of it or more."""
_STORED = 10
"""The mean of the stored answers counts as that of so many calls."""
_GUESSED = 3
"""So many calls are assumed to be as long as an answer of which nothing is known."""


class CallSizes:
    """The tokens of the calls of each model."""

    def __init__(self) -> None:
        self._means: dict[ModelKey, float] = {}
        """Model -> the mean of the tokens that calls used beyond the estimate of their input."""
        self._counts: dict[ModelKey, int] = {}
        self._called: set[ModelKey] = set()
        """The models of which a call has ended."""
        self._first_calls: dict[ModelKey, asyncio.Event] = {}
        """Model -> what is set when the only call of it in flight has ended."""

    def begin(self, outputs: Mapping[ModelKey, int]) -> None:
        """Begin with the mean output tokens of the stored answers of each model."""
        self._means |= outputs
        self._counts |= dict.fromkeys(outputs, _STORED)

    async def wait_until_known(self, model: ModelKey) -> None:
        """Let one call of a model go first, and the others wait until it has ended.

        So a model whose answers are very long does not use many times the limit before the first
        of them is there. Whoever returns while the size is not known must call `end`.
        """
        while model not in self._means and model not in self._called:
            if (first := self._first_calls.get(model)) is None:
                self._first_calls[model] = asyncio.Event()
                return
            await first.wait()

    def end(self, model: ModelKey, *, was_called: bool) -> None:
        """Let the other calls of a model go on, or the next one first if this was not made.

        Also after a failure, so that calls to a model that never answers are soon stopped.
        """
        if was_called:
            self._called.add(model)
        if first := self._first_calls.pop(model, None):
            first.set()

    def estimate(self, model: ModelKey, request: Request) -> int:
        """Return how many tokens a call uses, sent and answered: rather too many, if few are known.

        The first answers can all be short.
        """
        mean, count = self._means.get(model, 0.0), self._counts.get(model, 0)
        guess = min(OUTPUT_GUESS, request.max_output_tokens or OUTPUT_GUESS)
        answered = (guess * _GUESSED + mean * count) / (_GUESSED + count)
        return max(1, round(count_input(request) + max(mean, answered)))

    def note(self, model: ModelKey, request: Request, reply: Reply, most: float) -> int:
        """Note a call that was answered; returns how many tokens it has used.

        What the provider does not say, or counts as 0, is estimated from the texts. No call counts
        for more than `most`.
        """
        sent, usage = count_input(request), reply.usage
        used = usage.input_tokens or sent
        used += usage.output_tokens or count_text(reply.text or "")
        count = self._counts[model] = min(self._counts.get(model, 0) + 1, _MOST_COUNTED)
        mean = self._means.get(model, 0.0)
        self._means[model] = mean + (min(used, most) - sent - mean) / count
        return used


# --- decides when a failed call is made again, and when all calls to its model are stopped


_FIRST_DELAY, _LONGEST_DELAY = 0.25, 30.0
"""Seconds."""
_PASSING = frozenset({408, 425, 429, 502, 503, 504, 520, 529})
"""Statuses of a server that takes no call now: the same call succeeds later."""
_RETRIES = 2
"""The most tries after the first one for other failures that may pass."""
_MOST_FAILURES_IN_A_ROW = 20
"""The number of consecutive connection failures after which calls to a model are stopped."""
_MOST_WAITS_IN_A_ROW = 5
"""The same for calls that waited for an overloaded server until the timeout."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Decides how often a call is tried, and the delay before each retry."""

    retries: int | None
    """The most tries after the first one; None: until the timeout if the server is overloaded."""
    jitter: Callable[[], float]
    """A number from 0 to 1, so that calls that failed together are not retried together."""
    timeout: float = 120.0
    """Seconds for a call with all its tries."""

    def allows(self, error: ProviderError, attempts: int, remaining: float) -> bool:
        """Return whether a failed call is tried again; `remaining` is the time left, in seconds."""
        if self.waits(error):
            return remaining > 0
        retries = _RETRIES if self.retries is None else self.retries
        return error.retry and remaining > 0 and attempts <= retries

    def waits(self, error: ProviderError) -> bool:
        """Return whether a failed call is tried again until the timeout."""
        passes = error.status in _PASSING or bool(error.retry_after)
        return self.retries is None and error.retry and passes

    def delay(self, error: ProviderError, attempts: int) -> float:
        """Return the seconds until the next try: the server's, else exponential with jitter."""
        if error.retry_after:
            return error.retry_after
        bound: float = min(_LONGEST_DELAY, self.timeout / 4, _FIRST_DELAY * 2**attempts)
        return bound / 4 + self.jitter() * bound * 3 / 4


class CircuitBreaker:
    """Stops the calls to a model when none of them can succeed."""

    def __init__(self, timeout: float, warn: Callable[[str], None]) -> None:
        """`timeout` is that of one call in seconds; `warn` is called once for each such model."""
        self._timeout = timeout
        self._warn = warn
        self._errors: dict[ModelKey, ProviderError] = {}
        self._failures_in_a_row: dict[ModelKey, int] = {}
        """Connection failures since the model last answered."""

    def error(self, model: ModelKey) -> ProviderError | None:
        """Return why calls to a model are stopped; None if they are not."""
        return self._errors.get(model)

    def check_failure(self, model: ModelKey, error: ProviderError) -> bool:
        """Stop calls to the model if no other try can succeed; returns whether they are stopped."""
        if error.stops_model:
            self._stop(model, error.message, error)
            return True
        wait = error.retry_after or 0.0
        if error.retry and wait >= self._timeout:
            waits = f"it asks to wait {wait:,.0f} s, and the timeout is {self._timeout:g} s"
            self._stop(model, f"{error.message} ({waits})", error)
            return True
        return False

    def count_failure(self, model: ModelKey, error: ProviderError, *, waited: bool) -> None:
        """Count a call that failed in all tries; too many failures of the connection stop calls.

        So do calls that `waited` until the timeout.
        """
        most = _MOST_WAITS_IN_A_ROW if waited else _MOST_FAILURES_IN_A_ROW
        if not waited and error.kind not in ("connection", "timeout"):
            self._failures_in_a_row[model] = 0  # the server has answered
            return
        self._failures_in_a_row[model] = self._failures_in_a_row.get(model, 0) + 1
        if self._failures_in_a_row[model] >= most:
            until = f" until the timeout of {self._timeout:g} s" if waited else ""
            self._stop(model, f"{error.message} ({most} times in a row{until})", error)

    def count_success(self, model: ModelKey) -> None:
        """Note that the model has answered."""
        self._failures_in_a_row[model] = 0

    def _stop(self, model: ModelKey, reason: str, error: ProviderError) -> None:
        if model not in self._errors:
            self._errors[model] = ProviderError("stopped", reason, lasts=error.is_permanent)
            self._warn(f"model '{model[0]}' is not asked again in this run: {reason}")
