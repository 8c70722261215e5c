"""Finds how a result of the page changed, and the pair that it is in, without keeping the pairs."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from evalstore.html_report.case_table import CHANGES
from evalstore.operations.growing_results import cell_of
from evalstore.workspace.digest_set import DigestMap, digest_of_value

if TYPE_CHECKING:
    from evalstore.operations.diff_result import Diff
    from evalstore.reports.comparison import Pair
    from evalstore.results import Result


class ChangedPairs:
    """The pairs of a comparison that changed, by the cell of the newer result.

    Of each a few bytes are in memory; those in files are read quickly in their order.
    """

    def __init__(self, diff: Diff | None) -> None:
        """Without a comparison nothing has changed."""
        self._groups = [getattr(diff.comparison, change) for change in CHANGES] if diff else []
        self._starts: list[int] = []
        """The number of the first pair of each group."""
        self._numbers = DigestMap()
        number = 0
        for group in self._groups:
            self._starts.append(number)
            for pair in group:
                if pair.now:
                    self._numbers.put(digest_of_value(cell_of(pair.now)), number)
                number += 1

    def change_of(self, result: Result) -> str:
        """Return how a result changed; empty if it did not."""
        number = self._numbers.get(digest_of_value(cell_of(result)))
        return "" if number is None else CHANGES[self._group_of(number)]

    def find(self, result: Result) -> Pair | None:
        """Return the pair of a result that changed; None for others."""
        number = self._numbers.get(digest_of_value(cell_of(result)))
        if number is None:
            return None
        group = self._group_of(number)
        pair: Pair = self._groups[group][number - self._starts[group]]
        return pair

    def _group_of(self, number: int) -> int:
        return bisect_right(self._starts, number) - 1
