"""Tells what a version of an evaluator prompt shows the judge."""

from __future__ import annotations

from evalstore.core.deserialize import restore_messages
from evalstore.core.values import REQUIRED_NAMES, RUNTIME_NAMES, Json, Text

INSTRUCTIONS = REQUIRED_NAMES[0]
SHOWN = "{{" + INSTRUCTIONS + "}}"
"""The placeholder for the instructions in a prompt."""


_OF_QUESTION = tuple("{{" + name + "}}" for name in RUNTIME_NAMES if name not in REQUIRED_NAMES)


def shows_question(content: Json) -> bool:
    """Return whether an evaluator prompt shows the judge what the candidate was asked."""
    parts = [part for message in restore_messages(content["messages"]) for part in message.parts]
    texts = [part.text for part in parts if isinstance(part, Text)]
    return any(name in text for text in texts for name in _OF_QUESTION)
