"""Finds the changed pairs of a comparison by their newer results, reading those of some at a time.

Of each pair some bytes are in memory.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

from evalstore.comparison.placed_results import digest_of_cell
from evalstore.interfaces.html.case_table import CHANGES
from evalstore.results.growing_results import cell_of
from evalstore.workspace.digest_set import DigestMap

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalstore.comparison.comparison import Pair
    from evalstore.core.results import Result
    from evalstore.results.compare.diff_result import Diff
    from evalstore.results.growing_results import CellKey

_DIGESTS = 1 << 64
"""How many digests a `DigestMap` can tell apart."""


class ChangedPairs:
    """The pairs that changed, and the kind of each change, by the cell of the newer result."""

    def __init__(self, diff: Diff | None) -> None:
        self._numbers = DigestMap()
        """The number of each pair."""
        self._changes = bytearray()
        """The number of the change of each pair among `CHANGES`,"""
        self._was, self._now = array("l"), array("l")
        """and those of its results."""
        self._read: dict[CellKey, Pair] = {}
        if diff is None:
            return
        self._sides = diff.comparison.sides
        for change, name in enumerate(CHANGES):
            for old, new in getattr(diff.comparison, name).numbers():
                digest = self._sides.now.cell_digest(new) % _DIGESTS
                self._numbers.put(digest, len(self._changes))
                self._changes.append(change)
                self._was.append(old)
                self._now.append(new)

    def change(self, result: Result) -> str:
        """Return the kind of the change of a result; empty if it has not changed."""
        number = self._find(result)
        return "" if number is None else CHANGES[self._changes[number]]

    def read(self, results: Iterable[Result]) -> list[Pair]:
        """Read the pairs of these results for `pair`, and return those that changed."""
        found = [number for result in results if (number := self._find(result)) is not None]
        numbers = [(self._was[number], self._now[number]) for number in found]
        pairs = self._sides.read(numbers) if numbers else []
        self._read = {cell_of(pair.now): pair for pair in pairs if pair.now}
        return pairs

    def pair(self, result: Result) -> Pair | None:
        """Return the pair of one of the results that were read last; None if it is unchanged."""
        return self._read.get(cell_of(result))

    def _find(self, result: Result) -> int | None:
        return self._numbers.get(digest_of_cell(result) % _DIGESTS) if self._changes else None
