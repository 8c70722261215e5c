"""The places at which the cell of a run is looked for in another run: its row and system prompt."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from typing import Any, Protocol

Place = tuple[str, str, str, Any]
PlaceKey = tuple[str, Place]


class NamedCell(Protocol):
    """What names a cell, such as its result."""

    @property
    def file(self) -> str:
        """Return the path of its test file."""

    @property
    def row(self) -> str:
        """Return the label of its row."""

    @property
    def key(self) -> str:
        """Return the digest of the values of its row."""

    @property
    def model(self) -> str:
        """Return the name of its candidate."""

    @property
    def prompt(self) -> str | None:
        """Return its system prompt."""

    @property
    def prompt_number(self) -> int:
        """Return the number of the system prompt among those of the case."""


def places_of(cell: NamedCell) -> Iterator[PlaceKey]:
    """Yield the places at which a cell is looked for, in this order."""
    file, model, key, row = cell.file, cell.model, cell.key, cell.row
    yield "prompt", (file, model, key, cell.prompt)
    yield "prompt", (file, model, row, cell.prompt)
    yield "prompt_number", (file, model, key, cell.prompt_number)
    yield "prompt_number", (file, model, row, cell.prompt_number)


def is_of_cell(
    found: object, prompt: object, prompts: Iterable[object] | Container[object]
) -> bool:
    """Return whether a result with a system prompt that was found at the place of a cell is its.

    One with another system prompt of the case belongs to that prompt's cell.
    """
    return found == prompt or found not in prompts
