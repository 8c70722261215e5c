"""The parts of which the JSON Schemas of files are made.

A field that is null counts as not given, as the readers take it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalstore.core.values import Json
from evalstore.files.fields import MOST_SAMPLES

Schema = dict[str, Json]

ANY: Schema = {}
TEXT: Schema = {"type": ["string", "null"], "pattern": r"\S"}
REQUIRED_TEXT: Schema = {"type": "string", "pattern": r"\S"}
NAMES: Schema = {"type": ["array", "null"], "items": {"type": "string", "minLength": 1}}
FLAG: Schema = {"type": ["boolean", "null"]}
MAPPING: Schema = {"type": ["object", "null"]}


def whole(least: int, most: int | None = None) -> Schema:
    """Return the schema of a whole number in a range."""
    bounds = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return {"type": ["integer", "null"], **bounds}


def number(least: float, most: float) -> Schema:
    """Return the schema of a number in a range."""
    return {"type": ["number", "null"], "minimum": least, "maximum": most}


SAMPLES = whole(1, MOST_SAMPLES)
TEMPERATURE = number(0, 2)


def choice_schema(*words: str) -> Schema:
    """Return the schema of a choice of words."""
    return {"enum": [*words, None]}


def matching(pattern: str) -> Schema:
    """Return the schema of a text that matches a pattern."""
    return {"type": ["string", "null"], "pattern": pattern}


def listed(items: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": ["array", "null"], "items": items}


def described(schema: Schema, description: str) -> Schema:
    """Add the text that editors show to a schema."""
    return {**schema, "description": description}


def mapping(
    names: Iterable[str],
    properties: Mapping[str, Schema],
    required: Iterable[str] = (),
    *,
    or_null: bool = True,
) -> Schema:
    """Return the schema of a mapping with these fields; one without a schema takes any value."""
    schema: Schema = {
        "type": ["object", "null"] if or_null else "object",
        "properties": {name: properties.get(name, ANY) for name in names},
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema
