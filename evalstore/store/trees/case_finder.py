"""Finds cases of test files by name, reading few of the cases of a very long file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from evalstore.core.deserialize import MODELS
from evalstore.core.values import Case, CaseFile
from evalstore.store import Store
from evalstore.store.trees.case_files import StoredCases


class CaseTraits(NamedTuple):
    """What at least one of some cases has."""

    judged_by_models: bool
    default_temperature: bool
    """The temperature of the candidate, as it sets none."""


class CaseFinder:
    """Finds cases by their names: their keys and their labels."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def find(self, file: CaseFile, names: Collection[str]) -> Iterator[Case]:
        """Yield the cases of a file that have one of these names, in their order."""
        cases: Iterable[Case] = file.cases
        if isinstance(file.cases, StoredCases):
            named = self.store.find_named_leaves(names)
            cases = file.cases.read(
                each for each in file.cases.smallest_parts() if each.node in named
            )
        for case in cases:
            if case.key in names or case.row in names:
                yield case

    def find_traits(self, file: CaseFile) -> CaseTraits:
        """Return what some of the cases of a file have."""
        if not isinstance(file.cases, StoredCases):
            traits = [("models" in case.judged_by, case.temperature is None) for case in file.cases]
        else:
            nodes = (part.node for part in file.cases.smallest_parts())
            traits = [
                ("models" in kind.get("judgedBy", MODELS), kind.get("temperature") is None)
                for kind in self.store.find_kinds(nodes)
            ]
        return (
            CaseTraits(*map(any, zip(*traits, strict=True))) if traits else CaseTraits(False, False)
        )


# --- the rows of one stored test file


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
