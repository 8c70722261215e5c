"""Keeps what is known of many pairs of results, mostly the same of all, in little memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar, overload

V = TypeVar("V", bound=Hashable)
D = TypeVar("D")
Ids = tuple[str, ...]
"""The sessions, or the judgements, of one side of a pair."""


class PairedWords(Generic[V]):
    """Values by the ids of both sides of a pair; of each only ten bytes are in memory.

    The ids are known by their digests, which hold for this process.
    """

    def __init__(self) -> None:
        self._digests = array("q")
        self._values = array("L")
        self._numbers: dict[V, int] = {}
        self._distinct: list[V] = []
        self._sorted: tuple[array[int], array[int]] | None = None

    def add(self, was: Ids, now: Ids, value: V) -> None:
        """Add the value of a pair; one that has a value has the same."""
        self._digests.append(hash((was, now)))
        number = self._numbers.setdefault(value, len(self._distinct))
        if number == len(self._distinct):
            self._distinct.append(value)
        self._values.append(number)
        self._sorted = None

    @overload
    def get(self, sides: tuple[Ids, Ids]) -> V | None: ...

    @overload
    def get(self, sides: tuple[Ids, Ids], default: D) -> V | D: ...

    def get(self, sides: tuple[Ids, Ids], default: D | None = None) -> V | D | None:
        """Return the value of a pair, else the default."""
        if not self._digests:
            return default
        digest = hash(sides)
        digests, values = self._index()
        place = bisect_left(digests, digest)
        if place == len(digests) or digests[place] != digest:
            return default
        return self._distinct[values[place]]

    def __contains__(self, sides: tuple[Ids, Ids]) -> bool:
        return self.get(sides) is not None

    def _index(self) -> tuple[array[int], array[int]]:
        if self._sorted is None:
            order = sorted(range(len(self._digests)), key=self._digests.__getitem__)
            self._sorted = _taken(self._digests, order), _taken(self._values, order)
        return self._sorted


def _taken(column: array[int], places: Iterable[int]) -> array[int]:
    return array(column.typecode, map(column.__getitem__, places))
