"""What calls cost: prices of the table that comes with litellm, and what servers count.

The table is a file of the installed package, so it is read without importing litellm, and stays
the same until another version is installed. Newer tables lack retired models, so a price must be
stored with the call that it applies to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from evalstore.core.values import Cost, Evaluation, Json, Reply, Usage
from evalstore.providers.base import OPENAI_COMPATIBLE, SCRIPTED, litellm_name, plugged_in
from evalstore.providers.base_urls import host_of

TABLE = "model_prices_and_context_window_backup.json"
ENDPOINTS = "provider_endpoints_support_backup.json"

CAPABILITIES = {
    "supports_function_calling": "tools",
    "supports_response_schema": "structured",
    "supports_vision": "image",
    "supports_image_input": "image",
    "supports_pdf_input": "pdf",
    "supports_audio_input": "audio",
    "supports_reasoning": "reasoning",
}


@dataclass(frozen=True, slots=True)
class Price:
    """The price of a model on a day, in USD, without the surcharges for long requests."""

    source: str
    per_input_token: float = 0.0
    per_output_token: float = 0.0
    per_cached_token: float | None = None
    """Of an input token from the provider's cache; None if it costs as much as others."""
    per_cache_write_token: float | None = None
    """Of an input token that is written into the provider's cache; None as above."""
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


def find_price(kind: str, code: str) -> Price | None:
    """Return the price of a model at this kind of provider; None if it is unknown, not free."""
    from importlib.metadata import version  # with 40 modules, for zip files and mail headers

    entry = _find_entry(kind, code)
    if entry is None:
        return None
    input_price = _number(entry, "input_cost_per_token")
    output_price = _number(entry, "output_cost_per_token")
    if input_price is None or output_price is None:
        return None
    return Price(
        f"litellm {version('litellm')}",
        input_price,
        output_price,
        _number(entry, "cache_read_input_token_cost"),
        _number(entry, "cache_creation_input_token_cost"),
    )


def find_support(kind: str, code: str) -> Mapping[str, bool] | None:
    """Return whether a model has each of the capabilities that the table mentions.

    None if the table does not have the model. The table is incomplete: a missing capability is a
    reason for a warning, not for skipping a test.
    """
    entry = _find_entry(kind, code)
    if entry is None:
        return None
    support: dict[str, bool] = {}
    for field, word in CAPABILITIES.items():
        if isinstance(can := entry.get(field), bool):
            support[word] = support.get(word, False) or can
    return support


def find_retirement(kind: str, code: str) -> str | None:
    """Return the day (`YYYY-MM-DD`) from which a model is not served; None if it has none."""
    day = (_find_entry(kind, code) or {}).get("deprecation_date")
    return day if isinstance(day, str) and re.fullmatch(r"\d{4}-\d\d-\d\d", day) else None


def is_known_provider(kind: str) -> bool:
    """Return whether there is a client for this kind of provider."""
    return (
        kind == SCRIPTED
        or kind in OPENAI_COMPATIBLE
        or kind in plugged_in()
        or litellm_name(kind) in _litellm_providers()
    )


def is_listed(kind: str, code: str) -> bool:
    """Return whether the table has a model; True for a provider without any model in the table."""
    if kind in plugged_in() or _find_entry(kind, code) is not None:
        return True
    name = litellm_name(kind)
    return not any(
        _belongs(str(entry.get("litellm_provider")), name) for entry in _table().values()
    )


def provider_of(code: str) -> str | None:
    """Return the provider of a model that the table lists without one; None if it has no such."""
    provider = _table().get(code, {}).get("litellm_provider")
    return str(provider) if provider and "/" not in code else None


def _find_entry(kind: str, code: str) -> Mapping[str, Json] | None:
    """Return the entry of a model, which may be listed with its provider's name in front."""
    name, table = litellm_name(kind), _table()
    for key in (f"{name}/{code}", code):
        entry = table.get(key)
        if entry is not None and _belongs(str(entry.get("litellm_provider")), name):
            return entry
    return None


def _belongs(provider: str, name: str) -> bool:
    """Return whether an entry's provider is this one or a part, as `vertex_ai-language-models`."""
    return provider == name or provider.startswith((f"{name}-", f"{name}_"))


def _number(entry: Mapping[str, Json], field: str) -> float | None:
    value = entry.get(field)
    return float(value) if isinstance(value, int | float) else None


@cache
def _table() -> Mapping[str, Mapping[str, Json]]:
    table = _read(TABLE)
    return {code: entry for code, entry in table.items() if code != "sample_spec"}


@cache
def _litellm_providers() -> frozenset[str]:
    """Return the names in the table, in the list of endpoints and in litellm's enum."""
    source = _find_file("types/utils.py")
    enum = source.read_text(encoding="utf-8").partition("class LlmProviders(")[2] if source else ""
    return frozenset(
        {entry["litellm_provider"] for entry in _table().values() if "litellm_provider" in entry}
        | set(_read(ENDPOINTS).get("providers", ()))
        | set(re.findall(r'^    \w+ = "([^"]+)"', enum.partition("\nclass ")[0], re.MULTILINE))
    )


def _read(name: str) -> dict[str, Json]:
    """Return a JSON file of litellm; empty when it is missing."""
    file = _find_file(name)
    if file is None:
        return {}
    document: dict[str, Json] = json.loads(file.read_bytes())
    return document


def _find_file(name: str) -> Path | None:
    """Return the path of a file of litellm, without importing it; None when it is missing."""
    spec = find_spec("litellm")
    if spec is None or not spec.origin:
        return None
    file = Path(spec.origin).parent / name
    return file if file.is_file() else None


_MOST_TOKENS = 10**9
_MOST_COST = 1e6


def read_usage(usage: Json, *, is_empty: bool) -> Usage:
    """Return the tokens that a server counted; impossible counts are ignored.

    A request always has tokens, and an answer has some unless it `is_empty`. Where the total is
    more than both, the rest is reasoning, which is paid as output; so is more than an answer has.
    """

    def count(*path: str) -> int | None:
        value = usage
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        is_count = isinstance(value, int) and not isinstance(value, bool)
        return value if is_count and 0 <= value <= _MOST_TOKENS else None

    def first(*paths: tuple[str, ...]) -> int | None:
        return next((found for path in paths if (found := count(*path)) is not None), None)

    sent, answered, total = (count(f"{name}_tokens") for name in ("prompt", "completion", "total"))
    if sent and total and total - sent > (answered or 0):
        answered = total - sent
    reasoning = count("completion_tokens_details", "reasoning_tokens")
    if answered is not None and reasoning is not None and reasoning > answered:
        answered += reasoning
    return Usage(
        input_tokens=sent or None,
        output_tokens=answered if is_empty else answered or None,
        cached_tokens=first(
            ("prompt_tokens_details", "cached_tokens"),
            ("prompt_cache_hit_tokens",),  # DeepSeek
            ("cached_tokens",),  # Moonshot
        ),
        reasoning_tokens=reasoning,
        cache_write_tokens=first(
            ("prompt_tokens_details", "cache_write_tokens"),
            ("cache_creation_input_tokens",),  # Anthropic
        )
        or None,
    )


def reports_cost(kind: str, base_url: str | None) -> bool:
    """Return whether answers say what they cost: at OpenRouter, by its kind or its address."""
    is_there = base_url is not None and f".{host_of(base_url)}".endswith(".openrouter.ai")
    return kind == "openrouter" or is_there


def read_cost(document: Json) -> float | None:
    """Return the USD that an answer of OpenRouter cost; None if it does not say so.

    With a key of one's own for the provider behind it, what that provider takes is added.
    """
    match document:
        case {"usage": {"is_byok": True, "cost": cost, **usage}}:
            details = usage.get("cost_details")
            more = details.get("upstream_inference_cost") if isinstance(details, dict) else None
            parts = [cost, more]
        case {"usage": {"cost": cost}}:
            parts = [cost]
        case _:
            return None
    numbers = [
        part for part in parts if isinstance(part, int | float) and not isinstance(part, bool)
    ]
    is_known = len(numbers) == len(parts) and all(0 <= part <= _MOST_COST for part in numbers)
    return float(sum(numbers)) if is_known else None
