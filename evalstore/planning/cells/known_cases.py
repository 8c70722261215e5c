"""Finds the versions that a case had in the newest runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from evalstore.core.runs import Run, RunCandidate, RunEvaluator
from evalstore.core.values import Case, CaseFile
from evalstore.planning.cells.cells import Cell
from evalstore.planning.cells.row_index import RowIndex
from evalstore.planning.project import Project
from evalstore.planning.reasons.renames import pair_with_workspace
from evalstore.store.trees.case_finder import CaseFinder
from evalstore.store.trees.path_trees import read_tree


class KnownCase(NamedTuple):
    """A case as it was in a run."""

    case: Case
    run: Run


class KnownCases:
    """The cases of the newest runs."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._runs: list[Run] | None = None
        self._candidates: set[str] | None = None
        self._trees: dict[str, dict[str, str]] = {}
        self._pairs: dict[str, dict[str, str]] = {}
        """The path that each test file had, by snapshot."""
        self._files: dict[str, CaseFile] = {}
        """By node."""
        self._finder = CaseFinder(project.store)
        self._rows: dict[str, RowIndex] = {}
        """By node, of files that were searched."""
        self._expected: dict[str, list[Case]] = {}
        """By test file, of the batch that is searched now."""

    @property
    def runs(self) -> list[Run]:
        """Return the newest runs, newest first."""
        if self._runs is None:
            self._runs = list(self._project.store.find_recent_runs())
        return self._runs

    def ever_had(self, candidate: str) -> bool:
        """Return whether a candidate took part in one of the newest runs."""
        if self._candidates is None:
            self._candidates = {each.id for run in self.runs for each in run.candidates}
        return candidate in self._candidates

    def _tree(self, root: str) -> dict[str, str]:
        """Return the entries of a snapshot."""
        if root not in self._trees:
            self._trees[root] = read_tree(root, self._project.store.load_nodes)
            missing = set(self._trees[root].values()) - self._files.keys()
            self._files |= self._project.store.find_case_files(list(missing))
        return self._trees[root]

    def expect(self, cells: Iterable[Cell]) -> None:
        """Prepare to find the cases of these cells, and forget those found before."""
        self._rows.clear()
        self._expected.clear()
        for cell in cells:
            self._expected.setdefault(cell.file, []).append(cell.case)

    def find(self, file: str, case: Case) -> Iterator[KnownCase]:
        """Yield the versions of a case in earlier runs, newest first.

        Runs with an equal test file and the same models are one.
        """
        seen: set[tuple[str, tuple[RunCandidate, ...], tuple[RunEvaluator, ...]]] = set()
        for run in self.runs:
            path = self.path_in(run.snapshot, file)
            node = self._tree(run.snapshot)[path] if path else None
            if node is None or (node, run.candidates, run.evaluators) in seen:
                continue
            seen.add((node, run.candidates, run.evaluators))
            rows = self._rows_of(node, file)
            old = rows.find(case) if rows else None
            if old:
                yield KnownCase(old, run)

    def has(self, file: str, case: Case) -> bool:
        """Return whether an earlier run had a case of a file as it is now."""
        return any(
            known.case.evaluation == case.evaluation
            and known.case.recorded == case.recorded
            and set(case.tests) == set(known.case.tests)
            and set(case.prompts) == set(known.case.prompts)
            for known in self.find(file, case)
        )

    def _rows_of(self, node: str, file: str) -> RowIndex | None:
        """Return the rows of a stored test file; None when the store does not have it."""
        if node not in self._rows and node in self._files:
            self._rows[node] = RowIndex(self._files[node], self._finder)
            self._rows[node].expect(self._expected.get(file, ()))
        return self._rows.get(node)

    def path_in(self, root: str, file: str) -> str | None:
        """Return the path of a test file in a snapshot; None when it is not there."""
        if root not in self._pairs:
            self._pairs[root] = pair_with_workspace(self._project, self._tree(root), self._files)
        return self._pairs[root].get(file)
