"""Compares the cases of a plan with those of earlier runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from evalstore.comparison.version_diff import Difference
from evalstore.core.runs import RunSources
from evalstore.core.values import RECORDED, Case, Json
from evalstore.planning.cells.cells import Cell
from evalstore.planning.cells.known_cases import KnownCase, KnownCases
from evalstore.planning.project import Project
from evalstore.planning.reasons.source_changes import (
    SourceChanges,
    as_replaced,
    compare_sources,
    names_use,
)
from evalstore.planning.reasons.version_reader import VersionReader
from evalstore.store.run_sources import SourcesReader
from evalstore.workspace.source_digests import read_sources

_FEW_PROMPTS = 8
"""The most system prompts of a case that are searched without a set."""


class EarlierCases:
    """The cases of earlier runs, and the contents of their versions."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.known = KnownCases(project)
        self.versions = VersionReader(project.store, project.reading.contents, project.contents)
        self.find_version = self.versions.find
        self._earlier_sources = SourcesReader(project.store)
        self._sources: RunSources | None = None
        """The digests of the workspace, once they are needed."""
        self._prompts: dict[int, tuple[Case, Collection[str | None]]] = {}
        """By the `id()` of a case with many: the case, which keeps the id in use, and its
        prompts."""

    def find(self, cell: Cell) -> Iterator[KnownCase]:
        """Yield the versions of a case in earlier runs, newest first."""
        return self.known.find(cell.file, cell.case)

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
        path = self.known.path_in(known.run.snapshot, file)
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
