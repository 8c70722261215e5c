"""A mapping whose values are in a temporary file if there are many."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Any, TypeVar

from evalstore.files.temporary_list import TemporaryList

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_FEW = 10_000
"""The most values that stay in memory."""


class FiledMapping(Mapping[K, V]):
    """Values by ids, or by tuples of ids; of many only some bytes each are in memory.

    Values that are read in the order in which they were added are read quickly.
    """

    def __init__(
        self,
        pack: Callable[[V], Any] = lambda value: value,
        unpack: Callable[[Any], V] = lambda value: value,
    ) -> None:
        """`pack` turns a value into JSON and `unpack` back."""
        self._pack, self._unpack = pack, unpack
        self._few: dict[K, V] = {}
        self._filed: TemporaryList | None = None
        self._digests = array("q")
        """The digest of the key of each value in the file."""
        self._sorted: tuple[array[int], array[int]] | None = None
        """The digests in order, each with the number of its value."""

    def update(self, values: Mapping[K, V]) -> None:
        """Add values; one that is known is the same."""
        if self._filed is None:
            self._few |= values
            if len(self._few) <= _FEW:
                return
            self._filed = TemporaryList()
            values, self._few = self._few, {}
        self._digests.extend(map(hash, values))
        self._filed.extend([[key, self._pack(value)] for key, value in values.items()])
        self._sorted = None

    def __getitem__(self, key: K) -> V:
        if self._filed is None:
            return self._few[key]
        digest = hash(key)
        digests, numbers = self._index()
        place = bisect_left(digests, digest)
        if place == len(digests) or digests[place] != digest:
            raise KeyError(key)
        return self._unpack(self._filed[numbers[place]][1])

    def __iter__(self) -> Iterator[K]:
        if self._filed is None:
            yield from self._few
            return
        _, numbers = self._index()
        firsts = {*numbers}
        yield from (_as_key(key) for n, (key, _) in enumerate(self._filed) if n in firsts)

    def __len__(self) -> int:
        return len(self._few) if self._filed is None else len(self._index()[0])

    def _index(self) -> tuple[array[int], array[int]]:
        """Return the sorted digests with the numbers of their values, each digest once."""
        if self._sorted is None:
            digests, numbers = array("q"), array("L")
            for number in sorted(range(len(self._digests)), key=self._digests.__getitem__):
                if not digests or digests[-1] != self._digests[number]:
                    digests.append(self._digests[number])
                    numbers.append(number)
            self._sorted = digests, numbers
        return self._sorted


def _as_key(known: Any) -> Any:
    return tuple(known) if isinstance(known, list) else known
