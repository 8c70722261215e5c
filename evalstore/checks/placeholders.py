"""The texts of a check by their place: found, and filled."""

from __future__ import annotations

from collections.abc import Iterator

from evalstore.checks.registry import find_kind
from evalstore.values import Json

Place = tuple[str | int, ...]


def set_apart(given: Json, written: Json) -> Json:
    """A filled check in which a mapping that came from data is the value, never the settings."""
    if not isinstance(written, dict):
        return given
    for name, value in given.items():
        if not isinstance(value, dict) or not isinstance(written[name], str):
            continue
        kind = find_kind(name)
        if kind and kind.main:
            others = {other: one for other, one in given.items() if other != name}
            return {"type": name, kind.main: value, **others}
    return given


def copied(value: Json) -> Json:
    """A value whose lists and mappings can be changed."""
    if isinstance(value, dict):
        return {name: copied(inner) for name, inner in value.items()}
    return [copied(inner) for inner in value] if isinstance(value, list) else value


def templates_in(value: Json, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """The texts with something to fill in, each with its place."""
    if isinstance(value, str):
        if "{{" in value or "{%" in value:
            yield place, value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from templates_in(inner, (*place, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from templates_in(inner, (*place, number))


def value_at(value: Json, place: Place) -> Json:
    """The value at a place."""
    for step in place:
        value = value[step]
    return value


def put_at(value: Json, place: Place, inner: Json) -> Json:
    """The value with something else at a place."""
    if not place:
        return inner
    target = value_at(value, place[:-1])
    target[place[-1]] = inner
    return value
