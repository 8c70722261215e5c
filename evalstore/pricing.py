"""What calls cost, in USD: the model file's prices, else litellm's local table.

The price that was used is stored with the answer, so a later change of prices changes no
history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalstore.providers.prices import find_price
from evalstore.values import Cost, Json, Usage

if TYPE_CHECKING:
    from evalstore.catalogue import Currency, Model


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model on a day, in USD."""

    source: str
    per_input_token: float = 0.0
    per_output_token: float = 0.0
    per_cached_token: float | None = None
    per_call: float = 0.0
    per_hour: float = 0.0

    def cost(self, usage: Usage, seconds: float = 0.0) -> Cost:
        """What a call with this usage costs."""
        cached = usage.cached_tokens or 0 if self.per_cached_token is not None else 0
        fresh = max((usage.input_tokens or 0) - cached, 0)
        usd = (
            self.per_call
            + fresh * self.per_input_token
            + cached * (self.per_cached_token or 0.0)
            + (usage.output_tokens or 0) * self.per_output_token
            + seconds / 3600 * self.per_hour
        )
        return Cost(round(usd, 10), self.describe())

    def describe(self) -> Json:
        """The price as it is stored."""
        described = {
            "source": self.source,
            "inputToken": self.per_input_token,
            "outputToken": self.per_output_token,
            "cachedToken": self.per_cached_token,
            "call": self.per_call,
            "hour": self.per_hour,
        }
        return {name: value for name, value in described.items() if value}


def find(model: Model, currencies: Mapping[str, Currency], day: str) -> Price | None:
    """The price of a model on a day (`YYYY-MM-DD`); None when it is not known."""
    in_force = [cost for cost in model.costs if cost.valid_from <= day]
    if in_force:
        cost = in_force[-1]
        rate = _rate(cost.currency, currencies, day)
        if rate is None:
            return None
        return Price(
            source="costs",
            per_input_token=cost.per_prompt_token * rate,
            per_output_token=cost.per_completion_token * rate,
            per_call=cost.per_call * rate,
            per_hour=cost.per_hour * rate,
        )
    if model.provider.type == "scripted":
        return Price(source="scripted")
    found = find_price(model.provider.type, model.code)
    if found is None:
        return None
    return Price(
        found.source, found.input_per_token, found.output_per_token, found.cached_per_token
    )


def _rate(currency: str, currencies: Mapping[str, Currency], day: str) -> float | None:
    if currency in currencies:
        return currencies[currency].rate(day)
    return 1.0 if currency == "USD" else None
