"""Messages in the form of chat completions, as they are found in data files."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.values import Json

ROLES = ("system", "user", "assistant")
_NAMED = {"example_user": "user", "example_assistant": "assistant"}
"""Names that old prompts gave to system messages that were examples."""


class BadMessagesError(Exception):
    """Why something is no conversation."""


def read_messages(given: Json) -> list[dict[str, Json]]:
    """Messages that end with a question, or a text as one user message.

    Raises `BadMessagesError` for other roles, for parts that are no text, and for nothing.
    """
    if isinstance(given, str):
        return [{"role": "user", "content": given}]
    if not isinstance(given, list) or not given:
        raise BadMessagesError("'input' must be a text or a list of messages")
    messages = [read_message(number, one) for number, one in enumerate(given, 1)]
    if messages[-1]["role"] == "assistant":
        raise BadMessagesError("the conversation ends with an answer")
    return messages


def read_message(number: int, given: Json) -> dict[str, Json]:
    """One message of a conversation; raises `BadMessagesError`."""
    if not isinstance(given, dict):
        raise BadMessagesError(f"message {number} must be a mapping with 'role' and 'content'")
    role, content = given.get("role"), given.get("content")
    if role not in ROLES:
        known = ", ".join(ROLES)
        raise BadMessagesError(f"message {number} has the role '{role}'; there are {known}")
    if not isinstance(content, str):
        raise BadMessagesError(f"the content of message {number} is no text")
    if role == "system" and given.get("name") in _NAMED:
        role = _NAMED[given["name"]]
    return {"role": role, "content": content}
