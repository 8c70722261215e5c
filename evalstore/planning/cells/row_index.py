"""An index of the rows of a stored test file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.store.trees.case_files import StoredCases
from evalstore.workspace.digest_set import DigestMap, digest_of_value

if TYPE_CHECKING:
    from evalstore.core.values import Case, CaseFile


class RowIndex:
    """Finds rows of a stored test file; of the names of many rows it keeps digests."""

    def __init__(self, file: CaseFile) -> None:
        self._cases = file.cases
        self._by_key: dict[str, int] | _Names = {}
        self._by_row: dict[str, int] | _Names = {}
        if isinstance(file.cases, StoredCases):
            self._by_key, self._by_row = _Names(), _Names()
        for number, case in enumerate(file.cases):  # of equal rows the first counts
            self._by_key.setdefault(case.key, number)
            self._by_row.setdefault(case.row, number)

    def find(self, case: Case) -> Case | None:
        """Return the case with the same values, else with the same label, else the only case."""
        number = self._by_key.get(case.key)
        if number is None:
            number = self._by_row.get(case.row)
        if number is None and len(self._cases) == 1 and not case.row:
            number = 0
        return None if number is None else self._cases[number]


class _Names:
    """The numbers of rows by their names, of which only digests are kept."""

    def __init__(self) -> None:
        self._numbers = DigestMap()

    def setdefault(self, name: str, number: int) -> int:
        """Add the number of a name, unless it has one; returns the number that it has."""
        return self._numbers.add(digest_of_value(name), number)

    def get(self, name: str) -> int | None:
        """Return the number of a name; None if it has none."""
        return self._numbers.get(digest_of_value(name))
