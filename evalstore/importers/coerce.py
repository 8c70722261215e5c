"""Values of documents by other people, which may be anything."""

from __future__ import annotations

import json
from typing import Any

from evalstore.files.datasets.json_rows import is_deep


def parse_json(text: str | bytes, **options: Any) -> Any:
    """The value of a JSON text; raises `ValueError`, also for one that is nested too deeply.

    `options` are those of `json.loads`.
    """
    try:
        value = json.loads(text, **options)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if is_deep(value):
        raise ValueError("it is nested too deeply")
    return value


def mapping(value: Any) -> dict[str, Any]:
    """A mapping; none when the value is something else."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """A list; none when the value is something else."""
    return value if isinstance(value, list) else []


def whole(value: Any) -> int:
    """A whole number above zero, else zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
