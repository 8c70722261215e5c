"""Keeps very many small values in a temporary file, compressed, and sorts them there."""

from __future__ import annotations

import json
import tempfile
import weakref
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import IO

_IN_MEMORY = 8 << 20
"""The compressed bytes that stay in memory."""
_AT_ONCE = 1_000
"""The values that are compressed together, where they come one by one."""
_SORTED_AT_ONCE = 20_000
"""The values that are sorted in memory,"""
_MERGED_AT_ONCE = 200
"""and those of each such part that are in memory while the parts are merged."""


class TemporaryList(Collection[Any]):
    """A list of values of JSON, which is read in its order; the file goes with the list.

    It has no name where the system allows that, so that a program that is killed leaves none.
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        """`values` are read once, and few of them are in memory meanwhile."""
        self._count = 0
        self._file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
        self._sizes: list[int] = []
        """The bytes of each batch."""
        self._starts: list[int] = []
        self._end = 0
        weakref.finalize(self, self._file.close)
        left = iter(values)
        while batch := list(islice(left, _AT_ONCE)):
            self.extend(batch)

    def extend(self, values: Sequence[Any]) -> None:
        """Add a batch of values; a tuple becomes a list."""
        if not values:
            return
        data = zlib.compress(json.dumps(values).encode("ascii"), level=1)
        self._file.seek(self._end)
        self._file.write(data)
        self._starts.append(self._end)
        self._sizes.append(len(data))
        self._end += len(data)
        self._count += len(values)

    @property
    def batches(self) -> int:
        """Return how many batches were added."""
        return len(self._sizes)

    def read(self, batches: Iterable[int]) -> Iterator[Any]:
        """Yield the values of the batches with these numbers."""
        for number in batches:
            self._file.seek(self._starts[number])
            yield from json.loads(zlib.decompress(self._file.read(self._sizes[number])))

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        number = 0
        while number < self.batches:  # some may be added meanwhile
            yield from self.read([number])
            number += 1

    def __contains__(self, value: object) -> bool:
        return any(own == value for own in self)


class SortedValues:
    """Sorts lists of JSON, each of which can be compared with the others; few are in memory."""

    def __init__(self) -> None:
        self._parts = TemporaryList()
        self._of_part: list[range] = []
        """The numbers of the batches of each part, which is sorted."""
        self._unsorted: list[list[Any]] = []

    def add(self, values: Iterable[list[Any]]) -> None:
        """Add lists."""
        for value in values:
            self._unsorted.append(value)
            if len(self._unsorted) >= _SORTED_AT_ONCE:
                self._file()

    def _file(self) -> None:
        self._unsorted.sort()
        first = self._parts.batches
        for start in range(0, len(self._unsorted), _MERGED_AT_ONCE):
            self._parts.extend(self._unsorted[start : start + _MERGED_AT_ONCE])
        self._of_part.append(range(first, self._parts.batches))
        self._unsorted.clear()

    def __iter__(self) -> Iterator[list[Any]]:
        """Yield the lists in their order; none may be added meanwhile."""
        self._unsorted.sort()
        return merge(*map(self._parts.read, self._of_part), self._unsorted)
