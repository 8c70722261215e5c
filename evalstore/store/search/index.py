"""What the indexes of texts find, in little memory; each database has an index of its own.

`SearchFile` is a file on this machine, for stores in SQLite; `SearchTables` are tables of a store
in PostgreSQL, which all of its users share. Both have the same methods, and find the same texts for
the same words. Their contents are computed from the texts of the store, so nothing is lost with
them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence, Set

from evalstore.files.temporary_list import NumberedSequence
from evalstore.store.ids import as_id
from evalstore.store.search.texts import KINDS, Kind

Report = Callable[[int, int], bool]
"""Called with the number of added texts and of all texts; returns whether to continue."""
GoOn = Callable[[], bool]
"""Returns whether somebody still waits for what is searched."""
NEWEST_ORDER = "(kind + 2) % 4, number DESC"
"""The order of the texts of `find_newest`, by the numbers of their kinds."""
_ID_BYTES = 16


class Documents(NumberedSequence[tuple[Kind, str]]):
    """The kinds and ids of texts, in 17 bytes each."""

    def __init__(self, rows: Iterable[tuple[int, bytes]], kinds: Sequence[Kind]) -> None:
        """`rows` have numbers of kinds and ids; those of other kinds are left out."""
        wanted = {KINDS.index(kind) for kind in kinds}
        self._kinds, self._ids = bytearray(), bytearray()
        for number, id in rows:
            if number in wanted:
                self._kinds.append(number)
                self._ids += as_id(id)

    def __len__(self) -> int:
        return len(self._kinds)

    def read_one(self, number: int) -> tuple[Kind, str]:
        """Return the kind and the id of the text at a place."""
        start = number * _ID_BYTES
        return KINDS[self._kinds[number]], self._ids[start : start + _ID_BYTES].hex()


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
