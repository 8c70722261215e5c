"""The services that installed packages add as providers, by the name of their entry point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points

GROUP = "evalstore.providers"


@cache
def plugged_in() -> Mapping[str, EntryPoint]:
    """The services by kind; none is loaded."""
    return {point.name: point for point in entry_points(group=GROUP)}
