"""Sequences whose elements are made when they are read, from a temporary file if there are many."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from operator import eq
from typing import Any, TypeVar, overload

from evalstore.files.temporary_list import TemporaryList

T = TypeVar("T")

_FEW = 10_000
"""The most values that stay in memory."""


class NumberedSequence(Sequence[T]):
    """A sequence whose elements are read one by one, by their number."""

    @abstractmethod
    def read_one(self, number: int) -> T:
        """Return the element with a number, which is not negative and less than the length."""

    @overload
    def __getitem__(self, number: int) -> T: ...

    @overload
    def __getitem__(self, number: slice) -> list[T]: ...

    def __getitem__(self, number: int | slice) -> T | list[T]:
        if isinstance(number, slice):
            return [self.read_one(each) for each in range(*number.indices(len(self)))]
        return self.read_one(range(len(self))[number])


class FiledSequence(NumberedSequence[T]):
    """A sequence in a temporary file; it is compared, copied and pickled as a list."""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | FiledSequence):
            return NotImplemented
        return len(self) == len(other) and all(map(eq, self, other))

    __hash__ = None  # type: ignore[assignment]  # as that of a list

    def __reduce__(self) -> tuple[type[list[T]], tuple[list[T]]]:
        return list, ([*self],)

    def __repr__(self) -> str:
        return f"<{len(self):,} values in a temporary file>"


class PackedSequence(FiledSequence[T]):
    """Values of one type, each packed into plain values; several threads may read them."""

    def __init__(
        self,
        values: Iterable[T],
        pack: Callable[[T], Any],
        unpack: Callable[[Any], T],
    ) -> None:
        """`values` are read once, and few of them are in memory together."""
        self._unpack = unpack
        self._packed = TemporaryList(map(pack, values))

    def __len__(self) -> int:
        return len(self._packed)

    def __iter__(self) -> Iterator[T]:
        return map(self._unpack, self._packed)

    def read_one(self, number: int) -> T:
        """Return the value with a number."""
        return self._unpack(self._packed[number])


def keep_values(
    values: Iterable[T], pack: Callable[[T], Any], unpack: Callable[[Any], T]
) -> Sequence[T]:
    """Return values as a list, or if there are many as a sequence in a temporary file.

    `pack` turns a value into plain values, and `unpack` back.
    """
    left = iter(values)
    first = list(islice(left, _FEW))
    if next_one := list(islice(left, 1)):
        return PackedSequence(chain(_taken(first), next_one, left), pack, unpack)
    return first


def _taken(values: list[T]) -> Iterator[T]:
    """Yield the values of a list, which is empty afterwards."""
    values.reverse()
    while values:
        yield values.pop()
