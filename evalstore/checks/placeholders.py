"""Finds the templates in a check, and replaces them with their values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evalstore.core.values import Json

Place = tuple[str | int, ...]
"""The path to a nested value: keys of mappings and indexes of lists."""


class DataMapping(dict[str, Json]):
    """A mapping from data, which is always a value and never read as settings."""

    __slots__ = ()


def templates_in(value: Json, place: Place = ()) -> Iterator[tuple[Place, str]]:
    """Yield the texts that are templates, each with its place."""
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
    """Return the value at a place."""
    for step in place:
        value = value[step]
    return value


def fill_in(written: dict[str, Json], values: Iterable[tuple[Place, Json]]) -> dict[str, Json]:
    """Return `written` with these values at their places; mappings among them are marked as data.

    Mappings and lists that contain the places are copied; the rest is shared.
    """
    filled: Json = written.copy()
    copies: dict[Place, Json] = {}
    for place, value in values:
        target = filled
        for end in range(1, len(place)):
            way = place[:end]
            if way not in copies:
                copies[way] = target[way[-1]] = target[way[-1]].copy()
            target = copies[way]
        target[place[-1]] = DataMapping(value) if isinstance(value, dict) else value
    result: dict[str, Json] = filled
    return result


def plain_copy(value: Json) -> Json:
    """Return a deep copy in which mappings from data are plain ones."""
    if isinstance(value, dict):
        return {name: plain_copy(inner) for name, inner in value.items()}
    return [plain_copy(inner) for inner in value] if isinstance(value, list) else value
