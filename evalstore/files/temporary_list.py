"""Keeps very many small values in a temporary file, compressed."""

from __future__ import annotations

import json
import tempfile
import weakref
import zlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from typing import IO

_IN_MEMORY = 8 << 20
"""The compressed bytes that stay in memory."""


class TemporaryList:
    """A list of values of JSON, which is read in its order; the file goes with the list.

    It has no name where the system allows that, so that a program that is killed leaves none.
    """

    def __init__(self) -> None:
        self._count = 0
        self._file = cast("IO[bytes]", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115
        self._sizes: list[int] = []
        """The bytes of each batch."""
        self._end = 0
        weakref.finalize(self, self._file.close)

    def extend(self, values: Sequence[Any]) -> None:
        """Add a batch of values; a tuple becomes a list."""
        if not values:
            return
        data = zlib.compress(json.dumps(values).encode("ascii"), level=1)
        self._file.seek(self._end)
        self._file.write(data)
        self._end += len(data)
        self._sizes.append(len(data))
        self._count += len(values)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Any]:
        start = 0
        for size in self._sizes:
            self._file.seek(start)
            data = self._file.read(size)
            start += size
            yield from json.loads(zlib.decompress(data))
