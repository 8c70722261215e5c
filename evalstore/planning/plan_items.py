"""Keeps the items of a plan for a command that lists them, in memory or in a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, Protocol

from evalstore.files.temporary_list import FiledSequence, TemporaryList
from evalstore.planning.plan_item import PlanItem

_FIELDS = tuple(field.name for field in fields(PlanItem))
_values_of = attrgetter(*_FIELDS)
"""Returns the values of the fields of an item; `also` is the last."""


class ItemList(Protocol):
    """Takes the items of a plan, batch by batch."""

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Add the items of the next batch."""

    def finish(self) -> Sequence[PlanItem]:
        """Return all items: the questions of all batches come before the judgements."""


class NoItems:
    """Keeps no items."""

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Do nothing."""

    def finish(self) -> list[PlanItem]:
        """Return no items."""
        return []


class ListedItems:
    """Keeps the items in memory."""

    def __init__(self) -> None:
        self._asks: list[PlanItem] = []
        self._judgements: list[PlanItem] = []

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Add the items of the next batch."""
        self._asks += asks
        self._judgements += judgements

    def finish(self) -> list[PlanItem]:
        """Return all items."""
        return self._asks + self._judgements


class FiledItems(FiledSequence[PlanItem]):
    """Keeps items in a temporary file without a name, which goes when the program ends.

    They can be read by several threads, and are copied and pickled as a list.
    """

    def __init__(self) -> None:
        self._asks, self._judgements = ItemFile(), ItemFile()

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Add the items of the next batch."""
        self._asks.add(asks)
        self._judgements.add(judgements)

    def finish(self) -> FiledItems:
        """Return the items."""
        return self

    def __len__(self) -> int:
        return len(self._asks) + len(self._judgements)

    def __iter__(self) -> Iterator[PlanItem]:
        yield from self._asks
        yield from self._judgements

    def read_one(self, number: int) -> PlanItem:
        """Return the item with a number."""
        asks = len(self._asks)
        return self._asks[number] if number < asks else self._judgements[number - asks]

    def of_kind(self, kind: str) -> ItemFile:
        """Return the items among which those of a kind are."""
        return self._judgements if kind == "judge" else self._asks


class ItemFile:
    """Items in a file, which are read in their order or by number."""

    def __init__(self) -> None:
        self._values = TemporaryList()

    def __len__(self) -> int:
        return len(self._values)

    def add(self, items: Sequence[PlanItem]) -> None:
        """Add items."""
        self._values.extend([_values_of(item) for item in items])

    def __iter__(self) -> Iterator[PlanItem]:
        return map(_item_of, self._values)

    def __getitem__(self, number: int) -> PlanItem:
        return _item_of(self._values[number])


def _item_of(values: Sequence[Any]) -> PlanItem:
    return PlanItem(*(*values[:-1], tuple(values[-1])))
