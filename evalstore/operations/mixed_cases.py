"""A test file with older versions of some of its cases, of which few are in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from operator import eq
from typing import TYPE_CHECKING, overload

from evalstore.files.temporary_list import TemporaryList
from evalstore.values import Case
from evalstore.workspace.digest_set import digest_of_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.values import CaseFile

_AT_ONCE = 2_000
"""The cases that are in memory together."""
_OWN = -1
"""Stands for a case that has no older version, or the same one."""


class FiledCases:
    """Cases that are added one by one; of each some digests are in memory."""

    def __init__(self) -> None:
        self.keys, self.rows = array("Q"), array("Q")
        self.digests = array("Q")
        """Those of the whole cases."""
        self._cases = TemporaryList()

    def append(self, case: Case) -> None:
        """Add a case."""
        self.keys.append(digest_of_value(case.key))
        self.rows.append(digest_of_value(case.row))
        self.digests.append(digest_of_value(case))
        self._cases.append(tuple(case))

    def __len__(self) -> int:
        return len(self.digests)

    def read_one(self, number: int) -> Case:
        """Return the case with a number."""
        values = self._cases[number]
        return Case._make(tuple(each) if isinstance(each, list) else each for each in values)


class CaseVersions:
    """Versions of cases, which are found by their keys, else by the labels of their rows."""

    def __init__(self) -> None:
        self._lists: list[FiledCases] = []
        self._places: tuple[array[int], array[int]] = array("l"), array("l")
        """The number of the list that has a version, and its number there."""

    def add(self, cases: FiledCases, number: int) -> None:
        """Add one of these cases; of several with one key the first counts."""
        if not self._lists or self._lists[-1] is not cases:
            self._lists.append(cases)
        for column, value in zip(self._places, (len(self._lists) - 1, number), strict=True):
            column.append(value)

    def mix_into(self, file: CaseFile) -> CaseFile | None:
        """Return a file with these versions of its cases; None if it has no others itself."""
        by_key: dict[int, int] = {}
        by_row: dict[int, int] = {}
        lists, numbers = self._places
        for place, (of, number) in enumerate(zip(lists, numbers, strict=True)):
            cases = self._lists[of]
            if by_key.setdefault(cases.keys[number], place) == place:
                by_row[cases.rows[number]] = place

        def find(case: Case) -> int:
            place = by_key.get(digest_of_value(case.key), by_row.get(digest_of_value(case.row)))
            if place is None:
                return _OWN
            version = self._lists[lists[place]].digests[numbers[place]]
            return _OWN if version == digest_of_value(case) else place

        places = array("l", map(find, file.cases))
        if all(place == _OWN for place in places):
            return None
        return replace(file, cases=_MixedCases(file.cases, self, places))

    def read(self, places: Iterable[int]) -> dict[int, Case]:
        """Return the versions at these places; each part of a file is read once."""
        lists, numbers = self._places
        found = sorted((lists[place], numbers[place], place) for place in {*places})
        return {place: self._lists[of].read_one(number) for of, number, place in found}


class _MixedCases(Sequence[Case]):
    """The cases of a file, and for some of them the older versions at these places."""

    def __init__(self, own: Sequence[Case], older: CaseVersions, places: array[int]) -> None:
        self._own, self._older, self._places = own, older, places

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[Case]:
        own = iter(self._own)
        for start in count(0, _AT_ONCE):
            cases = [*islice(own, _AT_ONCE)]
            if not cases:
                return
            places = self._places[start : start + len(cases)]
            older = self._older.read(place for place in places if place != _OWN)
            for case, place in zip(cases, places, strict=True):
                yield case if place == _OWN else older[place]

    @overload
    def __getitem__(self, index: int) -> Case: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Case]: ...

    def __getitem__(self, index: int | slice) -> Case | Sequence[Case]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        place = self._places[index]
        return self._own[index] if place == _OWN else self._older.read([place])[place]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]
