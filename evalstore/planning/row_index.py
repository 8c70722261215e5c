"""An index of the rows of a stored test file."""

from __future__ import annotations

from evalstore.values import Case, CaseFile


class RowIndex:
    """Finds rows of a stored test file."""

    def __init__(self, file: CaseFile) -> None:
        self._cases = file.cases
        self._by_key: dict[str, int] = {}
        self._by_row: dict[str, int] = {}
        for number, case in enumerate(file.cases):  # of equal rows the first counts
            self._by_key.setdefault(case.key, number)
            self._by_row.setdefault(case.row, number)

    def find(self, case: Case) -> Case | None:
        """Return the case with the same values, else with the same label, else the only case."""
        number = self._by_key.get(case.key, self._by_row.get(case.row))
        if number is None and len(self._cases) == 1 and not case.row:
            number = 0
        return None if number is None else self._cases[number]
