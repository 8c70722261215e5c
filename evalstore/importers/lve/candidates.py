"""The candidates that recorded answers belong to: each model at the temperatures it was asked at.

A test fixes its temperature when all of its calls were made at one. Otherwise it has a tag that
names the temperatures of its answers, so that a candidate is asked only tests that have some at
its own.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.values import Json

DEFAULT = 0.0
"""The temperature of the first candidate of a model: what LVE asks at unless told otherwise."""

TemperatureTags = dict[str, tuple[float, ...]]
"""Tag -> the temperatures that it names."""


def tag_temperatures(
    model: str, options: Mapping[str, Json], temperatures: Collection[float]
) -> TemperatureTags:
    """The tag of a test whose answers were given at these temperatures; empty: it needs none."""
    if "temperature" in options or set(temperatures) <= {DEFAULT}:
        return {}
    distinct = tuple(sorted(set(temperatures)))
    return {f"{model}@{'+'.join(f'{number:.9g}' for number in distinct)}": distinct}


def list_candidates(
    models: Mapping[str, TemperatureTags], *, default: float | None
) -> list[dict[str, Json]]:
    """The candidates of these models, as `evalstore.yaml` lists them.

    `usual` is what candidates of the workspace are asked at; None: no answers come along, so each
    model is listed once, for all of its tests.
    """
    if default is None:
        return [{"id": model, "requiredTags": [model]} for model in models]
    candidates = [
        _first(model, temperature_tags, default) for model, temperature_tags in models.items()
    ]
    for model, temperature_tags in models.items():
        other_temperatures = {
            number for tag_values in temperature_tags.values() for number in tag_values
        } - {DEFAULT}
        for temperature in sorted(other_temperatures):
            tags = [
                tag for tag, tag_values in temperature_tags.items() if temperature in tag_values
            ]
            candidates.append({"id": model, "requiredTags": tags, "temperature": temperature})
    return candidates


def _first(model: str, tags: TemperatureTags, default: float) -> dict[str, Json]:
    """The candidate for the tests that fix their temperature or have answers at the default."""
    entry: dict[str, Json] = {"id": model, "requiredTags": [model]}
    if prohibited := [tag for tag, tag_values in tags.items() if DEFAULT not in tag_values]:
        entry["prohibitedTags"] = prohibited
    if default != DEFAULT:
        entry["temperature"] = DEFAULT
    return entry
