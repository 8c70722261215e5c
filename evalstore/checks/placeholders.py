"""The texts of a check that are templates: each found by its place, and replaced by its value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evalstore.values import Json

Place = tuple[str | int, ...]
"""The keys and numbers that lead to a value, from the outside in."""


class DataMapping(dict[str, Json]):
    """A mapping that came from data: where it stands, it is the value, never the settings."""


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


def fill_in(written: Json, values: Iterable[tuple[Place, Json]]) -> Json:
    """A copy with these values at their places; mappings among them are marked as data."""
    filled = plain_copy(written)
    for place, value in values:
        # A row of data may hide its own methods, of which a copy is made without any.
        inner = DataMapping({**value}) if isinstance(value, dict) else value
        if not place:
            filled = inner
        else:
            value_at(filled, place[:-1])[place[-1]] = inner
    return filled


def plain_copy(value: Json) -> Json:
    """A copy of all mappings and lists, without the mark of data."""
    if isinstance(value, dict):
        return {name: plain_copy(inner) for name, inner in value.items()}
    return [plain_copy(inner) for inner in value] if isinstance(value, list) else value
