"""Finds the providers of installed packages, by the name of their entry point."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "evalstore.providers"


@cache
def plugged_in() -> Mapping[str, EntryPoint]:
    """Return the entry points by kind, without loading them."""
    from importlib.metadata import entry_points  # with 40 modules, for zip files and mail headers

    return {point.name: point for point in entry_points(group=GROUP)}
