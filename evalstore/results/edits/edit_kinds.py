"""Lists of the edits of test files, of which many are in temporary files."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import starmap
from typing import Any

from evalstore.comparison.version_diff import Difference
from evalstore.core.display import plural
from evalstore.files.filed_sequence import FiledSequence, keep_values
from evalstore.files.temporary_list import TemporaryList
from evalstore.workspace.digest_set import DigestMap, DigestSet, digest_of_value


class EditKinds(FiledSequence[Difference]):
    """The first difference of each kind in the rows of a file, then differences besides these.

    Of each, some bytes are in memory.
    """

    def __init__(self, cases: int) -> None:
        """`cases` are how many the file has."""
        self._cases = cases
        self._numbers = DigestMap()
        """The number of each kind, by its subject."""
        self._firsts = TemporaryList()
        """The first difference of each kind, and its row."""
        self._digests = array("Q")
        """Those of the first differences."""
        self._rows = array("L")
        """How many rows have a difference of each kind."""
        self._differ = bytearray()
        """1 where not all of these have the same values."""

    def add(self, difference: Difference, row: str) -> None:
        """Add a difference of a row."""
        digest, next_number = digest_of_value(difference), len(self._digests)
        number = self._numbers.add(digest_of_value(difference.subject), next_number)
        if number == next_number:
            self._digests.append(digest)
            self._file(difference, row)
            return
        self._rows[number] += 1
        if self._digests[number] != digest:
            self._differ[number] = 1

    def append(self, difference: Difference) -> None:
        """Add a difference besides those of rows, unless one of these is of its kind."""
        if self._numbers.get(digest_of_value(difference.subject)) is None:
            self._file(difference, "")

    def _file(self, difference: Difference, row: str) -> None:
        self._rows.append(1)
        self._differ.append(0)
        self._firsts.append((*_pack(difference), row))

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Difference]:
        return map(self._named, self._firsts, self._rows, self._differ)

    def read_one(self, number: int) -> Difference:
        """Return the difference with a number."""
        return self._named(self._firsts[number], self._rows[number], self._differ[number])

    def _named(self, values: Sequence[Any], rows: int, differ: int) -> Difference:
        """Return a difference; with its row, if other rows have other values or none at all."""
        *fields, row = values
        difference = Difference(*fields)
        is_alone = rows == 1 < self._cases and not difference.subject.startswith("row ")
        if not row or not (differ or is_alone):
            return difference
        others = "" if is_alone else f" and {plural(rows - 1, 'other row')}"
        return replace(difference, subject=f"{difference.subject} in [{row}]{others}")


class DistinctEdits(FiledSequence[Difference]):
    """Differences in the order in which they were added, each once."""

    def __init__(self) -> None:
        self._known = DigestSet()
        self._edits = TemporaryList()

    def add(self, difference: Difference) -> None:
        """Add a difference, unless it is known."""
        if self._known.add(digest_of_value(difference)):
            self._edits.append(_pack(difference))

    def __len__(self) -> int:
        return len(self._edits)

    def __iter__(self) -> Iterator[Difference]:
        return starmap(Difference, self._edits)

    def read_one(self, number: int) -> Difference:
        """Return the difference with a number."""
        return Difference(*self._edits[number])


def keep_differences(differences: Iterable[Difference]) -> Sequence[Difference]:
    """Return differences as a list, or if there are many in a temporary file."""
    return keep_values(differences, _pack, lambda values: Difference(*values))


def _pack(difference: Difference) -> tuple[str, str | None, str | None]:
    return difference.subject, difference.was, difference.now
