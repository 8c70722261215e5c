"""Compares the cases of a plan with those of earlier runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.planning.known_cases import KnownCase, KnownCases
from evalstore.planning.version_reader import VersionReader
from evalstore.values import RECORDED, Case, Json

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from evalstore.planning.cells import Cell
    from evalstore.planning.project import Project

_FEW_PROMPTS = 8
"""The most system prompts of a case that are searched without a set."""


class EarlierCases:
    """The cases of earlier runs, and the contents of their versions."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.known = KnownCases(project)
        self.versions = VersionReader(project.store, project.reading.contents, project.contents)
        self.find_version = self.versions.find
        self._prompts: dict[int, tuple[Case, Collection[str | None]]] = {}
        """By the `id()` of a case with many: the case, which keeps the id in use, and its
        prompts."""

    def find(self, cell: Cell) -> Iterator[KnownCase]:
        """Yield the versions of a case in earlier runs, newest first."""
        return self.known.find(cell.file, cell.case)

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
