"""Reads prices and capabilities from the table that comes with litellm.

The table is a file of the installed package, so it is read without importing litellm, and stays
the same until another version is installed. Newer tables lack retired models, so a price must be
stored with the call that it applies to.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from evalstore.core.values import Json
from evalstore.providers.kinds import OPENAI_COMPATIBLE, SCRIPTED, litellm_name, plugged_in

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
class TablePrice:
    """The prices of a token in USD, without the surcharges of some models for long requests."""

    input_per_token: float
    output_per_token: float
    cached_per_token: float | None
    """The price of an input token from the provider's cache; None if it costs as much as others."""
    source: str
    """The table and its version."""
    cache_write_per_token: float | None = None
    """The price of an input token that is written into the provider's cache; None as above."""


def find_price(kind: str, code: str) -> TablePrice | None:
    """Return the price of a model at this kind of provider; None if it is unknown, not free."""
    from importlib.metadata import version  # with 40 modules, for zip files and mail headers

    entry = _find_entry(kind, code)
    if entry is None:
        return None
    input_price = _number(entry, "input_cost_per_token")
    output_price = _number(entry, "output_cost_per_token")
    if input_price is None or output_price is None:
        return None
    return TablePrice(
        input_per_token=input_price,
        output_per_token=output_price,
        cached_per_token=_number(entry, "cache_read_input_token_cost"),
        cache_write_per_token=_number(entry, "cache_creation_input_token_cost"),
        source=f"litellm {version('litellm')}",
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
