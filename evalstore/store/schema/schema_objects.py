"""Objects in the schema of a database that evalstore has not created, or that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from evalstore.core.errors import StoreError


class UnexpectedObject(NamedTuple):
    """An object in the schema that evalstore has not created, or one that is missing."""

    words: str
    """A message, such as `the trigger 'x' does not belong to evalstore`."""
    table: str | None = None
    """The table of evalstore that it replaces."""
    blocks_writing: bool = False
    """Whether it could change what is written."""
    blocks_reading: bool = False
    """Whether reading it could run code of its author, without end."""
    missing: bool = False


def refuse_foreign(name: str, foreign: Sequence[UnexpectedObject]) -> None:
    """Raise `StoreError` if there are objects that make reading or writing unsafe."""
    if foreign:
        verb = "read" if any(extra.blocks_reading for extra in foreign) else "written to"
        raise StoreError(
            f"the store '{name}' is not {verb}: {foreign[0].words}",
            hint="'evalstore fsck' lists what is wrong; do not use a store of unknown origin",
        )
