"""The evaluator prompts that checks `judge` name: which versions they have, and what they show."""

from __future__ import annotations

from evalstore.values import REQUIRED_NAMES

INSTRUCTIONS = REQUIRED_NAMES[0]
SHOWN = "{{" + INSTRUCTIONS + "}}"
"""How a prompt shows them."""


def shows_instructions(content: str) -> bool:
    """Whether a version of an evaluator prompt shows the judge the instructions of a test."""
    return SHOWN in content
