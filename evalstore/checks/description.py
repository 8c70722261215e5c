"""The description of a check type: its settings with types and defaults, and an example.

Help, the documentation and the JSON Schema for editors are made from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from evalstore.core.values import Json


class ValueType(NamedTuple):
    """The type of a setting, in words and as a JSON Schema."""

    words: str
    schema: Mapping[str, Json]


_SCALAR = ["string", "number", "boolean"]
TEXT = ValueType("text", {"type": "string"})
TEXTS = ValueType(
    "text or list of texts", {"type": [*_SCALAR, "array"], "items": {"type": _SCALAR}}
)
ONE_TEXT = ValueType(
    "text", {"type": [*_SCALAR, "array"], "items": {"type": _SCALAR}, "maxItems": 1}
)
FLAG = ValueType("true or false", {"type": "boolean"})
NUMBER = ValueType("number", {"type": "number"})
COUNT = ValueType("whole number", {"type": "integer", "minimum": 0})
MAPPING = ValueType("mapping", {"type": "object"})
ANY = ValueType("any value", {})


def choice(*words: str) -> ValueType:
    """Return the type of a setting that is one of some words."""
    *first, last = words
    listed = f"{', '.join(first)} or {last}" if first else last
    return ValueType(listed, {"enum": list(words)})


class CheckSetting(NamedTuple):
    """A setting of a check type."""

    name: str
    type: ValueType
    description: str
    default: Json = None
    """The default value; None if there is none, or if it is explained in `description`."""
    required: bool = False


class CheckExample(NamedTuple):
    """A check as its author writes it, with an answer that passes and one that fails.

    An answer is a text, a list of texts that are judged together, or a mapping with facts of the
    call: `text`, `toolCalls`, `finishReason`, `latency` (seconds), `cost` (USD), `tokens`.
    """

    check: str
    """An entry of a block of checks in YAML, without the dash in front."""
    passing: Json = None
    """An answer that passes; None if the result does not depend on the answer alone."""
    failing: Json = None


@dataclass(frozen=True, slots=True)
class CheckDescription:
    """The description of a check type."""

    summary: str
    """When the check passes, in a few words: a clause without a full stop."""
    settings: tuple[CheckSetting, ...] = ()
    """Its own settings; that of `type: value` comes first."""
    examples: tuple[CheckExample, ...] = ()
    notes: str = ""
    """Further sentences."""
