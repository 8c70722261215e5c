"""Results that are added one by one, of which many are in a temporary file."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

from evalstore.comparison.pair_groups import unpack_result
from evalstore.core.hashing import digest_of_value
from evalstore.core.values import CellKey, Result
from evalstore.files.temporary_list import PackedSequence


class GrowingResults(PackedSequence["Result"]):
    """A list of results in the order in which they were added."""

    def __init__(self) -> None:
        super().__init__((), tuple, unpack_result)
        self.cells = array("Q")
        """A digest of the cell of each."""

    def append(self, result: Result) -> None:
        """Add a result."""
        self.cells.append(digest_of_value(result.cell))
        self.extend([result])


class CellMarks:
    """A word for each cell that has results in one of several lists; the last such list counts."""

    def __init__(self, lists: Iterable[tuple[str, GrowingResults]] = ()) -> None:
        self._words = {digest: word for word, results in lists for digest in results.cells}
        """By the digests of the cells."""

    def put(self, cell: CellKey, word: str) -> None:
        """Set the word of a cell."""
        self._words[digest_of_value(cell)] = word

    def of(self, cell: CellKey) -> str:
        """Return the word of a cell; empty for others."""
        return self._words.get(digest_of_value(cell), "")
