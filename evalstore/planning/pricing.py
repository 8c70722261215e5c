"""Computes what calls cost in USD: with the model file's prices, else litellm's local table.

The price is stored with the answer, so a later change of prices does not change old costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields

from evalstore.core.values import Reply, Usage
from evalstore.providers.base_urls import is_local
from evalstore.providers.kinds import OPENAI_COMPATIBLE, SCRIPTED
from evalstore.providers.price_table import Price, find_price
from evalstore.workspace.model_files import Currency, Model
from evalstore.workspace.model_files import ModelPrice as ModelCost

LOCAL = "local"
"""The source of the price of a server in one's own network: its calls cost nothing."""


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
    if listed := find_price(model.provider.type, model.code):
        return listed
    base_url = model.provider.base_url or OPENAI_COMPATIBLE.get(model.provider.type)
    return Price(source=LOCAL) if base_url and is_local(base_url) else None


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
