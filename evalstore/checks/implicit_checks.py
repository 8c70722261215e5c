"""Checks that follow from the schema and the special tags of a test."""

from __future__ import annotations

from evalstore.checks.json_values import ANYWHERE
from evalstore.checks.registry import find_kind
from evalstore.core.values import Json, TestVersion


def implied_checks(test: TestVersion) -> tuple[Json, ...]:
    """Return the checks that follow from the schema and the special tags of a test."""
    checks: list[Json] = []
    if test.schema:
        checks.append(_canonical("jsonSchema", schema=test.schema, fenced=ANYWHERE))
    elif "_json_mode" in test.special_tags:
        checks.append(_canonical("json"))
    if "_tools_only" in test.special_tags:
        checks.append(_canonical("toolCalls"))
    return tuple(checks)


def _canonical(name: str, **settings: Json) -> Json:
    kind = find_kind(name)
    assert kind is not None
    return {"type": name, "revision": kind.revision, **settings}
