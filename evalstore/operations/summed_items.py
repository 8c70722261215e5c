"""Sums the items of a plan that are equal, such as those of the rows of a group."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from evalstore.operations.status_report import summed
from evalstore.operations.views.change_text import AllEqual
from evalstore.planning.plan_items import FiledItems

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from evalstore.planning.plan_item import PlanItem


class SummedItems:
    """The items of a kind with the counts of equal ones added up, and their totals.

    Those in a file are read for each iteration: equal ones are of one cell, and stand together.
    """

    def __init__(self, items: Collection[PlanItem], kind: str) -> None:
        self._kind = kind
        self._items = items
        if not isinstance(items, FiledItems):
            self._items = summed(item for item in items if item.kind == kind)
        self.count = self.total = self.by_checks = 0
        shared = AllEqual()
        for item in self:
            self.count += 1
            self.total += item.count
            self.by_checks += item.count if item.evaluator == "checks" else 0
            shared.add(item)
        self.shared = shared.edits
        """What was edited beside the reasons, if it is the same for all items."""

    def __iter__(self) -> Iterator[PlanItem]:
        if not isinstance(self._items, FiledItems):
            yield from self._items
            return
        kind = self._kind
        items = (item for item in self._items.of_kind(kind) if item.kind == kind)
        for _, same in groupby(items, lambda item: (item.file, item.row, item.prompt, item.model)):
            yield from summed(same)
