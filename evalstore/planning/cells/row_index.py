"""An index of the rows of a stored test file."""

from __future__ import annotations

from collections.abc import Iterable

from evalstore.core.values import Case, CaseFile
from evalstore.store.trees.case_files import StoredCases
from evalstore.store.trees.case_finder import CaseFinder


class RowIndex:
    """Finds rows of a test file; of a long one that is stored few cases are read."""

    def __init__(self, file: CaseFile, finder: CaseFinder | None = None) -> None:
        """Without `finder`, which knows what is stored, all cases are read."""
        self._file = file
        self._finder = finder if isinstance(file.cases, StoredCases) else None
        self._names: set[str] = set()
        """Those that a long file was searched for."""
        self._by_key: dict[str, Case] = {}
        self._by_row: dict[str, Case] = {}
        if self._finder is None:
            self._add(file.cases)

    def _add(self, cases: Iterable[Case]) -> None:
        for case in cases:  # of equal rows the first counts
            self._by_key.setdefault(case.key, case)
            self._by_row.setdefault(case.row, case)

    def expect(self, cases: Iterable[Case]) -> None:
        """Read the rows for which `find` will be called, and forget those read before."""
        if self._finder:
            self._names = {name for case in cases for name in (case.key, case.row)}
            self._by_key, self._by_row = {}, {}
            self._add(self._finder.find(self._file, self._names))

    def find(self, case: Case) -> Case | None:
        """Return the case with the same values, else with the same label, else the only case."""
        if self._finder and not self._names.issuperset((case.key, case.row)):
            self.expect([case])
        found = self._by_key.get(case.key) or self._by_row.get(case.row)
        if found is None and not case.row and len(self._file.cases) == 1:
            return self._file.cases[0]
        return found
