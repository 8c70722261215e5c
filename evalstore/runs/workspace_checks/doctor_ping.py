"""Asks each model one short question, and reports whether and how fast it answers."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Json, OutgoingMessage, Reply, Request, Text
from evalstore.providers.base import SCRIPTED, ProviderError
from evalstore.results.log.failures import hint_for
from evalstore.results.table.list import describe_listed_model
from evalstore.runs.execution.adaptation import Adaptations
from evalstore.runs.execution.key_access import KeyNotAllowedError
from evalstore.runs.execution.key_problems import NO_VARIABLE, find_missing_key, hint_to_set
from evalstore.runs.workspace_checks.model_problems import describe_unknown_price
from evalstore.workspace.model_files import Model, Part, provider_options

if TYPE_CHECKING:
    from evalstore.runs.execution.endpoints import ProviderPool
    from evalstore.runs.execution.model_calls import Endpoint
    from evalstore.workspace.reader import Reading

QUESTION = "Answer with one word: are you there?"
MOST_TOKENS = 16


class PingTarget(NamedTuple):
    """A model in one of its parts, with the temperature a run would use."""

    id: str
    model: Model
    part: Part
    temperature: float | None


@dataclass
class Checkup:
    """The findings about one model."""

    model: str
    facts: Json
    """The facts that `ls models` lists."""
    code: str
    """The model code of the request, which an override for its part may change."""
    key_variable: str | None = None
    key_set: bool = False
    key_origin: str | None = None
    """Where the key comes from, in words."""
    refused: bool = False
    """Whether its key may not be sent to its host."""
    pinged: bool = False
    reply: Reply | None = None
    cost: float | None = None
    """The cost in USD; None if there was no answer, or the price is not known."""
    error: ProviderError | None = None
    problems: list[tuple[str, str, str | None]] = field(default_factory=list)
    """The problems: level, message and hint."""

    @property
    def reports_cost(self) -> bool:
        """Return whether its answer said what it cost, as that of an application may."""
        return self.reply is not None and self.reply.cost is not None

    @property
    def answered(self) -> bool:
        """Return whether the model answered the ping."""
        return self.reply is not None

    @property
    def is_reachable(self) -> bool | None:
        """Return whether a server responded; None if the model was not pinged."""
        if not self.pinged:
            return None
        return self.answered or (self.error is not None and self.error.status is not None)

    @property
    def is_known(self) -> bool | None:
        """Return whether the server has the model; None if that is not known."""
        if self.answered:
            return True
        return False if self.error is not None and self.error.status == 404 else None

    @property
    def level(self) -> str:
        """Return the worst of its problems: `ok`, `warn` or `fail`."""
        levels = {level for level, _, _ in self.problems}
        return "fail" if "fail" in levels else "warn" if "warn" in levels else "ok"

    def document(self) -> Json:
        """Return the findings as JSON."""
        reply, error = self.reply, self.error
        return {
            **self.facts,
            "model": self.model,
            "code": self.code,
            "level": self.level,
            "keyVariable": self.key_variable,
            "keySet": self.key_set if self.key_variable else None,
            "keyOrigin": self.key_origin,
            "pinged": self.pinged,
            "reachable": self.is_reachable,
            "known": self.is_known,
            "answered": self.answered,
            "latency": reply.latency if reply else None,
            "resolvedModel": reply.resolved_model if reply else None,
            "status": error.status if error else None,
            "class": error.kind if error else None,
            "cost": self.cost,
            "problems": [
                {"level": level, "message": message, "hint": hint}
                for level, message, hint in self.problems
            ],
        }


async def examine_all(
    providers: ProviderPool, reading: Reading, targets: list[PingTarget], timeout: float | None
) -> list[Checkup]:
    """Check all models at the same time; without a timeout, in seconds, none is asked."""
    try:
        return list(
            await asyncio.gather(
                *(_examine(providers, reading, target, timeout) for target in targets)
            )
        )
    finally:
        await providers.close()


async def _examine(
    providers: ProviderPool, reading: Reading, target: PingTarget, timeout: float | None
) -> Checkup:
    model, provider = target.model, target.model.provider
    facts = describe_listed_model(model, reading, providers.day)
    checkup = Checkup(target.id, facts, model.version(target.part).code, provider.key_variable)
    checkup.key_set = providers.environment.has(provider.key_variable or "")
    if missing := find_missing_key(provider, providers.environment):
        checkup.problems.append(("warn", missing.message, missing.hint))
    checkup.problems += [("warn", message, hint) for message, hint in _doubts(checkup, model)]
    place = len(checkup.problems)
    await _call(providers, reading, target, timeout, checkup)
    if checkup.facts["price"] is None and not model.costs and not checkup.reports_cost:
        checkup.problems.insert(place, ("warn", *describe_unknown_price(model)))
    return checkup


async def _call(
    providers: ProviderPool,
    reading: Reading,
    target: PingTarget,
    timeout: float | None,
    checkup: Checkup,
) -> None:
    """Look whether a model may be called, and call it if a timeout says so."""
    model, provider = target.model, target.model.provider
    try:
        endpoint = providers.endpoint(model, target.part, target.temperature)
        access = providers.find_access(provider)
        checkup.key_origin = providers.environment.origin(
            provider.key_variable or "", access.api_key
        )
        if access.warning:
            checkup.problems.append(("warn", access.warning, "change 'baseURL' of its provider"))
    except EvalstoreError as error:
        checkup.refused = isinstance(error, KeyNotAllowedError)
        checkup.problems.append(("fail", str(error), error.hint))
        return
    if untrusted := providers.find_untrusted(model):
        hint = f"read what it runs, then 'evalstore trust {reading.model_files[model.id]}'"
        checkup.problems.append(("fail", untrusted, hint))
        return
    # A script has no server, and may have no answer to this question.
    if timeout is not None and provider.type != SCRIPTED:
        await _ping(checkup, endpoint, timeout)


async def _ping(checkup: Checkup, endpoint: Endpoint, timeout: float) -> None:
    request = Request(
        code=endpoint.version.code,
        messages=(OutgoingMessage("user", (Text(QUESTION),)),),
        temperature=endpoint.temperature,
        max_output_tokens=MOST_TOKENS,
        provider_options=provider_options(endpoint.version),
    )
    checkup.pinged = True
    try:
        checkup.reply = await Adaptations(
            lambda words: checkup.problems.append(("warn", words, None))
        ).ask(
            endpoint.key,
            endpoint.version.provider,
            request,
            lambda sent: endpoint.provider.ask(sent, timeout=timeout),
        )
    except ProviderError as error:
        checkup.error = error
        # A busy server is reachable, and has accepted the key and the model.
        level = "warn" if error.status == 429 and not error.stops_model else "fail"
        checkup.problems.append((level, error.message, _hint(checkup, error)))
    else:
        if checkup.reply.cost is not None:
            checkup.cost = checkup.reply.cost
        elif endpoint.price is not None:
            checkup.cost = endpoint.price.cost(checkup.reply.usage, checkup.reply.latency).usd


def _hint(checkup: Checkup, error: ProviderError) -> str | None:
    if error.status == 401 and checkup.key_variable:
        if not checkup.key_set:
            return hint_to_set(checkup.key_variable)
        return f"check the value of {checkup.key_variable}: the server rejects it"
    if error.status == 401:
        return NO_VARIABLE
    if error.kind == "timeout":
        return "check whether the server is busy, or raise --timeout"
    return hint_for(error.kind, error.status, error.message)


def _doubts(checkup: Checkup, model: Model) -> list[tuple[str, str]]:
    """Return contradictions between the model file and litellm's table, and unknown prices."""
    known = checkup.facts["knownCapabilities"] or {}
    file = "look at 'capabilities' in the model file"
    return [
        (
            f"declared {'with' if can else 'without'} {word}, but litellm's table says otherwise",
            file,
        )
        for word, can in model.capabilities.items()
        if word in known and known[word] != can
    ]
