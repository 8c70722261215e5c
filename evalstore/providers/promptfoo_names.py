"""Translates promptfoo's names of models, such as `openai:chat:gpt-5.5`, to litellm's."""

from __future__ import annotations

import re

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
