"""Keeps very many small values in a temporary file, compressed."""

from __future__ import annotations

import json
import tempfile
import threading
import weakref
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import IO

_IN_MEMORY = 8 << 20
"""The compressed bytes that stay in memory."""
_AT_ONCE = 1_000
"""The most values that are read together."""


class TemporaryList:
    """A list of values of JSON, which is read in its order or by number.

    It may be read by several threads. The file goes with the list; it has no name where the system
    allows that, so that a program that is killed leaves none.
    """

    def __init__(self) -> None:
        self._count = 0
        self._file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
        self._starts: list[int] = [0]
        """Where the bytes of each batch start, and where the last one ends."""
        self._firsts: list[int] = []
        """The number of the first value of each batch."""
        self._lock = threading.Lock()
        self._read: tuple[int, list[Any]] = -1, []
        """The batch that was read last by number of a value."""
        weakref.finalize(self, self._file.close)

    def extend(self, values: Sequence[Any]) -> None:
        """Add values; a tuple becomes a list."""
        for start in range(0, len(values), _AT_ONCE):
            some = values[start : start + _AT_ONCE]
            data = zlib.compress(json.dumps(some).encode("ascii"), level=1)
            with self._lock:
                self._file.seek(self._starts[-1])
                self._file.write(data)
            self._starts.append(self._starts[-1] + len(data))
            self._firsts.append(self._count)
            self._count += len(some)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return self.iterate()

    def iterate(self, start: int = 0) -> Iterator[Any]:
        """Yield the values from a number on; values that are added meanwhile, too."""
        number = self._batch_of(start)
        while number < len(self._firsts):
            values = self._load(number)
            yield from values[max(0, start - self._firsts[number]) :]
            number += 1

    def __getitem__(self, number: int) -> Any:
        if not 0 <= number < self._count:
            raise IndexError(number)
        batch = self._batch_of(number)
        read, values = self._read
        if read != batch:
            values = self._load(batch)
            self._read = batch, values
        return values[number - self._firsts[batch]]

    def _batch_of(self, number: int) -> int:
        return max(0, bisect_right(self._firsts, number) - 1)

    def _load(self, number: int) -> list[Any]:
        start, end = self._starts[number : number + 2]
        with self._lock:
            self._file.seek(start)
            data = self._file.read(end - start)
        values: list[Any] = json.loads(zlib.decompress(data))
        return values
