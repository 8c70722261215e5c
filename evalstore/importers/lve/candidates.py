"""Candidates for recorded answers: each model with the temperatures of its answers.

A test sets its temperature if all of its calls used the same one. Otherwise it has a tag with
the temperatures of its answers, so that a candidate is asked only the tests that have answers
at its temperature.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.values import Json

DEFAULT = 0
"""The temperature of the first candidate of a model, which is LVE's default."""

TemperatureTags = dict[str, tuple[float, ...]]
"""Maps a tag to its temperatures."""


def tag_temperatures(
    model: str, options: Mapping[str, Json], temperatures: Collection[float]
) -> TemperatureTags:
    """Return the tag of a test with answers at these temperatures; empty if it needs none."""
    if "temperature" in options or set(temperatures) <= {DEFAULT}:
        return {}
    distinct = tuple(sorted(set(temperatures)))
    return {f"{model}@{'+'.join(f'{number:.9g}' for number in distinct)}": distinct}


def list_candidates(
    models: Mapping[str, TemperatureTags], *, default: float | None
) -> list[dict[str, Json]]:
    """Return the candidates of these models for `evalstore.yaml`.

    `default` is the workspace's default temperature; None: none is sent.
    """
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


def _first(model: str, tags: TemperatureTags, default: float | None) -> dict[str, Json]:
    """Return the candidate for tests that set a temperature or have answers at the default."""
    entry: dict[str, Json] = {"id": model, "requiredTags": [model]}
    if prohibited := [tag for tag, tag_values in tags.items() if DEFAULT not in tag_values]:
        entry["prohibitedTags"] = prohibited
    if default != DEFAULT:
        entry["temperature"] = DEFAULT
    return entry
