"""Finds the texts that an id of a result belongs to, of many in little memory."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence

from evalstore.workspace.digest_set import digest_of_value

_PARTS = 256
"""The number of parts into which they are divided; each is sorted separately."""
_SHIFT = 56


class TextKeys:
    """The numbers of texts by the ids that stand for them: a dozen bytes for each."""

    def __init__(self) -> None:
        self._parts = [(array("Q"), array("I")) for _ in range(_PARTS)]
        """Digests of ids, with the numbers."""
        self._is_sorted = True

    def add(self, number: int, ids: Iterable[str]) -> None:
        """Let these ids stand for the text with a number."""
        for digest in map(digest_of_value, ids):
            digests, numbers = self._parts[digest >> _SHIFT]
            digests.append(digest)
            numbers.append(number)
        self._is_sorted = False

    def find(self, id: str) -> Sequence[int]:
        """Return the numbers of the texts that an id stands for."""
        if not self._is_sorted:
            self._parts = [_sort(*part) for part in self._parts]
            self._is_sorted = True
        digest = digest_of_value(id)
        digests, numbers = self._parts[digest >> _SHIFT]
        first = end = bisect_left(digests, digest)
        while end < len(digests) and digests[end] == digest:
            end += 1
        return numbers[first:end]


def _sort(digests: array[int], numbers: array[int]) -> tuple[array[int], array[int]]:
    """Return both in the order of the digests."""
    order = sorted(range(len(digests)), key=digests.__getitem__)
    return (
        array("Q", [digests[place] for place in order]),
        array("I", [numbers[place] for place in order]),
    )
