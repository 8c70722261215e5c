"""Describes a check of a stored evaluation as its author has written it."""

from __future__ import annotations

import json
import re

from evalstore.core.display import shorten
from evalstore.core.values import Json

BOUND = ("turns", "templates", "data")
"""Fields of a check that its author has not written."""
_HIDDEN = (*BOUND, "type", "revision", "given", "prompts")
"""Fields of a check that are not shown with its type."""
_MAIN = ("expected", "pattern", "check")
"""Settings of checks that are shown without their names, as in `type: value`."""
_MAIN_PATH = re.compile(r"(expected|pattern)(?:\[(\d+)\])?([.\[].*)?", re.DOTALL)
"""The place of a setting that is written behind the type, an element of it, and what is in that."""


def as_written(check: Json, other: Json) -> str:
    """Return a check in one line: its type, and the settings that `other` has not alike."""
    settings, others = (_settings_of(each) for each in (check, other))
    kind = str(check.get("type", ""))
    main = (kind, *_MAIN)
    own = [name for name, value in settings.items() if name not in others or others[name] != value]
    words = [
        _setting_text(settings[name]) if name in main else f"{name} {_setting_text(settings[name])}"
        for name in sorted(own, key=lambda name: (name not in main, name))
    ]
    return " ".join([kind, ", ".join(words)]).strip()


def _setting_text(value: Json) -> str:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, dict) and "path" in value:  # a file with the id of its content
        return str(value["path"])
    if isinstance(value, dict) and "type" in value:  # a check inside of another one
        return as_written(value, {})
    return shorten(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _settings_of(check: Json) -> dict[str, Json]:
    """Return the settings of a check that its author has written, without the ids of versions."""
    whole = {**check, **check.get("given", {})}
    return {
        name: value
        for name, value in whole.items()
        if name not in _HIDDEN and not (name == "schema" and isinstance(value, str))
    }


def as_setting(path: str, check: Json) -> str:
    """Return a path in a check as its author has written it: the type in place of `expected[0]`."""
    check = {**check, **check.get("given", {})}
    if path.startswith("check."):
        return as_setting(path.removeprefix("check."), check["check"])
    match = _MAIN_PATH.fullmatch(path)
    if match is None:
        return path
    name, number, rest = match.groups()
    if number and not rest:
        is_only = len(check[name]) == 1
        return check["type"] if is_only else f"{check['type']}, value {int(number) + 1}"
    return f"{check['type']}{path.removeprefix(name)}"
