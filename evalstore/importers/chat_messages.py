"""Messages in the form of chat completions, as they are found in data files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.values import Json

ROLES = ("system", "user", "assistant")
_FIELDS = ("role", "content", "name")


class BadMessagesError(Exception):
    """Why something is not a conversation."""


def read_messages(given: Json) -> list[dict[str, Json]]:
    """The messages of a conversation; a text is one user message.

    Fields that mean nothing here are left out. Raises `BadMessagesError` for other roles, for
    what is not text, for nothing, and for a conversation that ends with an answer.
    """
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise BadMessagesError("'input' must be a text or a list of messages")
    messages = [read_message(number, one) for number, one in enumerate(given, 1)]
    if messages[-1]["role"] == "assistant":
        raise BadMessagesError("the conversation ends with an answer, so nothing is asked")
    return messages


def read_message(number: int, given: Json) -> dict[str, Json]:
    """One message of a conversation; raises `BadMessagesError`."""
    if not isinstance(given, dict):
        raise BadMessagesError(f"message {number} must be a mapping with 'role' and 'content'")
    role, content = given.get("role"), given.get("content")
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise BadMessagesError(f"message {number} has the role '{role}'; there are {known}")
    if isinstance(content, list) and content:
        texts = [one.get("text") if isinstance(one, dict) else None for one in content]
        content = None if None in texts else content
    if not isinstance(content, str | list):
        raise BadMessagesError(f"the content of message {number} is not text")
    if not isinstance(given.get("name", ""), str):
        raise BadMessagesError(f"the name of message {number} is not text")
    return {field: given[field] for field in _FIELDS if field in given}
