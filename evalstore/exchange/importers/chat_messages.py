"""Chat-completion messages in data files."""

from __future__ import annotations

from evalstore.core.values import Json
from evalstore.exchange.importers.base import NotTakenError

ROLES = ("system", "user", "assistant")
_FIELDS = ("role", "content", "name")


def read_messages(value: Json) -> list[dict[str, Json]]:
    """Return the messages of a conversation; a text is one user message.

    Unknown fields are dropped. Raises `NotTakenError` for unknown roles, for content that is
    not text, for an empty list, and for a conversation that ends with an answer.
    """
    if isinstance(value, str):
        return [{"role": "user", "content": value}]
    if not isinstance(value, list) or not value:
        raise NotTakenError("'input' must be a text or a list of messages")
    messages = [read_message(number, message) for number, message in enumerate(value, 1)]
    if messages[-1]["role"] == "assistant":
        raise NotTakenError("the conversation ends with an answer, so nothing is asked")
    return messages


def read_message(number: int, message: Json) -> dict[str, Json]:
    """Return one message of a conversation; raises `NotTakenError`."""
    if not isinstance(message, dict):
        raise NotTakenError(f"message {number} must be a mapping with 'role' and 'content'")
    role, content = message.get("role"), message.get("content")
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise NotTakenError(f"message {number} has the role '{role}'; there are {known}")
    if isinstance(content, list) and content:
        texts = [part.get("text") if isinstance(part, dict) else None for part in content]
        content = None if None in texts else content
    if not isinstance(content, str | list):
        raise NotTakenError(f"the content of message {number} is not text")
    if not isinstance(message.get("name", ""), str):
        raise NotTakenError(f"the name of message {number} is not text")
    return {field: message[field] for field in _FIELDS if field in message}
