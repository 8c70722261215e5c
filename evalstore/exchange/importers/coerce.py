"""Conversion of untrusted document values to expected types."""

from __future__ import annotations

import json
from typing import Any

from evalstore.files.datasets.json_rows import is_deep


def parse_json(text: str | bytes, **options: Any) -> Any:
    """Parse a JSON text; raises `ValueError`, also if it is nested too deeply.

    `options` are those of `json.loads`.
    """
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if is_deep(value):
        raise ValueError("it is nested too deeply")
    return value


def as_mapping(value: Any) -> dict[str, Any]:
    """Return the value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return the value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []


def positive_int(value: Any) -> int:
    """Return the value if it is a whole number above zero, else zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
