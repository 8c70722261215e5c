"""Computes what calls cost in USD: with the model file's prices, else litellm's local table.

The price is stored with the answer, so a later change of prices does not change old costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

from evalstore.core.results import Cost, Evaluation
from evalstore.core.values import Json, Reply, Usage
from evalstore.providers.base_urls import is_local
from evalstore.providers.kinds import OPENAI_COMPATIBLE, SCRIPTED
from evalstore.providers.price_table import find_price
from evalstore.workspace.model_files import Currency, Model
from evalstore.workspace.model_files import ModelPrice as ModelCost

LOCAL = "local"
"""The source of the price of a server in one's own network: its calls cost nothing."""


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model on a day, in USD."""

    source: str
    per_input_token: float = 0.0
    per_output_token: float = 0.0
    per_cached_token: float | None = None
    per_cache_write_token: float | None = None
    per_call: float = 0.0
    per_hour: float = 0.0
    """Per hour of the call, for a machine that is rented by the hour."""
    currency: str | None = None
    """The currency of the model file, when it is not USD."""
    rate: float | None = None
    """The value of one unit of the currency in USD."""
    is_simulated: bool = False
    """Whether the model is scripted, so that nobody is paid."""

    @property
    def is_any(self) -> bool:
        """Return whether anything has a price other than 0."""
        return any((self.per_call, self.per_hour, self.per_input_token, self.per_output_token))

    def covers(self, usage: Usage) -> bool:
        """Return whether all tokens that have a price were counted."""
        return not (
            (self.per_input_token and usage.input_tokens is None)
            or (self.per_output_token and usage.output_tokens is None)
        )

    def cost(self, usage: Usage, seconds: float = 0.0) -> Cost:
        """Return the cost of a call with this usage."""
        cached = usage.cached_tokens or 0 if self.per_cached_token is not None else 0
        written = usage.cache_write_tokens or 0 if self.per_cache_write_token is not None else 0
        fresh = max((usage.input_tokens or 0) - cached - written, 0)
        usd = (
            self.per_call
            + fresh * self.per_input_token
            + cached * (self.per_cached_token or 0.0)
            + written * (self.per_cache_write_token or 0.0)
            + (usage.output_tokens or 0) * self.per_output_token
            + seconds / 3600 * self.per_hour
        )
        return Cost(round(usd, 10), self.describe())

    def cost_of(self, calls: Sequence[Reply | Evaluation]) -> float | None:
        """Return the cost of all these calls in USD; None where tokens were not counted."""
        if not all(self.covers(call.usage) for call in calls):
            return None
        return sum(self.cost(call.usage, call.latency).usd for call in calls)

    def describe(self) -> Json:
        """Return the price as it is stored: in USD, with the rate it was converted at."""
        described = {
            "source": self.source,
            "currency": self.currency,
            "rate": self.rate,
            "inputToken": self.per_input_token,
            "outputToken": self.per_output_token,
            "cachedToken": self.per_cached_token,
            "cacheWriteToken": self.per_cache_write_token,
            "call": self.per_call,
            "hour": self.per_hour,
        }
        # Cached tokens without a price cost as much as others, so a price of 0 must be kept.
        return {
            name: value
            for name, value in described.items()
            if value or (name == "cachedToken" and value is not None)
        }


def find(model: Model, currencies: Mapping[str, Currency], day: str) -> Price | None:
    """Return the price of a model on a day (`YYYY-MM-DD`); None when it is not known.

    A server in one's own network costs nothing unless its model has a price.
    """
    in_force = [cost for cost in model.costs if cost.valid_from <= day]
    is_scripted = model.provider.type == SCRIPTED
    if in_force:
        cost = in_force[-1]
        rate = _rate(cost.currency, currencies, day)
        if rate is None:
            return None
        converted = cost.currency != "USD" or rate != 1.0
        cached = cost.per_cached_prompt_token
        return Price(
            source="costs",
            per_input_token=cost.per_prompt_token * rate,
            per_output_token=cost.per_completion_token * rate,
            per_cached_token=None if cached is None else cached * rate,
            per_call=cost.per_call * rate,
            per_hour=cost.per_hour * rate,
            currency=cost.currency if converted else None,
            rate=rate if converted else None,
            is_simulated=is_scripted,
        )
    if is_scripted:
        return Price(source="scripted", is_simulated=True)
    listed = find_price(model.provider.type, model.code)
    if listed is None:
        base_url = model.provider.base_url or OPENAI_COMPATIBLE.get(model.provider.type)
        return Price(source=LOCAL) if base_url and is_local(base_url) else None
    return Price(
        listed.source,
        listed.input_per_token,
        listed.output_per_token,
        listed.cached_per_token,
        listed.cache_write_per_token,
    )


def find_unpriced(
    model: Model, currencies: Mapping[str, Currency], day: str
) -> Iterator[tuple[ModelCost, str]]:
    """Yield the prices of a model without a rate on a day or later, with the first such day.

    A price that was replaced before that day needs no rate.
    """
    in_force = [cost for cost in model.costs if cost.valid_from <= day]
    later = [cost for cost in model.costs if cost.valid_from > day]
    for cost in (*in_force[-1:], *later):
        then = max(day, cost.valid_from)
        if _rate(cost.currency, currencies, then) is None:
            yield cost, then


def _rate(currency: str, currencies: Mapping[str, Currency], day: str) -> float | None:
    if currency in currencies:
        return currencies[currency].rate(day)
    return 1.0 if currency == "USD" else None


def sum_usage(replies: Sequence[Reply]) -> Usage:
    """Return the sum of the tokens of several replies."""

    def total(name: str) -> int | None:
        known = [value for reply in replies if (value := getattr(reply.usage, name)) is not None]
        return sum(known) if known else None

    return Usage(*(total(each.name) for each in fields(Usage)))
