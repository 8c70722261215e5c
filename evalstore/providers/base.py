"""The protocol of all providers of language models.

A provider makes exactly one call for each `ask` and never retries: `execution` counts the
attempts. It raises only `ProviderError`, and neither a message nor a reply contains its key.
"""

from __future__ import annotations

from typing import Protocol

from evalstore.core.values import Reply, Request

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
