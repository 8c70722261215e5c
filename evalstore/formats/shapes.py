"""Values of documents by other people, which may be anything."""

from __future__ import annotations

from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    """A mapping; none when the value is something else."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """A list; none when the value is something else."""
    return value if isinstance(value, list) else []


def whole(value: Any) -> int:
    """A whole number above zero, else zero."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
