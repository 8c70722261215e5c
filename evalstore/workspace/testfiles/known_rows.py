"""The rows of a dataset as they were read before, by their digests: their cases are stored."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evalstore.core.hashing import find_repeated
from evalstore.core.values import Case
from evalstore.store.trees.case_chunks import MAX_UNDIVIDED, CaseTreeBuilder
from evalstore.store.trees.tree_nodes import CasePart, StoredCases
from evalstore.workspace.index import NumberLists
from evalstore.workspace.testfiles.replacements import Labeller, digest_text, number_label

_UNKNOWN = -1
_AHEAD = 10_000
"""The most rows among which one is looked for."""


class KnownRows:
    """The rows of a file as it was read before, with their cases.

    Their digests are of the values that may name a row, of what the data have, of the keys, and of
    the labels without the numbers of equal ones; the header has the names of the values by which
    rows are named, and of all.
    """

    def __init__(
        self, digests: NumberLists, cases: Sequence[Case], depends: Mapping[str, Any]
    ) -> None:
        self.depends = depends
        """What these cases depend on."""
        self._names, columns = digests.header
        *values, self._rows, self._keys, self._labels = digests.lists
        self._columns = dict(zip(columns, values, strict=True))
        self._cases = cases
        parts = [*cases.smallest_parts()] if isinstance(cases, StoredCases) else []
        self._parts = {part.first: part for part in parts[:-1]}
        """All but the last one: it ends where the file did."""
        self._places = array("q")
        """The place that each row had, or `_UNKNOWN`."""
        self._next = 0

    def find(self, digest: int) -> bool:
        """Return whether the next row was there, not much further on than the row before."""
        try:
            place = self._rows.index(digest, self._next, self._next + _AHEAD)
        except ValueError:
            self._places.append(_UNKNOWN)
            return False
        self._places.append(place)
        self._next = place + 1
        return True

    def _merge(self, known: array[int], unknown: Iterator[int]) -> array[int]:
        """Return for each row what is known, else the next of `unknown`."""
        places = self._places
        return array("Q", (next(unknown) if at == _UNKNOWN else known[at] for at in places))

    def columns(
        self, unknown: Sequence[Mapping[str, str]], names: Iterable[str]
    ) -> dict[str, array[int]]:
        """Return the digests of the values of all rows, in the order in which they occur first.

        `unknown` are the values of the unknown rows, `names` those of all values in their order.
        """
        columns: list[tuple[str, array[int]]] = []
        for name in names:
            known = self._columns.get(name) or array("Q", bytes(8 * len(self._rows)))
            texts = (digest_text(row[name]) if name in row else 0 for row in unknown)
            column = self._merge(known, texts)
            if any(column):
                columns.append((name, column))
        return dict(sorted(columns, key=lambda each: next(n for n, v in enumerate(each[1]) if v)))

    def label(
        self, labeller: Labeller, unknown: Iterable[Mapping[str, str]]
    ) -> tuple[array[int], list[str]] | None:
        """Return the digests of all labels without numbers, and the labels of the unknown rows.

        `unknown` are what these may be named by. None: the labels of other rows change, too.
        """
        if list(labeller.names) != self._names or labeller.repeated:
            return None
        names = [labeller.name(each) for each in unknown]
        labels = self._merge(self._labels, map(digest_text, names))
        before, now = _number(self._labels), _number(labels)
        numbers: list[int] = []
        for number, place in enumerate(self._places):
            if place == _UNKNOWN:
                numbers.append(now.get(number, 0))
            elif now.get(number, 0) != before.get(place, 0):
                return None
        is_clear = not any("#" in name for name in names)
        return (labels, [*map(number_label, names, numbers)]) if is_clear else None

    def build(self, builder: CaseTreeBuilder, unknown: Sequence[Case]) -> array[int]:
        """Add the cases of all rows to a tree, parts that are as they were as a whole.

        `unknown` are the cases of the unknown rows. Returns all keys.
        """
        keys = self._merge(self._keys, (int(case.key, 16) for case in unknown))
        following = iter(unknown)
        number = 0
        while number < len(keys):
            if builder.is_between and (part := self._part_at(number)):
                number += part.size
                builder.add_part(part.node, part.size, f"{keys[number - 1]:016x}")
            else:
                place = self._places[number]
                builder.add(next(following) if place == _UNKNOWN else self._cases[place])
                number += 1
        return keys

    def _part_at(self, number: int) -> CasePart | None:
        """Return the part whose cases are those of the rows from this number on."""
        part = self._parts.get(self._places[number])
        if part is None or len(self._places) <= MAX_UNDIVIDED:
            return None
        same = array("q", range(part.first, part.first + part.size))
        return part if self._places[number : number + part.size] == same else None


def _number(labels: array[int]) -> dict[int, int]:
    """Return for rows that share a label with others how many of these come before."""
    counts = dict.fromkeys(find_repeated(labels), -1)
    numbers: dict[int, int] = {}
    for number, label in enumerate(labels if counts else ()):
        if label in counts:
            counts[label] += 1
            numbers[number] = counts[label]
    return numbers
