"""The kinds of providers: those with OpenAI's protocol, and litellm's names for the others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

SCRIPTED = "scripted"
EXAMPLE = "openai/gpt-5.4-mini"
"""The model of hints, examples and new workspaces; a test fails when it is retired."""
EXAMPLE_JUDGE = "openai/gpt-5.5"
"""The second model of examples."""
OLLAMA = ("ollama", "ollama_chat")
"""The kinds that are Ollama."""

OPENAI_COMPATIBLE: dict[str, str | None] = {
    "openai": "https://api.openai.com/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": "http://localhost:11434/v1",
    "ollama_chat": "http://localhost:11434/v1",
    "lm_studio": "http://localhost:1234/v1",
    "hosted_vllm": None,
    "openai-compatible": None,
}
"""Services that our own client calls, with their base URLs; None if it must be configured."""

LITELLM_NAMES = {
    "ollama_chat": "ollama",
    "vertex": "vertex_ai",
    "vertex-anthropic": "vertex_ai",
}
"""Kinds that litellm, or its table of prices, knows by another name."""


def litellm_name(kind: str) -> str:
    """Return litellm's name for a kind of provider."""
    return LITELLM_NAMES.get(kind, kind)


GROUP = "evalstore.providers"


@cache
def plugged_in() -> Mapping[str, EntryPoint]:
    """Return the entry points by kind, without loading them."""
    from importlib.metadata import entry_points  # with 40 modules, for zip files and mail headers

    return {point.name: point for point in entry_points(group=GROUP)}
