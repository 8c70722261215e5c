"""Checks that a test implies: the answer parses, matches the schema, calls a tool."""

from __future__ import annotations

import json

from evalstore.values import Json, Reply

_SHOWN = 120


def is_json(_check: Json, answer: Reply, _schemas: dict[str, Json]) -> str | None:
    """Wrong unless the answer is one JSON object."""
    try:
        value = json.loads(answer.text or "")
    except ValueError as error:
        return f"the answer is not JSON: {error}"
    return None if isinstance(value, dict) else "the answer is JSON, but not an object"


def matches_schema(check: Json, answer: Reply, schemas: dict[str, Json]) -> str | None:
    """Wrong unless the answer is JSON that matches the schema."""
    try:
        value = json.loads(answer.text or "")
    except ValueError as error:
        return f"the answer is not JSON: {error}"
    return first_violation(schemas[check["schema"]], value)


def first_violation(schema: Json, value: Json) -> str | None:
    """Where and how a value breaks a JSON Schema first; None when it does not.

    References are never fetched: one that leaves the schema is a violation by itself.
    """
    import jsonschema
    import referencing
    from referencing.exceptions import Unresolvable

    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        registry: referencing.Registry[Json] = referencing.Registry()
        errors = validator(schema, registry=registry).iter_errors(value)
        error = min(errors, key=lambda found: list(map(str, found.absolute_path)), default=None)
    except Unresolvable as problem:
        return f"the schema refers to something outside of it: {problem}"
    if error is None:
        return None
    place = ".".join(map(str, error.absolute_path)) or "the answer"
    message = error.message if len(error.message) <= _SHOWN else error.message[:_SHOWN] + "…"
    return f"{place} does not match the schema: {message}"


def calls_a_tool(_check: Json, answer: Reply, _schemas: dict[str, Json]) -> str | None:
    """Wrong unless at least one tool was called."""
    return None if answer.tool_calls else "the answer is a text, no tool was called"


def schema_problem(schema: Json) -> str | None:
    """Why something is no JSON Schema; None when it is one."""
    import jsonschema

    if not isinstance(schema, dict):
        return "a JSON Schema must be a mapping"
    validator = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        place = ".".join(map(str, error.absolute_path))
        return f"{place + ': ' if place else ''}{error.message}"
    return None
