"""A set of many ids in little memory: 16 bytes for each."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Set

from evalstore.store.ids import as_id

_HALF = 8
"""The bytes of half an id."""
_MASK = (1 << 64) - 1


class FoundIds(Set[str]):
    """The ids that a query has returned in their order. It never changes."""

    def __init__(self, ids: Iterable[bytes] = ()) -> None:
        """`ids` are in ascending order, as the database stores them."""
        self._first, self._second = array("Q"), array("Q")
        """The halves of each id as whole numbers."""
        for id in ids:
            whole = as_id(id)
            self._first.append(int.from_bytes(whole[:_HALF], "big"))
            self._second.append(int.from_bytes(whole[_HALF:], "big"))

    def __len__(self) -> int:
        return len(self._first)

    def __iter__(self) -> Iterator[str]:
        return (f"{a:016x}{b:016x}" for a, b in zip(self._first, self._second, strict=True))

    def __contains__(self, id: object) -> bool:
        try:
            return isinstance(id, str) and self._has(int(id, 16))
        except ValueError:
            return False

    def isdisjoint(self, ids: Iterable[object]) -> bool:
        """Return whether none of these is in the set; it is asked for many cases."""
        return not any(id in self for id in ids)

    def _has(self, number: int) -> bool:
        first, second = number >> 64, number & _MASK
        place = bisect_left(self._first, first)
        while place < len(self._first) and self._first[place] == first:
            if self._second[place] == second:
                return True
            place += 1
        return False

    def __hash__(self) -> int:
        return self._hash()
