"""Keeps many small values in a temporary file, compressed, and sorts them there."""

from __future__ import annotations

import json
import marshal
import tempfile
import threading
import weakref
import zlib
from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Sequence
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import IO

_IN_MEMORY = 1 << 20
"""The compressed bytes that stay in memory."""
_AT_ONCE = 1_000
"""The most values that are compressed together."""
_SORTED_AT_ONCE = 20_000
"""The values that are sorted in memory,"""
_MERGED_AT_ONCE = 200
"""and those of each such part that are in memory while the parts are merged."""


class TemporaryList(Collection[Any]):
    """A list of values of JSON, which is read in its order or by number.

    It may be read by several threads. The file goes with the list; it has no name where the system
    allows that, so that a program that is killed leaves none.
    """

    def __init__(self, values: Iterable[Any] = ()) -> None:
        """`values` are read once, and few of them are in memory meanwhile."""
        self._filed = 0
        """How many values are in the file."""
        self._file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
        self._starts: list[int] = [0]
        """Where the bytes of each batch start, and where the last one ends."""
        self._firsts: list[int] = []
        """The number of the first value of each batch."""
        self._last: list[Any] = []
        """The values after those in the file."""
        self._lock = threading.RLock()
        self._read: tuple[int, list[Any]] = -1, []
        """The batch that was read last by number of a value."""
        weakref.finalize(self, self._file.close)
        left = iter(values)
        while batch := list(islice(left, _AT_ONCE)):
            self.extend(batch)

    def append(self, value: Any) -> None:
        """Add a value; until there are enough of them for a batch they stay as they are."""
        self._last.append(value)
        if len(self._last) >= _AT_ONCE:
            self._file_last()

    def extend(self, values: Sequence[Any]) -> None:
        """Add values; a named tuple becomes a list, and so do tuples that are added with it."""
        if self._last:
            self._file_last()
        for start in range(0, len(values), _AT_ONCE):
            with self._lock:
                self._add_batch(values[start : start + _AT_ONCE])

    def _file_last(self) -> None:
        with self._lock:
            self._add_batch(self._last)
            self._last = []

    def _add_batch(self, values: Sequence[Any]) -> None:
        data = zlib.compress(_encode(values), level=1)
        self._file.seek(self._starts[-1])
        self._file.write(data)
        self._starts.append(self._starts[-1] + len(data))
        self._firsts.append(self._filed)
        self._filed += len(values)

    @property
    def batches(self) -> int:
        """Return how many batches the values in the file are in."""
        return len(self._firsts)

    def read(self, batches: Iterable[int]) -> Iterator[Any]:
        """Yield the values of the batches with these numbers."""
        for number in batches:
            yield from self._load(number)

    def __len__(self) -> int:
        with self._lock:
            return self._filed + len(self._last)

    def __iter__(self) -> Iterator[Any]:
        number = 0
        while values := self._read_from(number):  # some may be added meanwhile
            yield from values
            number += len(values)

    def _read_from(self, number: int) -> Sequence[Any]:
        """Return the values from a number on up to the end of its batch; empty at the end."""
        with self._lock:
            if number >= self._filed:
                return self._last[number - self._filed :]
            batch = self._batch_of(number)
            return self._load(batch)[number - self._firsts[batch] :]

    def __contains__(self, value: object) -> bool:
        return any(own == value for own in self)

    def __getitem__(self, number: int) -> Any:
        if number < 0:
            raise IndexError(number)
        with self._lock:
            if number >= self._filed:
                return self._last[number - self._filed]
            batch = self._batch_of(number)
            return self._load_kept(batch)[number - self._firsts[batch]]

    def read_some(self, numbers: Iterable[int]) -> list[Any]:
        """Return the values with these numbers, in this order; each batch is read once."""
        listed = list(numbers)
        ordered = sorted({*listed})
        with self._lock:
            values = [*self._read_ordered(ordered)]
        if ordered == listed:
            return values
        found = dict(zip(ordered, values, strict=True))
        return [found[number] for number in listed]

    def _read_ordered(self, numbers: Sequence[int]) -> Iterator[Any]:
        """Yield the values with these numbers, which are in order."""
        first, batch = 0, list[Any]()
        for number in numbers:
            if number - first >= len(batch) and number < self._filed:
                of = self._batch_of(number)
                first, batch = self._firsts[of], self._load_kept(of)
            yield batch[number - first] if number < self._filed else self[number]

    def _batch_of(self, number: int) -> int:
        return bisect_right(self._firsts, number) - 1

    def _load_kept(self, number: int) -> list[Any]:
        """Return the values of a batch, which are kept until another one is read."""
        with self._lock:
            read, values = self._read
            if read != number:
                values = self._load(number)
                self._read = number, values
            return values

    def _load(self, number: int) -> list[Any]:
        start, end = self._starts[number : number + 2]
        with self._lock:
            self._file.seek(start)
            data = self._file.read(end - start)
        values: list[Any] = marshal.loads(zlib.decompress(data))
        return values


def _encode(values: Any) -> bytes:
    """Encode values, in a third of the time of JSON."""
    try:
        return marshal.dumps(values)
    except ValueError:  # one is of a class of its own, as a named tuple is
        return marshal.dumps(json.loads(json.dumps(values)))


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
