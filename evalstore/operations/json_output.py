"""Values as the JSON that `--json` prints.

A dataclass or a named tuple becomes an object of its fields, in their order, with names in
camelCase. What differs from that is declared where the field is, in its metadata:

- `json_name`: the name in the JSON;
- `json_as`: a function that turns the value into JSON;
- `json_optional`: the field is left out while it has its default.

A class whose object has other members, or another order, lists the fields and properties in
`JSON_FIELDS`. A class whose object is not an image of its fields has a method `document`.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Hashable
from functools import cache
from pathlib import PurePath
from typing import Any, NamedTuple

from evalstore.values import Json

_ALWAYS = object()
"""The default of a member that is never left out."""


class _Member(NamedTuple):
    attribute: str
    name: str
    convert: Callable[[Any], Json]
    default: Any = _ALWAYS


def to_json(value: Any) -> Json:
    """A value as JSON; raises `TypeError` for one that has no form in JSON."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if hasattr(value, "document"):
        return value.document()
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        return fields_to_json(value)
    if isinstance(value, list | tuple):
        return [to_json(inner) for inner in value]
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def fields_to_json(value: Any, *, defaults: bool = True) -> dict[str, Json]:
    """The object of a value's fields; without `defaults` of those that are not as by default."""
    kind: Any = type(value)
    return {
        member.name: member.convert(inner)
        for member in _members(kind, defaults=defaults)
        if (inner := getattr(value, member.attribute)) != member.default
    }


@cache
def _members(kind: Hashable, *, defaults: bool) -> tuple[_Member, ...]:
    """What an object of a class has, in order."""
    declared = {field.name: field for field in getattr(kind, "__dataclass_fields__", {}).values()}
    names = getattr(kind, "JSON_FIELDS", None) or (*declared, *getattr(kind, "_fields", ()))
    return tuple(_member(name, declared.get(name), defaults) for name in names)


def _member(name: str, field: dataclasses.Field[Any] | None, defaults: bool) -> _Member:
    if field is None:
        return _Member(name, camel_case(name), to_json)
    told = field.metadata
    return _Member(
        name,
        told.get("json_name", camel_case(name)),
        told.get("json_as", to_json),
        _ALWAYS if defaults and not told.get("json_optional") else field.default,
    )


def camel_case(name: str) -> str:
    """`passed_after_fail` as `passedAfterFail`."""
    return re.sub(r"_([a-z0-9])", lambda found: found[1].upper(), name)
