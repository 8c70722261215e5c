"""Finds the candidate of a recorded answer, so that a later run asks the same one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import Case, Json
from evalstore.exchange.imports.row_lookup import NotPlacedError
from evalstore.planning.cells.cells import Candidate, ask_of
from evalstore.planning.options import SelectionOptions
from evalstore.planning.selection import suits
from evalstore.workspace.settings.settings import name_at

if TYPE_CHECKING:
    from evalstore.exchange.importers.base import JudgedAnswer
    from evalstore.planning.project import Project


class CandidateFinder:
    """Finds the candidates of recorded answers by model and temperature."""

    def __init__(
        self,
        project: Project,
        suggested: Sequence[Mapping[str, Json]],
        temperatures: dict[str, list[float]],
    ) -> None:
        """Collect in `temperatures` those that no candidate has, by model."""
        self._project = project
        self._suggested = suggested
        self._temperatures = temperatures
        self._candidates: dict[str, list[Candidate] | str] = {}

    def find(self, first: JudgedAnswer, case: Case) -> Candidate:
        """Return the candidate with the model and the temperature, else a new one."""
        if first.model not in self._candidates:
            try:
                self._candidates[first.model] = self._candidates_of(first.model)
            except EvalstoreError as problem:
                self._candidates[first.model] = f"{problem}; write a model file with this id"
        candidates = self._candidates[first.model]
        if isinstance(candidates, str):
            raise NotPlacedError(candidates)
        fitting = [
            candidate
            for candidate in candidates
            if first.temperature is None or asks_at(candidate, case) == first.temperature
        ]
        meant = [
            candidate
            for candidate in fitting
            if suits(case, candidate.required_tags, candidate.prohibited_tags)
        ] or fitting
        if meant:
            return meant[0]
        assert first.temperature is not None
        is_suggested = any(
            (suggestion["id"], self._temperature_of(suggestion)) == (first.model, first.temperature)
            for suggestion in self._suggested
        )
        counts = first.messages is None and case.temperature is None
        if counts and not is_suggested:
            listed = self._temperatures.setdefault(first.model, [])
            if first.temperature not in listed:
                listed.append(first.temperature)
        name = name_at(first.model, first.temperature)
        return Candidate(name, candidates[0].model, first.temperature)

    def _candidates_of(self, model: str) -> list[Candidate]:
        """Return the candidates with a model: of the settings, else suggested by the import."""
        candidates = self._project.candidates(SelectionOptions(models=(model,)))
        suggested = [suggestion for suggestion in self._suggested if suggestion["id"] == model]
        if not suggested or any(
            candidate.id == model for candidate in self._project.settings.candidates
        ):
            return candidates
        temperatures = [self._temperature_of(suggestion) for suggestion in suggested]
        return [
            Candidate(
                name_at(model, temperature) if number else model,
                candidates[0].model,
                temperature,
                required_tags=tuple(suggestion.get("requiredTags", ())),
                prohibited_tags=tuple(suggestion.get("prohibitedTags", ())),
            )
            for number, (suggestion, temperature) in enumerate(
                zip(suggested, temperatures, strict=True)
            )
        ]

    def _temperature_of(self, suggested: Mapping[str, Json]) -> float | None:
        default = self._project.settings.candidates_temperature
        value = suggested.get("temperature", default)
        return None if value is None else float(value)


def asks_at(candidate: Candidate, case: Case) -> float | None:
    """Return the temperature at which a candidate is asked for a case."""
    return ask_of(case, None, candidate).temperature
