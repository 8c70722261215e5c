"""Describes models: how they are used, their capabilities and their prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning import pricing
from evalstore.providers.price_table import find_support
from evalstore.workspace.catalogue import is_known_kind
from evalstore.workspace.model_files import Model, bare_model

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.workspace.reader import Reading
    from evalstore.workspace.settings.settings import Settings

MILLION = 1_000_000


def describe_models(settings: Settings, reading: Reading, day: str) -> list[dict[str, Json]]:
    """Describe all models of the files and the settings, with their prices on a day, by id.

    A name in the settings that is not a model is left out.
    """
    used = {candidate.id: "candidate" for candidate in settings.candidates}
    for evaluator in settings.evaluators:
        used[evaluator.id] = "both" if evaluator.id in used else "evaluator"
    rows = []
    for id in sorted({*reading.models, *used}):
        model = reading.models.get(id) or bare_model(id, is_known_kind)
        if model is not None:
            rows.append({**describe_listed_model(model, reading, day), "used": used.get(id)})
    return rows


def describe_listed_model(model: Model, reading: Reading, day: str) -> dict[str, Json]:
    """Describe a model as JSON, with the capabilities that its file and litellm's table declare.

    The latter are `knownCapabilities`. A capability in neither list is not known.
    """
    price = pricing.find(model, reading.currencies, day)
    known = find_support(model.provider.type, model.code)
    return {
        "model": model.id,
        "provider": model.provider.type,
        "code": model.code,
        "baseURL": model.provider.base_url,
        "active": model.active,
        "capabilities": dict(model.capabilities),
        "knownCapabilities": None if known is None else dict(known),
        "price": None if price is None else describe_price(price),
    }


def describe_price(price: pricing.Price) -> dict[str, Json]:
    """Return a price in USD, for a million tokens, one call, and an hour of calls."""
    cached = price.per_cached_token
    return {
        "source": price.source,
        "currency": price.currency,
        "rate": price.rate,
        "input": round(price.per_input_token * MILLION, 10),
        "cachedInput": None if cached is None else round(cached * MILLION, 10),
        "output": round(price.per_output_token * MILLION, 10),
        "call": price.per_call,
        "hour": price.per_hour,
    }
