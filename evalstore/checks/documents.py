"""Checks of an answer that is JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping

from evalstore.checks.base import Arguments, Finding, Kind, Subject, as_text, passes
from evalstore.values import Json

_SHOWN = 120
_OF = ("any", "object", "array")


def _read_json(arguments: Arguments) -> dict[str, Json]:
    of = arguments.choice("of", _OF, "any")
    return {} if of == "object" else {"of": of}


def _is_json(check: Mapping[str, Json], subject: Subject) -> Finding:
    """Whether the answer is JSON: an object, unless the check says otherwise."""
    try:
        value = json.loads(as_text(subject.actual))
    except ValueError as error:
        return Finding(0.0, f"the answer is not JSON: {error}")
    of = check.get("of", "object")
    is_so = of == "any" or isinstance(value, dict if of == "object" else list)
    return passes(is_so, f"the answer is JSON, but not an {of}")


def _read_schema(arguments: Arguments) -> dict[str, Json]:
    schema = arguments.require("schema")
    if isinstance(schema, str):
        return {"schema": schema}
    if wrong := schema_problem(schema):
        raise arguments.problem(f"this is no JSON Schema: {wrong}")
    return {"schema": schema}


def _matches_schema(check: Mapping[str, Json], subject: Subject) -> Finding:
    try:
        value = json.loads(as_text(subject.actual))
    except ValueError as error:
        return Finding(0.0, f"the answer is not JSON: {error}")
    schema = check["schema"]
    wrong = first_violation(subject.schemas[schema] if isinstance(schema, str) else schema, value)
    return passes(wrong is None, wrong or "")


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


KINDS = {
    "json": Kind(1, _read_json, _is_json, main=None),
    "jsonSchema": Kind(1, _read_schema, _matches_schema, main="schema", takes_mapping=True),
}
