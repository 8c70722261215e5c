"""Finds the versions of cases in the newest runs, and compares those of a plan with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from evalstore.comparison.version_diff import Difference
from evalstore.core.runs import Run, RunCandidate, RunEvaluator, RunSources
from evalstore.core.values import RECORDED, Case, CaseFile, Json
from evalstore.planning.cells.cells import Cell
from evalstore.planning.project import Project
from evalstore.planning.reasons.path_history import pair_with_workspace
from evalstore.planning.reasons.source_changes import (
    SourceChanges,
    as_replaced,
    compare_sources,
    names_use,
)
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.store.run_sources import SourcesReader
from evalstore.store.trees.case_finder import CaseFinder, RowIndex
from evalstore.store.trees.path_trees import read_tree
from evalstore.workspace.source_digests import read_sources


class KnownCase(NamedTuple):
    """A case as it was in a run."""

    case: Case
    run: Run


_FEW_PROMPTS = 8
"""The most system prompts of a case that are searched without a set."""


class EarlierCases:
    """The cases of the newest runs, and the contents of their versions."""

    def __init__(self, project: Project) -> None:
        self.project = project
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
        self.versions = VersionReader(project.store, project.reading.contents, project.contents)
        self.find_version = self.versions.find
        self._earlier_sources = SourcesReader(project.store)
        self._sources: RunSources | None = None
        """The digests of the workspace, once they are needed."""
        self._prompts: dict[int, tuple[Case, Collection[str | None]]] = {}
        """By the `id()` of a case with many: the case, which keeps the id in use, and its
        prompts."""

    @cached_property
    def runs(self) -> list[Run]:
        """Return the newest runs, newest first."""
        return list(self.project.store.find_recent_runs())

    @cached_property
    def candidates(self) -> set[str]:
        """Return the ids of the candidates that took part in them."""
        return {each.id for run in self.runs for each in run.candidates}

    def _tree(self, root: str) -> dict[str, str]:
        """Return the entries of a snapshot."""
        if root not in self._trees:
            self._trees[root] = read_tree(root, self.project.store.load_nodes)
            missing = set(self._trees[root].values()) - self._files.keys()
            self._files |= self.project.store.find_case_files(list(missing))
        return self._trees[root]

    def expect(self, cells: Iterable[Cell]) -> None:
        """Prepare to find the cases of these cells, and forget those found before."""
        self._rows.clear()
        self._expected.clear()
        for cell in cells:
            self._expected.setdefault(cell.file, []).append(cell.case)

    def find(self, cell: Cell) -> Iterator[KnownCase]:
        """Yield the versions of a case in earlier runs, newest first."""
        return self._find(cell.file, cell.case)

    def _find(self, file: str, case: Case) -> Iterator[KnownCase]:
        """Yield them; runs with an equal test file and the same models are one."""
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
            for known in self._find(file, case)
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
            self._pairs[root] = pair_with_workspace(self.project, self._tree(root), self._files)
        return self._pairs[root].get(file)

    def with_true_names(
        self, differences: Iterable[Difference], known: KnownCase, file: str
    ) -> list[Difference]:
        """Return differences from an earlier run; what was not edited is not named as if it was."""
        listed = list(differences)
        if not any(map(names_use, listed)):
            return listed
        changes = self.changes_since(known, file)
        return [as_replaced(difference, changes) for difference in listed]

    def changes_since(self, known: KnownCase, file: str) -> SourceChanges | None:
        """Return whose bytes differ from those of an earlier run; None where it is not known."""
        was = self._earlier_sources.find(known.run)
        if was and self._sources is None:
            self._sources = read_sources(self.project.workspace, self.project.reading)
        path = self.path_in(known.run.snapshot, file)
        return compare_sources(was, self._sources, file, path)

    def prompts_of(self, case: Case) -> Collection[str | None]:
        """Return the system prompts of an earlier case, as a set when they are many."""
        if len(case.prompts) <= _FEW_PROMPTS:
            return case.prompts
        if id(case) not in self._prompts:
            self._prompts[id(case)] = case, frozenset(case.prompts)
        return self._prompts[id(case)][1]

    def asked_otherwise(self, known: KnownCase, cell: Cell) -> tuple[str, ...]:
        """Return which parts of what a cell asks are not those of an earlier run."""
        old, case = known.case, cell.case
        model = known.run.find_candidate(cell.candidate.id)
        temperature, now = case.temperature, case.temperature
        if model and not case.recorded:
            temperature = model.temperature if old.temperature is None else old.temperature
            now = cell.candidate.temperature if case.temperature is None else case.temperature
        parts = {
            "test": set(old.tests) != set(case.tests) or old.seed != case.seed,
            "system prompt": cell.prompt not in self.prompts_of(old),
            "recorded answer": old.recorded != case.recorded,
            f"model {cell.candidate.id}": bool(
                model and not case.recorded and model.model != cell.candidate.model
            ),
            "temperature": temperature != now,
        }
        return tuple(part for part, differs in parts.items() if differs)

    def has_asked(self, known: KnownCase, cell: Cell) -> bool:
        """Return whether an earlier run asked what a cell asks."""
        return takes_part(known, cell) and not self.asked_otherwise(known, cell)

    def evaluators_of(self, known: KnownCase) -> list[tuple[str, Json]]:
        """Return the evaluators of an earlier run for its case: the name and content of each."""
        stored = [
            (each.id, self.find_version("evaluator", each.evaluator) or {})
            for each in known.run.evaluators
        ]
        return [
            (name, {**content, "prompt": prompt})
            for name, content in stored
            for prompt in known.case.judge_prompts or (content.get("prompt"),)
        ]


def takes_part(known: KnownCase, cell: Cell) -> bool:
    """Return whether the candidate of a cell took part in an earlier run."""
    return cell.candidate.id == RECORDED or known.run.find_candidate(cell.candidate.id) is not None
