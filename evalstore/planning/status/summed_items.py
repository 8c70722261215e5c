"""Sums the items of a plan that are equal, such as those of the rows of a group."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from itertools import groupby, takewhile
from typing import TYPE_CHECKING

from evalstore.files.temporary_list import NumberedSequence
from evalstore.planning.plan_items import FiledItems
from evalstore.planning.status.status_report import summed
from evalstore.store.wanted import refuse_unwanted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evalstore.planning.plan_item import PlanItem
    from evalstore.planning.plan_items import ItemFile


class SummedItems(NumberedSequence["PlanItem"]):
    """The items of a kind with the counts of equal ones added up, and their totals.

    Those in a file are read when they are asked for: equal ones are of one cell, and stand
    together.
    """

    def __init__(self, items: Sequence[PlanItem], kind: str) -> None:
        """Add up the items."""
        self.kind = kind
        self._listed: list[PlanItem] = []
        self._file: ItemFile | None = None
        if isinstance(items, FiledItems):
            self._file = items.of_kind(kind)
        else:
            self._listed = summed(item for item in items if item.kind == kind)
        self._starts = array("L")
        """For each of those in a file the number of the first one of its cell there."""
        self.total = self.by_checks = 0
        self.files: dict[str, None] = {}
        self.models: dict[str, None] = {}
        """The names of the candidates and the evaluators."""
        for start, item in self._place():
            refuse_unwanted()
            self.total += item.count
            self.by_checks += item.count if item.evaluator == "checks" else 0
            self.files[item.file] = None
            self.models[item.model] = None
            if item.evaluator:
                self.models[item.evaluator] = None
            self._starts.append(start)
        self._count = len(self._starts)

    def _place(self) -> Iterator[tuple[int, PlanItem]]:
        """Yield the items, each with the number of the first one of its cell in the file."""
        if self._file is None:
            yield from enumerate(self._listed)
            return
        start = 0
        for (kind, *_), same in groupby(self._file, _cell_of):
            listed = list(same)
            if kind == self.kind:
                for item in listed if len(listed) == 1 else summed(listed):
                    yield start, item
            start += len(listed)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[PlanItem]:
        return (item for _, item in self._place())

    def read_one(self, number: int) -> PlanItem:
        """Return the item with a number."""
        if self._file is None:
            return self._listed[number]
        start = self._starts[number]
        file, cell = self._file, _cell_of(self._file[start])
        rest = map(file.__getitem__, range(start, len(file)))
        same = takewhile(lambda item: _cell_of(item) == cell, rest)
        return summed(same)[number - bisect_left(self._starts, start)]


def _cell_of(item: PlanItem) -> tuple[str, str, str, str | None, str]:
    """Return the kind of an item and its cell."""
    return item.kind, item.file, item.row, item.prompt, item.model
