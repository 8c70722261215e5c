"""The descriptions of the check types of this package, loaded only where they are shown."""

from __future__ import annotations

from evalstore.checks.base import CheckType
from evalstore.checks.description import CheckDescription, CheckExample, CheckSetting
from evalstore.checks.descriptions import answers, calls, data, shared_settings, text

DESCRIPTIONS = {
    **text.DESCRIPTIONS,
    **data.DESCRIPTIONS,
    **calls.DESCRIPTIONS,
    **answers.DESCRIPTIONS,
}

EVERY_SETTING = (*shared_settings.SETTINGS, shared_settings.ALLOW_EMPTY)
"""The settings that checks have beside their own."""


def describe_check(name: str, kind: CheckType) -> CheckDescription:
    """Return the description of a check type, or the one that a plug-in declares."""
    if kind.description is not None:
        return kind.description
    if name in DESCRIPTIONS:
        return DESCRIPTIONS[name]
    written = f"{name}: {kind.example}" if kind.example else name
    return CheckDescription("described by the package that adds it", (), (CheckExample(written),))


def is_described(name: str, kind: CheckType) -> bool:
    """Return whether the settings of a check type are known."""
    return name in DESCRIPTIONS or kind.description is not None


def common_settings(kind: CheckType) -> tuple[CheckSetting, ...]:
    """Return the settings that a check type has beside its own."""
    return (shared_settings.ALLOW_EMPTY,) if kind.by_models else EVERY_SETTING
