"""What a search needs of an index of texts; each database has one of its own.

`search_file` is a file on this machine, for stores in SQLite; `search_tables` are tables of a store
in PostgreSQL, which all of its users share. Both find the same texts for the same words. Their
contents are computed from the texts of the store, so nothing is lost with them.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Protocol, overload

from evalstore.store.ids import as_id
from evalstore.store.search.texts import KINDS, Kind
from evalstore.store.store import Store

Report = Callable[[int, int], bool]
"""Called with the number of added texts and of all texts; returns whether to continue."""
GoOn = Callable[[], bool]
"""Returns whether somebody still waits for what is searched."""
NEWEST_ORDER = "(kind + 2) % 4, number DESC"
"""The order of the texts of `find_newest`, by the numbers of their kinds."""
_ID_BYTES = 16


class Documents(Sequence[tuple[Kind, str]]):
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

    @overload
    def __getitem__(self, index: int) -> tuple[Kind, str]: ...

    @overload
    def __getitem__(self, index: slice) -> list[tuple[Kind, str]]: ...

    def __getitem__(self, index: int | slice) -> tuple[Kind, str] | list[tuple[Kind, str]]:
        numbers = range(len(self))[index]
        return self._at(numbers) if isinstance(numbers, int) else [*map(self._at, numbers)]

    def _at(self, number: int) -> tuple[Kind, str]:
        start = number * _ID_BYTES
        return KINDS[self._kinds[number]], self._ids[start : start + _ID_BYTES].hex()


class SearchIndex(Protocol):
    """An open index."""

    @property
    def in_memory(self) -> bool:
        """Return whether the index ends with this object."""

    @property
    def missing(self) -> int:
        """Return how many texts the last update left out, because this user may not add them."""

    def update(self, store: Store, report: Report = ..., /) -> bool:
        """Add the texts of the store that are not in the index; False when `report` ended it.

        Other programs may do so at the same time: each batch is checked again when it is written.
        """

    def find_sessions(
        self, words: Sequence[str], go_on: GoOn = ..., /, *, in_answers: bool = False
    ) -> Set[str] | None:
        """Return the sessions whose answer, feedback, test and instructions have all words.

        With `in_answers` the answer alone must. The last word may be the beginning of a word. Empty
        when `words` has no word; None when `go_on` returned False.
        """

    def find_documents(self, words: Sequence[str], kinds: Sequence[Kind]) -> Documents:
        """Return the texts of these kinds that contain all words, as kind and id.

        They are in the order in which the index got to know them.
        """

    def find_newest(
        self, words: Sequence[str], kinds: Sequence[Kind], limit: int, go_on: GoOn = ..., /
    ) -> tuple[list[tuple[Kind, str]], int] | None:
        """Return at most so many of the texts of these kinds with all words, and the count of all.

        Answers come before feedback, tests and instructions, and of each kind those that the index
        got to know last. None when `go_on` returned False.
        """

    def sessions_of(self, documents: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """Return the sessions that each of these texts belongs to, sorted."""

    def close(self) -> None:
        """Close what was opened for the index alone."""


def add_batches(
    missing: Mapping[Kind, bytes],
    size: int,
    report: Report,
    add: Callable[[Kind, list[str]], None],
) -> bool:
    """Add texts, so many at a time, by their concatenated ids; False when `report` ended it."""
    total, done = sum(map(len, missing.values())) // _ID_BYTES, 0
    if not total:
        return True
    width = 2 * _ID_BYTES
    for kind in KINDS:
        ids = missing[kind]
        for start in range(0, len(ids), size * _ID_BYTES):
            if not report(done, total):
                return False
            joined = ids[start : start + size * _ID_BYTES].hex()
            digits = [joined[at : at + width] for at in range(0, len(joined), width)]
            add(kind, digits)
            done += len(digits)
    return report(done, total)


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
