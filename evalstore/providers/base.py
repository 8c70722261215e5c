"""The kinds of providers of language models, and the protocol of all.

A provider makes exactly one call for each `ask` and never retries: `execution` counts the
attempts. It raises only `ProviderError`, and neither a message nor a reply contains its key.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Protocol

from evalstore.core.values import Reply, Request

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

RETRY_STATUS = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 520, 529})
STOP_STATUS = frozenset({401, 402, 403, 404})

FAILED_FINISH = frozenset(
    {
        "abort",  # vLLM, SGLang
        "aborted",
        "cancelled",  # watsonx
        "canceled",
        "error",  # OpenRouter, Mistral, Cohere, vLLM
        "failed",
        "insufficient_system_resource",  # DeepSeek
        "malformed_function_call",  # Gemini
        "malformed_response",  # Gemini
        "network_error",  # Zhipu
        "timeout",
        "too_many_tool_calls",  # Gemini
        "unexpected_tool_call",  # Gemini
    }
)
"""Finish reasons, in lower case, that mean that the provider did not finish the answer."""

FILTERED = "filtered"
"""The kind of error of a prompt that the provider's filter refuses."""


PERMANENT_KINDS = frozenset({"application", "context", "format", "malformed", "unsupported"})
"""Kinds of errors that the same call meets again, where no other try may help."""


class ProviderError(Exception):
    """A call that brought no answer.

    `kind` is a short class for the log: `status`, `connection`, `timeout`,
    `malformed`, `context` (the conversation is longer than the model takes),
    `format` (the form of the answer that was asked for is refused), `unsupported`
    (nothing was sent), `filtered` (the provider's filter refuses the conversation, which
    counts as an answer), `bug` (the provider's code raised something else). `retry` says
    whether another try may help; `stops_model` that no further call to this model can
    succeed; `lasts` that it fails again until the user changes something.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        status: int | None = None,
        retry: bool = False,
        retry_after: float | None = None,
        stops_model: bool = False,
        lasts: bool = False,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.status = status
        self.retry = retry
        self.retry_after = retry_after
        self.stops_model = stops_model
        is_final = not retry and (kind in PERMANENT_KINDS or kind == "status")
        self.is_permanent = lasts or stops_model or is_final


class Provider(Protocol):
    """A client for models: an endpoint with its key, a library, or a script."""

    async def ask(self, request: Request, *, timeout: float) -> Reply:
        """Make one call; `timeout` limits the whole call, in seconds."""
        ...

    async def close(self) -> None:
        """Close the connections; the provider must not be used afterwards."""
        ...


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
