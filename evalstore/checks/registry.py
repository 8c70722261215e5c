"""The registry of check types: those of this package and those of plug-ins.

A plug-in names a `CheckType` in the entry point group `evalstore.checks`; it cannot replace a
type of this package.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec

from evalstore.checks.base import CheckType
from evalstore.checks.types import (
    consistency,
    expression,
    json,
    judge,
    number,
    python,
    text,
    tool_calls,
)

GROUP = "evalstore.checks"

_OWN: Mapping[str, CheckType] = {
    **text.KINDS,
    **number.KINDS,
    **json.KINDS,
    **tool_calls.KINDS,
    **expression.KINDS,
    **consistency.KINDS,
    **judge.KINDS,
    **python.KINDS,
}


def find_kind(name: str) -> CheckType | None:
    """Return the check type of this name."""
    return _OWN.get(name) or _plugged_in().get(name)


def known_kinds() -> Mapping[str, CheckType]:
    """Return all check types by name."""
    return {**_plugged_in(), **_OWN}


@cache
def is_installed(package: str) -> bool:
    """Return whether a package that a check needs is installed; it is not imported."""
    return find_spec(package) is not None


@cache
def _plugged_in() -> Mapping[str, CheckType]:
    from importlib.metadata import entry_points  # with 40 modules, for zip files and mail headers

    plugins = {point.name: point.load() for point in entry_points(group=GROUP)}
    return {name: kind for name, kind in plugins.items() if isinstance(kind, CheckType)}
