"""Converts values to the JSON that `--json` prints.

A dataclass or a named tuple becomes an object of its fields, in their order, with names in
camelCase. Exceptions are declared in the metadata of the field:

- `json_name`: the name in the JSON;
- `json_as`: a function that turns the value into JSON;
- `json_optional`: the field is left out while it has its default;
- `json_inline`: the members of the field's object replace it.

A class whose object has other members, or another order, lists the fields and properties in
`JSON_FIELDS`. A class whose object does not mirror its fields has a method `document`. An iterator
of JSON, and the `Members` of an object, are left as they are, and are read while they are printed.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Hashable, Iterator
from functools import cache
from pathlib import PurePath
from typing import Any, NamedTuple

from evalstore.core.values import Json
from evalstore.files.temporary_list import FiledSequence

_ALWAYS = object()
"""The default of a member that is never left out."""


FILES = {"json_as": lambda problems: sorted({problem.file for problem in problems})}
"""Metadata of a field with problems: their files, each once."""
PATHS = {"json_as": lambda files: [file.path for file in files]}
"""Metadata of a field with files: their paths."""


class Members(NamedTuple):
    """The members of an object, which are read while it is printed."""

    pairs: Iterator[tuple[str, Json]]


class _Member(NamedTuple):
    attribute: str
    name: str
    convert: Callable[[Any], Json]
    default: Any = _ALWAYS
    is_inline: bool = False


def to_json(value: Any) -> Json:
    """Return a value as JSON; raises `TypeError` for a value that JSON cannot represent."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, dict):
        return {str(name): to_json(inner) for name, inner in value.items()}
    if hasattr(value, "document"):
        return value.document()
    if isinstance(value, Iterator | Members):
        return value
    if dataclasses.is_dataclass(value) or hasattr(value, "_fields"):
        return fields_to_json(value)
    if isinstance(value, list | tuple | FiledSequence):
        return [to_json(inner) for inner in value]
    if isinstance(value, PurePath):
        return str(value)
    raise TypeError(f"{type(value).__name__} has no form in JSON")


def fields_to_json(value: Any, *, defaults: bool = True) -> dict[str, Json]:
    """Return the object of a value's fields; without `defaults`, only fields with other values."""
    kind: Any = type(value)
    result: dict[str, Json] = {}
    for member in _members(kind, defaults=defaults):
        inner = getattr(value, member.attribute)
        if member.is_inline:
            result |= member.convert(inner)
        elif inner != member.default:
            result[member.name] = member.convert(inner)
    return result


@cache
def _members(kind: Hashable, *, defaults: bool) -> tuple[_Member, ...]:
    """Return the members of the object of a class, in order."""
    declared = {field.name: field for field in getattr(kind, "__dataclass_fields__", {}).values()}
    names = getattr(kind, "JSON_FIELDS", None) or (*declared, *getattr(kind, "_fields", ()))
    return tuple(_member(name, declared.get(name), defaults) for name in names)


def _member(name: str, field: dataclasses.Field[Any] | None, defaults: bool) -> _Member:
    if field is None:
        return _Member(name, camel_case(name), to_json)
    metadata = field.metadata
    return _Member(
        name,
        metadata.get("json_name", camel_case(name)),
        metadata.get("json_as", to_json),
        _ALWAYS if defaults and not metadata.get("json_optional") else field.default,
        metadata.get("json_inline", False),
    )


def camel_case(name: str) -> str:
    """Return a name such as `passed_after_fail` as `passedAfterFail`."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def read_whole(value: Json) -> Json:
    """Return JSON with its iterators as lists and `Members` as objects."""
    if isinstance(value, Iterator):
        return [*value]
    if isinstance(value, Members):
        return dict(value.pairs)
    return {k: read_whole(v) for k, v in value.items()} if isinstance(value, dict) else value
