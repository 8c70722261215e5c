"""Decides which checks are cheap, with a cost bounded by the sizes of the check and the answer.

Costs are rough counts of small steps; Python makes about ten million of them in a second.
The time of a check grows with the answer, unless one of these rules says that it grows faster; then
it runs in a process with limits, if the answer is long enough.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache

from evalstore.checks.base import CheckInput
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
    return cost is not None and cost * max(size, 10) <= _MOST_STEPS


_parsed = lru_cache(maxsize=256)(json.loads)


@lru_cache(maxsize=1024)
def schema_cost(schema: str, size: int) -> int | None:
    """Return the number of conditions of a schema with its references; None if unbounded."""
    root = _parsed(schema)
    try:
        return _Conditions(root, size).count(root, 0)
    except (_Unbounded, RecursionError):
        return None


class _Unbounded(Exception):  # noqa: N818 - it is a result, not an error
    """A schema whose cost is not bounded by its size."""


class _Conditions:
    """Counts the conditions of a schema; a reference counts as the schema it refers to."""

    def __init__(self, root: Json, size: int) -> None:
        self._root = root
        self._size = size
        self._counts: dict[str, int] = {}
        self._open: set[str] = set()

    def count(self, part: Json, depth: int) -> int:
        """Return the conditions in a part, at least one; raises `_Unbounded`."""
        if depth > _DEEPEST:
            raise _Unbounded
        total = 1
        if isinstance(part, list):
            total += sum(self.count(inner, depth + 1) for inner in part)
        elif isinstance(part, dict):
            for name, inner in part.items():
                total += self._count_keyword(name, inner, depth)
        if total > _MOST_STEPS:
            raise _Unbounded
        return total

    def _count_keyword(self, name: str, inner: Json, depth: int) -> int:
        if name == "$ref":
            return self._refer(inner)
        if name in _UNBOUNDED or (name in ("$id", "id") and depth > 0):
            raise _Unbounded
        if name in ("pattern", "patternProperties"):
            patterns = [inner] if isinstance(inner, str) else list(inner or ())
            for pattern in patterns:
                if not isinstance(pattern, str) or not is_cheap_pattern(pattern, self._size):
                    raise _Unbounded
        if name == "uniqueItems":
            return 1 + self._size // 10
        return self.count(inner, depth + 1)

    def _refer(self, reference: Json) -> int:
        """Return the conditions that a reference within the schema refers to; others are costly."""
        if not isinstance(reference, str) or not reference.startswith("#/"):
            raise _Unbounded
        if reference in self._open:
            raise _Unbounded  # the reference may be circular
        if reference not in self._counts:
            self._open.add(reference)
            self._counts[reference] = self.count(self._find(reference), 0)
            self._open.discard(reference)
        return self._counts[reference]

    def _find(self, reference: str) -> Json:
        node = self._root
        for step in reference[2:].split("/"):
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or name not in node:
                raise _Unbounded
            node = node[name]
        return node
