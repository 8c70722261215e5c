"""The descriptions of the check types of this package, loaded only where they are shown.

They are in `descriptions.yaml`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalstore.checks.base import (
    ANY,
    COUNT,
    FLAG,
    MAPPING,
    ONE_TEXT,
    TEXT,
    TEXTS,
    CheckDescription,
    CheckExample,
    CheckSetting,
    CheckType,
    ValueType,
    choice,
)
from evalstore.core.values import Json
from evalstore.files.yaml12 import read_yaml

_TYPES = {
    "text": TEXT,
    "texts": TEXTS,
    "oneText": ONE_TEXT,
    "flag": FLAG,
    "count": COUNT,
    "notNegative": ValueType("number", {"type": "number", "minimum": 0}),
    "mapping": MAPPING,
    "any": ANY,
}
"""Types by their names in the file; a list of words there is a choice."""


def _read_settings(written: list[dict[str, Any]]) -> tuple[CheckSetting, ...]:
    return tuple(CheckSetting(**{**each, "type": _read_type(each["type"])}) for each in written)


def _read_type(written: Json) -> ValueType:
    if isinstance(written, str):
        return _TYPES[written]
    return choice(*written) if isinstance(written, list) else ValueType(**written)


_WRITTEN = read_yaml(Path(__file__).with_suffix(".yaml").read_text("utf-8")).value
DESCRIPTIONS = {
    name: CheckDescription(
        written["passes"],
        _read_settings(written.get("settings", [])),
        tuple(CheckExample(**each) for each in written["examples"]),
        written.get("notes", ""),
    )
    for name, written in _WRITTEN["types"].items()
}
EVERY_SETTING = _read_settings(_WRITTEN["common"])
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
    """Return the settings that a check type has beside its own: with models, only `allowEmpty`."""
    return EVERY_SETTING[-1:] if kind.by_models else EVERY_SETTING
