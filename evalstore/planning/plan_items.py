"""The items of a plan, which a command that lists them keeps in memory or files, and their sums."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any, Protocol

from evalstore.files.temporary_list import FiledSequence, NumberedSequence, PackedSequence
from evalstore.store.wanted import refuse_unwanted


@dataclass(frozen=True, slots=True)
class PlanItem:
    """An item of a plan, as commands print it."""

    JSON_FIELDS = (
        *("kind", "file", "row", "prompt", "prompt_name", "model", "evaluator", "count"),
        *("reason", "was", "now", "also"),
    )
    kind: str
    """`ask`, `record` (take an answer from a test file) or `judge`"""
    file: str
    row: str
    prompt: str | None
    model: str
    evaluator: str | None
    count: int
    reason: str
    was: str | None
    now: str | None
    prompt_name: str | None = field(default=None, metadata={"json_optional": True})
    """The name of the system prompt; None without one."""
    of: str = ""
    """What was edited, if no test file was: `candidate openai/gpt-5.4-mini`, `attempts`."""
    also: tuple[str, ...] = field(default=(), metadata={"json_optional": True})
    """The parts of the case that were edited as well, such as `checks`."""


_FIELDS = tuple(field.name for field in fields(PlanItem))
_values_of = attrgetter(*_FIELDS)
"""Returns the values of the fields of an item; `also` is the last."""


class ItemList(Protocol):
    """Takes the items of a plan, batch by batch."""

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Add the items of the next batch."""

    def finish(self) -> Sequence[PlanItem]:
        """Return all items: the questions of all batches come before the judgements."""


class FiledItems(FiledSequence[PlanItem]):
    """Keeps items in a temporary file without a name, which goes when the program ends.

    They can be read by several threads, and are copied and pickled as a list.
    """

    def __init__(self) -> None:
        self._asks = PackedSequence[PlanItem]((), _values_of, _item_of)
        self._judgements = PackedSequence[PlanItem]((), _values_of, _item_of)

    def add(self, asks: Sequence[PlanItem], judgements: Sequence[PlanItem]) -> None:
        """Add the items of the next batch."""
        self._asks.extend(asks)
        self._judgements.extend(judgements)

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

    def of_kind(self, kind: str) -> Sequence[PlanItem]:
        """Return the items among which those of a kind are."""
        return self._judgements if kind == "judge" else self._asks


def _item_of(values: Sequence[Any]) -> PlanItem:
    return PlanItem(*(*values[:-1], tuple(values[-1])))


# --- sums the items that are equal, such as those of the rows of a group


def summed(items: Iterable[PlanItem]) -> list[PlanItem]:
    """Return the items with the counts of equal ones, such as rows of a group, added up."""
    counts: Counter[PlanItem] = Counter()
    for item in items:
        counts[replace(item, count=1)] += item.count
    return [replace(item, count=count) for item, count in counts.items()]


class SummedItems(NumberedSequence["PlanItem"]):
    """The items of a kind with the counts of equal ones added up, and their totals.

    They are read when they are asked for: equal ones are of one cell, and stand together.
    """

    def __init__(self, items: Sequence[PlanItem], kind: str) -> None:
        """Add up the items."""
        self.kind = kind
        self._items = items.of_kind(kind) if isinstance(items, FiledItems) else items
        self._starts = array("L")
        """For each the number of the first one of its cell among all items."""
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

    def _place(self) -> Iterator[tuple[int, PlanItem]]:
        """Yield the items, each with the number of the first one of its cell among all."""
        start = 0
        for (kind, *_), same in groupby(self._items, _cell_of):
            listed = list(same)
            if kind == self.kind:
                for item in listed if len(listed) == 1 else summed(listed):
                    yield start, item
            start += len(listed)

    def __len__(self) -> int:
        return len(self._starts)

    def __iter__(self) -> Iterator[PlanItem]:
        return (item for _, item in self._place())

    def read_one(self, number: int) -> PlanItem:
        """Return the item with a number."""
        start = self._starts[number]
        items, cell = self._items, _cell_of(self._items[start])
        rest = map(items.__getitem__, range(start, len(items)))
        same = takewhile(lambda item: _cell_of(item) == cell, rest)
        return summed(same)[number - bisect_left(self._starts, start)]


def _cell_of(item: PlanItem) -> tuple[str, str, str, str | None, str]:
    """Return the kind of an item and its cell."""
    return item.kind, item.file, item.row, item.prompt, item.model
