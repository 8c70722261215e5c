"""A test file with older versions of some of its cases, of which few are in memory."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import count, islice
from operator import eq
from typing import TYPE_CHECKING, overload

from evalstore.core.values import Case
from evalstore.files.temporary_list import TemporaryList
from evalstore.workspace.digest_set import digest_of_value

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.core.values import CaseFile

_AT_ONCE = 2_000
"""The cases that are in memory together."""
_OWN = -1
"""Stands for a case that has no older version, or the same one."""


class CaseVersions:
    """Versions of cases, which are found by their keys, else by the labels of their rows."""

    def __init__(self) -> None:
        self._keys, self._rows = array("Q"), array("Q")
        self._digests = array("Q")
        """Those of the whole cases."""
        self._cases = TemporaryList()

    def append(self, case: Case) -> None:
        """Add a version; of several with one key the first counts."""
        self._keys.append(digest_of_value(case.key))
        self._rows.append(digest_of_value(case.row))
        self._digests.append(digest_of_value(case))
        self._cases.append(tuple(case))

    def mix_into(self, file: CaseFile) -> CaseFile | None:
        """Return a file with these versions of its cases; None if it has no others itself."""
        by_key: dict[int, int] = {}
        by_row: dict[int, int] = {}
        for place, (key, row) in enumerate(zip(self._keys, self._rows, strict=True)):
            if by_key.setdefault(key, place) == place:
                by_row[row] = place

        def find(case: Case) -> int:
            place = by_key.get(digest_of_value(case.key), by_row.get(digest_of_value(case.row)))
            if place is None or self._digests[place] == digest_of_value(case):
                return _OWN
            return place

        places = array("l", map(find, file.cases))
        if all(place == _OWN for place in places):
            return None
        return replace(file, cases=_MixedCases(file.cases, self, places))

    def read(self, places: Iterable[int]) -> dict[int, Case]:
        """Return the versions at these places; each part of a file is read once."""
        return {place: self._read_one(place) for place in sorted({*places})}

    def _read_one(self, place: int) -> Case:
        values = self._cases[place]
        return Case._make(tuple(each) if isinstance(each, list) else each for each in values)


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
