"""Digests of many values in little memory: about ten bytes for each."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain, islice

_FEW = 10_000
"""The most values that are kept in a plain set."""
_BITS = 64
_BUCKET_BITS = 15
"""The number of leading bits of a digest that select its bucket."""
_PARTS = 256
"""The number of parts into which the values are divided; each is counted separately."""
_SORT_BITS = 12
"""The number of leading bits by which values are counted before some are sorted."""


class DigestSet:
    """A set of whole numbers of 64 bits, which are evenly distributed."""

    def __init__(self) -> None:
        self._few: set[int] = set()
        self._buckets: list[array[int] | None] = []
        """Replaces the set when there are many values."""

    def add(self, digest: int) -> bool:
        """Add a number, and return whether it is new."""
        if not self._buckets:
            if digest in self._few:
                return False
            self._few.add(digest)
            if len(self._few) > _FEW:
                self._buckets = [None] * (1 << _BUCKET_BITS)
                while self._few:
                    self.add(self._few.pop())
            return True
        place = digest >> (_BITS - _BUCKET_BITS)
        bucket = self._buckets[place]
        if bucket is None:
            self._buckets[place] = array("Q", (digest,))
            return True
        if digest in bucket:
            return False
        bucket.append(digest)
        return True

    def __contains__(self, digest: int) -> bool:
        if not self._buckets:
            return digest in self._few
        bucket = self._buckets[digest >> (_BITS - _BUCKET_BITS)]
        return bucket is not None and digest in bucket


class DigestMap:
    """Whole numbers of 64 bits by digests as in a `DigestSet`; the first of a digest counts."""

    def __init__(self) -> None:
        self._few: dict[int, int] = {}
        self._buckets: list[tuple[array[int], array[int]] | None] = []
        """Replaces the dictionary when there are many: the digests, and their numbers."""

    def add(self, digest: int, number: int) -> int:
        """Add a number for a digest, unless it has one; returns the number that it has."""
        if not self._buckets:
            known = self._few.setdefault(digest, number)
            if len(self._few) > _FEW:
                self._buckets = [None] * (1 << _BUCKET_BITS)
                while self._few:
                    self.add(*self._few.popitem())
            return known
        place = digest >> (_BITS - _BUCKET_BITS)
        bucket = self._buckets[place]
        if bucket is None:
            self._buckets[place] = array("Q", (digest,)), array("Q", (number,))
            return number
        digests, numbers = bucket
        if digest in digests:
            return numbers[digests.index(digest)]
        digests.append(digest)
        numbers.append(number)
        return number

    def replace(self, digest: int, number: int) -> bool:
        """Set the number of a digest that has one; False if it has none."""
        if not self._buckets:
            if digest not in self._few:
                return False
            self._few[digest] = number
            return True
        bucket = self._buckets[digest >> (_BITS - _BUCKET_BITS)]
        if bucket is None or digest not in bucket[0]:
            return False
        bucket[1][bucket[0].index(digest)] = number
        return True

    def put(self, digest: int, number: int) -> None:
        """Set the number of a digest, whether it has one or not."""
        if not self.replace(digest, number):
            self.add(digest, number)

    def get(self, digest: int) -> int | None:
        """Return the number of a digest; None if it has none."""
        if not self._buckets:
            return self._few.get(digest)
        bucket = self._buckets[digest >> (_BITS - _BUCKET_BITS)]
        if bucket is None or digest not in bucket[0]:
            return None
        return bucket[1][bucket[0].index(digest)]


class IdSet:
    """A set of ids in little memory, each by its digest."""

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._digests = DigestSet()
        self._is_any = False
        for id in ids:
            self.add(id)

    def add(self, id: str) -> None:
        """Add an id."""
        self._is_any = True
        self._digests.add(digest_of(id))

    def __bool__(self) -> bool:
        return self._is_any

    def __contains__(self, id: str) -> bool:
        return self._is_any and digest_of(id) in self._digests

    def isdisjoint(self, ids: Iterable[str]) -> bool:
        """Return whether none of these ids is in the set."""
        return not self._is_any or not any(digest_of(id) in self._digests for id in ids)


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
    rest = iter(values)
    few = list(islice(rest, _FEW))
    if len(few) < _FEW:
        return len(set(few))
    parts = [array("Q") for _ in range(_PARTS)]
    adders = [part.append for part in parts]
    for value in chain(few, rest):
        adders[value >> 8 & _PARTS - 1](value)
    return sum(len(set(part)) for part in parts)


def find_repeated(values: Iterable[int]) -> set[int]:
    """Return the values that occur more than once; each is a whole number of 64 bits."""
    parts = [array("Q") for _ in range(_PARTS)]
    adders = [part.append for part in parts]
    for value in values:
        adders[value >> 8 & _PARTS - 1](value)
    repeated: set[int] = set()
    for part in parts:
        if len(seen := set(part)) < len(part):
            counts = Counter(part)
            repeated.update(value for value in seen if counts[value] > 1)
    return repeated


def find_smallest(values: Sequence[int], place: int) -> int:
    """Return the value at a place, from 1, of the sorted values, of which few are in memory.

    Each is a whole number of 64 bits.
    """
    counts = array("Q", bytes(8 << _SORT_BITS))
    shift = _BITS - _SORT_BITS
    for value in values:
        counts[value >> shift] += 1
    first = 0
    while place > counts[first]:
        place -= counts[first]
        first += 1
    return sorted(value for value in values if value >> shift == first)[place - 1]
