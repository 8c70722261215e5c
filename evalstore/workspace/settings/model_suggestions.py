"""Hints on names of models that the workspace does not have."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from difflib import get_close_matches

from evalstore.files.fields import suggest
from evalstore.providers.kinds import EXAMPLE
from evalstore.workspace.catalogue import is_known_kind

ANY_MODEL = f"write a model file, or a litellm name such as '{EXAMPLE}'"
NO_FILE = f"'PROVIDER/MODEL', such as '{EXAMPLE}', needs no file"
_LIKE = 0.85
"""How similar the name of a model is that is meant although a provider file has its provider."""


def suggest_model(id: str, known: Iterable[str], providers: Collection[str] = ()) -> str:
    """Return a hint: the nearest model, also with a provider in front of its name, or a list.

    Of a provider with a colon, as in promptfoo, it is the name with a slash. A model of one of the
    `providers`, which have files, needs a file, too.
    """
    models = sorted(known)
    provider, slash, code = id.partition("/")
    if slash and code and provider in providers:
        if near := get_close_matches(id, models, n=1, cutoff=_LIKE):
            return f"did you mean '{near[0]}'?"
        return (
            f"a model of the provider file '{provider}' needs a model file "
            f"with 'provider: {provider}', 'code: {code}' and 'id: {id}'"
        )
    if name := _with_slash(id):
        return f"write '{name}'"
    if name := _nearest(id, models):
        return f"did you mean '{name}'?"
    return f"{suggest(id, models, 'models')}; {NO_FILE}" if models else ANY_MODEL


def _with_slash(id: str) -> str | None:
    """Return `openai/gpt-5.4-mini` for `openai:gpt-5.4-mini`; None if the provider is not known."""
    provider, colon, code = id.partition(":")
    if not colon or not code or "/" in provider:
        return None
    is_plain = ":" not in code and is_known_kind(provider)
    return litellm_id(id) or (f"{provider}/{code}" if is_plain else None)


def _nearest(id: str, models: list[str]) -> str | None:
    """Return the model with this name or one like it, with or without its provider."""
    codes = {model.rpartition("/")[2]: model for model in reversed(models)}
    if id in codes:
        return codes[id]
    if "/" not in id and (name := _with_provider(id)):
        return name
    if near := get_close_matches(id, models, n=1):
        return near[0]
    near = [] if "/" in id else get_close_matches(id, codes, n=1)
    return codes[near[0]] if near else None


def _with_provider(code: str) -> str | None:
    """Return the name of a model of litellm's table with its provider in front."""
    from evalstore.providers.price_table import provider_of  # reads a large table

    provider = provider_of(code)
    return f"{provider}/{code}" if provider and is_known_kind(provider) else None


_SERVICES = {
    "openai": "openai",
    "openai:chat": "openai",
    "openai:responses": "openai",
    "openai:completion": "openai",
    "anthropic": "anthropic",
    "anthropic:messages": "anthropic",
    "ollama": "ollama",
    "ollama:chat": "ollama_chat",
    "ollama:completion": "ollama",
    "google": "gemini",
    "vertex": "vertex_ai",
    "azure:chat": "azure",
    "bedrock": "bedrock",
    "bedrock:converse": "bedrock/converse",
    "mistral": "mistral",
    "groq": "groq",
    "openrouter": "openrouter",
    "deepseek": "deepseek",
    "cohere": "cohere",
    "xai": "xai",
}
"""Maps promptfoo's names of services to litellm's."""
_NO_CHAT = re.compile(
    r"(?:embeddings?|image|moderation|assistant|realtime|transcription|video|speech|agents?):"
)
"""Name prefixes of models that do not generate text."""


def litellm_id(name: str) -> str | None:
    """Return litellm's name of a model; None if the provider is not a supported model."""
    if name in _SERVICES:
        return None
    for service in sorted(_SERVICES, key=len, reverse=True):
        if name.startswith(f"{service}:") and (model := name[len(service) + 1 :]):
            return None if _NO_CHAT.match(model) else f"{_SERVICES[service]}/{model}"
    return None
