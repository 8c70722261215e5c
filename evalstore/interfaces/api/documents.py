"""Converts what methods return to the JSON that their commands print."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalstore.core.values import Json


def to_json(value: object) -> Json:
    """Return the JSON that the command of a method prints with `--json`.

    Its lists are in memory, also those that a command prints while they are read.
    """
    from evalstore.files import json_output

    document = json_output.to_json(value)
    if isinstance(document, dict):
        return {
            name: list(inner) if isinstance(inner, Iterator) else inner
            for name, inner in document.items()
        }
    return document
