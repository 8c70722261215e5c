"""Deterministic checks: one registry, a revision number for each check type.

A check is a mapping in canonical form: its type, its revision, all its settings. When
the behaviour of a type changes, its revision goes up, and old verdicts are judged again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from evalstore.checks import implied
from evalstore.values import Json, Reply, TestVersion, Verdict


class Outcome(NamedTuple):
    """What one check found."""

    verdict: Verdict
    feedback: str = ""


Check = Callable[[Json, Reply, dict[str, Json]], str | None]
"""From a check, an answer and the schemas by id to what is wrong, or None."""

REGISTRY: dict[str, tuple[int, Check]] = {
    "json": (1, implied.is_json),
    "jsonSchema": (1, implied.matches_schema),
    "toolCalls": (1, implied.calls_a_tool),
}
"""Check types with their revision."""


def implied_checks(test: TestVersion) -> tuple[Json, ...]:
    """The checks that the test itself asks for: its schema and its special tags."""
    found: list[Json] = []
    if test.schema:
        found.append(_canonical("jsonSchema", schema=test.schema))
    elif "_json_mode" in test.special_tags:
        found.append(_canonical("json"))
    if "_tools_only" in test.special_tags:
        found.append(_canonical("toolCalls"))
    return tuple(found)


def run_check(check: Json, answer: Reply, schemas: dict[str, Json]) -> Outcome:
    """Judge one answer by one check; what a check cannot compute is the verdict `error`."""
    known = REGISTRY.get(check["type"])
    if known is None or known[0] != check["revision"]:
        name = f"'{check['type']}' revision {check['revision']}"
        return Outcome("error", f"this version does not know check {name}")
    wrong = known[1](check, answer, schemas)
    return Outcome("fail", wrong) if wrong else Outcome("pass")


def _canonical(kind: str, **settings: Json) -> Json:
    return {"type": kind, "revision": REGISTRY[kind][0], **settings}
