"""Finds the providers of installed packages, by the name of their entry point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "evalstore.providers"


@cache
def plugged_in() -> Mapping[str, EntryPoint]:
    """Return the entry points by kind, without loading them."""
    return {point.name: point for point in entry_points(group=GROUP)}
