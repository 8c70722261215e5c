"""Decides which checks are cheap, with a cost bounded by the sizes of the check and the answer.

Costs are rough counts of small steps; Python makes about ten million of them in a second.
The time of a check grows with the answer, unless one of these rules says that it grows faster; then
it runs in a process with limits, if the answer is long enough.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from functools import lru_cache

from evalstore.checks.base import CheckInput
from evalstore.checks.types.expression import is_cheap_expression
from evalstore.core.display import as_text
from evalstore.core.values import Json
from evalstore.files.processes.limited_calls import is_cheap_pattern

_MOST_STEPS = 10_000_000
_LONG_TEXT = 200_000
"""The most characters of an answer that is checked without limits."""
_UNBOUNDED = frozenset(
    (
        *("$dynamicRef", "$recursiveRef", "$anchor", "$dynamicAnchor", "$recursiveAnchor"),
        *("unevaluatedProperties", "unevaluatedItems"),
    )
)
"""Keywords whose cost depends on the value, or that evaluate other conditions again."""
_DEEPEST = 30
"""The most levels of a schema; a deeper one is costly."""
_PRODUCTS = frozenset(
    (
        *("jsonEquals", "jsonSubset", "toolCalls"),
        *("fuzzy", "f1", "similar", "levenshtein", "bleu", "rouge", "allSame"),
    )
)
"""Types that may compare every part of the answer with every part of the expected value."""


def is_cheap_check(check: Mapping[str, Json], size: int, schemas: Mapping[str, Json]) -> bool:
    """Return whether a check is cheap on any answer of `size` characters.

    `schemas` are those that the check refers to, by version id.
    """
    kind = check["type"]
    if kind == "python":
        return True  # it runs in another process in any case
    if "actual" in check:
        size += len(as_text(check["actual"]))
    if size > _LONG_TEXT:
        return False
    if kind == "expr":
        return is_cheap_expression(check["expression"], size + len(as_text(check.get("values"))))
    pattern = check.get("pattern")
    if isinstance(pattern, str) and (
        "verbose" in check.get("flags", ()) or not is_cheap_pattern(pattern, size)
    ):
        return False
    if kind == "jsonSchema":
        schema = check["schema"]
        return is_cheap_schema(schemas[schema] if isinstance(schema, str) else schema, size)
    if kind == "jsonPath":
        inner = check.get("check")
        is_cheap_here = is_cheap_path(check["path"]) and len(check["path"]) * size <= _MOST_STEPS
        return is_cheap_here and (inner is None or is_cheap_check(inner, size, schemas))
    if kind in _PRODUCTS:
        return size * len(json.dumps(check, ensure_ascii=False)) <= _MOST_STEPS
    return True


def size_of(subject: CheckInput) -> int:
    """Return the number of characters that a check looks at."""
    actual = subject.actual
    size = len(actual) if isinstance(actual, str) else len(as_text(actual))
    return size + sum(map(len, subject.answers))


# --- paths


@lru_cache(maxsize=256)
def is_cheap_path(path: str) -> bool:
    """Return whether a JMESPath only selects a value, and builds nothing new."""
    return len(path) <= 1_000 and not any(sign in path for sign in ("(", "{", "[@", ",", "&"))


# --- JSON Schema


def is_cheap_schema(schema: Json, size: int) -> bool:
    """Return whether a value of this size is validated in few steps."""
    cost = schema_cost(json.dumps(schema, sort_keys=True), min(size, _LONG_TEXT))
    return cost * max(size, 10) <= _MOST_STEPS


@lru_cache(maxsize=1024)
def schema_cost(schema: str, size: int) -> float:
    """Return the number of conditions of a schema; infinite if its size does not bound it.

    A reference counts as the schema it refers to; one that leads outside is costly.
    """
    root = json.loads(schema)
    counts: dict[str, float] = {}

    def count(part: Json, depth: int = 0) -> float:
        if depth > _DEEPEST:
            return math.inf
        if isinstance(part, dict):
            return 1.0 + sum(count_keyword(name, inner, depth) for name, inner in part.items())
        inside = part if isinstance(part, list) else ()
        return 1.0 + sum(count(inner, depth + 1) for inner in inside)  # a sum of floats ends at inf

    def count_keyword(name: str, inner: Json, depth: int) -> float:
        if name == "$ref":
            return refer(inner) if isinstance(inner, str) else math.inf
        if name in _UNBOUNDED or (name in ("$id", "id") and depth > 0):
            return math.inf
        if name in ("pattern", "patternProperties"):
            patterns = inner if isinstance(inner, dict | list) else [inner]
            if not all(isinstance(it, str) and is_cheap_pattern(it, size) for it in patterns):
                return math.inf
        return 1 + size // 10 if name == "uniqueItems" else count(inner, depth + 1)

    def refer(reference: str) -> float:
        if reference not in counts:
            counts[reference] = math.inf  # it may be circular
            start, *steps = reference.split("/")
            node: Json = root if start == "#" else None
            try:
                for step in steps:
                    node = node[step.replace("~1", "/").replace("~0", "~")]
                counts[reference] = count(node) if steps else math.inf
            except (KeyError, TypeError):
                pass
        return counts[reference]

    try:
        return count(root)
    except RecursionError:
        return math.inf
