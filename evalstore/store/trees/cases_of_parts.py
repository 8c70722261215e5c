"""The cases of some parts of a file with many of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from evalstore.core import batches
from evalstore.files.filed_sequence import NumberedSequence

if TYPE_CHECKING:
    from evalstore.core.values import Case
    from evalstore.store.trees.case_files import CasePart, StoredCases

_FEW = 10_000
"""The most cases that stay in memory."""


def cases_of_parts(cases: StoredCases, parts: Sequence[CasePart]) -> Sequence[Case]:
    """Return the cases of those of the smallest parts that are given; many are read later."""
    if sum(part.size for part in parts) <= _FEW:
        return tuple(cases.read(parts))
    return _CasesOfParts(cases, parts)


class _CasesOfParts(NumberedSequence["Case"]):
    """Cases that are read when they are used; those next to each other are read together."""

    def __init__(self, cases: StoredCases, parts: Sequence[CasePart]) -> None:
        self._cases, self._parts = cases, parts
        self._starts = [0, *accumulate(part.size for part in parts)]
        """The number of the first case of each part, and how many cases there are."""
        self._first = 0
        self._block: Sequence[Case] = ()
        """The cases that were read last, from number `_first` on."""

    def __len__(self) -> int:
        return self._starts[-1]

    def __iter__(self) -> Iterator[Case]:
        return self._cases.read(self._parts)

    def read_one(self, number: int) -> Case:
        """Return the case with a number."""
        if not 0 <= number - self._first < len(self._block):
            part = bisect_right(self._starts, number) - 1
            start = part - part % batches.SMALL_SIZE
            self._first = self._starts[start]
            self._block = tuple(self._cases.read(self._parts[start : start + batches.SMALL_SIZE]))
        return self._block[number - self._first]
