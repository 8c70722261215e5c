"""Digests of many values in little memory: about ten bytes for each."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable

_BITS = 64
_BUCKET_BITS = 15
"""The number of leading bits of a digest that select its bucket."""
_PARTS = 256
"""The number of parts into which the values are divided; each is counted separately."""


class DigestSet:
    """A set of whole numbers of 64 bits, which are evenly distributed."""

    def __init__(self) -> None:
        self._buckets: dict[int, array[int]] = {}

    def add(self, digest: int) -> bool:
        """Add a number, and return whether it is new."""
        place = digest >> (_BITS - _BUCKET_BITS)
        bucket = self._buckets.get(place)
        if bucket is None:
            self._buckets[place] = array("Q", (digest,))
            return True
        if digest in bucket:
            return False
        bucket.append(digest)
        return True

    def __contains__(self, digest: int) -> bool:
        return digest in self._buckets.get(digest >> (_BITS - _BUCKET_BITS), ())

    def __bool__(self) -> bool:
        return bool(self._buckets)


_NONE = array("Q"), array("Q")


class DigestMap:
    """Whole numbers of 64 bits by digests as in a `DigestSet`."""

    def __init__(self) -> None:
        self._buckets: dict[int, tuple[array[int], array[int]]] = {}
        """The digests, and their numbers."""

    def get(self, digest: int) -> int | None:
        """Return the number of a digest; None if it has none."""
        digests, numbers = self._buckets.get(digest >> (_BITS - _BUCKET_BITS), _NONE)
        return numbers[digests.index(digest)] if digest in digests else None

    def put(self, digest: int, number: int) -> None:
        """Set the number of a digest, whether it has one or not."""
        place = digest >> (_BITS - _BUCKET_BITS)
        digests, numbers = self._buckets.setdefault(place, (array("Q"), array("Q")))
        if digest in digests:
            numbers[digests.index(digest)] = number
        else:
            digests.append(digest)
            numbers.append(number)

    def add(self, digest: int, number: int) -> int:
        """Add a number for a digest, unless it has one; returns the number that it has."""
        known = self.get(digest)
        if known is None:
            self.put(digest, number)
        return number if known is None else known


class IdSet:
    """A set of ids in little memory, each by its digest."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._digests = DigestSet()
        for id in ids:
            self.add(id)

    def add(self, id: str) -> None:
        """Add an id."""
        self._digests.add(digest_of(id))

    def __bool__(self) -> bool:
        return bool(self._digests)

    def __contains__(self, id: str) -> bool:
        return bool(self) and digest_of(id) in self._digests

    def isdisjoint(self, ids: Iterable[str]) -> bool:
        """Return whether none of these ids is in the set."""
        return not self or not any(digest_of(id) in self._digests for id in ids)


class ValueSet:
    """A set of values in little memory, each by a digest that holds for this process."""

    def __init__(self) -> None:
        self._digests = DigestSet()

    def update(self, values: Iterable[Hashable]) -> None:
        """Add values."""
        for value in values:
            self._digests.add(digest_of_value(value))

    def __contains__(self, value: Hashable) -> bool:
        return digest_of_value(value) in self._digests


def digest_of_value(value: Hashable) -> int:
    """Return a digest of a value that holds for this process."""
    return hash(value) % (1 << _BITS)


def digest_of(id: str) -> int:
    """Return the first digits of an id as a whole number of 64 bits."""
    return int(id[:16], 16)


def count_distinct(values: Iterable[int]) -> int:
    """Count the distinct values; each is a whole number of 64 bits."""
    return sum(len(set(part)) for part in _divide(values))


def find_repeated(values: Iterable[int]) -> set[int]:
    """Return the values that occur more than once; each is a whole number of 64 bits."""
    repeated: set[int] = set()
    for part in _divide(values):
        if len(set(part)) < len(part):
            repeated.update(value for value, count in Counter(part).items() if count > 1)
    return repeated


def _divide(values: Iterable[int]) -> list[array[int]]:
    """Return the values in parts; equal ones are in one."""
    parts = [array("Q") for _ in range(_PARTS)]
    adders = [part.append for part in parts]
    for value in values:
        adders[value >> 8 & _PARTS - 1](value)
    return parts
