"""Which errors of a server are a refusal of the system role."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from evalstore.core.values import OutgoingMessage, Reply, Request, Text
from evalstore.providers.base import ProviderError
from evalstore.runs.execution.model_calls import Adaptations


def _roles_sent(status: int, message: str) -> list[list[str]]:
    """The roles of the messages of each try, of which those with `system` fail."""
    tries: list[list[str]] = []

    async def ask(request: Request) -> Reply:
        tries.append([message.role for message in request.messages])
        if "system" in tries[-1]:
            raise ProviderError("status", message, status=status, retry=status >= 500)
        return Reply("3")

    messages = tuple(OutgoingMessage(role, (Text("Hi"),)) for role in ("system", "user"))
    adaptations = Adaptations(lambda _words: None)
    with suppress(ProviderError):
        asyncio.run(adaptations.ask(("one", "m"), "openai", Request("m", messages), ask))
    return tries


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (500, "Internal error while the system prompt was loaded"),
        (500, "invalid state of the system message cache"),
        (503, "System role not supported"),
        (400, "the system prompt has 900 characters, and 800 is the most"),
    ],
)
def test_an_error_about_a_system_prompt_is_no_refusal_of_its_role(
    status: int, message: str
) -> None:
    assert _roles_sent(status, message) == [["system", "user"]]


@pytest.mark.parametrize(
    ("status", "message"),
    [
        *((400, "System role not supported"), (500, "Jinja: system messages are not allowed")),
        (400, "Unsupported value: 'messages[0].role' does not support 'system' with this model."),
        (400, "This model doesn't support system messages. Try again without one."),
        (400, 'messages: Unexpected role "system". A top-level parameter is accepted'),
        (400, "Developer instruction is not enabled for models/gemma-3-27b-it"),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (422, "role 'system' is invalid, must be one of user and assistant"),
    ],
)
def test_a_refusal_of_the_system_role_is_known_by_its_words(status: int, message: str) -> None:
    assert _roles_sent(status, message) == [["system", "user"], ["user"]]
