"""Selects results of a run by a query of the settings, and the evaluators that count for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.core.side_names import side_name
from evalstore.files.fields import suggest
from evalstore.planning.selection import suits
from evalstore.workspace.settings.settings import QueryModel

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.core.values import Case
    from evalstore.planning.project import Project
    from evalstore.workspace.settings.settings import AnalysisQuery

_ARTICLES = {"candidate": "a", "evaluator": "an"}


class Filter:
    """A query for the results of one run; without a query it accepts everything."""

    def __init__(self, project: Project, run: Run, query: AnalysisQuery | None) -> None:
        """Raise `EvalstoreError` for an unknown model or system prompt."""
        self._query = query
        self._run = run.id
        self._temperatures = {candidate.id: candidate.temperature for candidate in run.candidates}
        self._prompts = _find_prompts(project, query.system_prompts) if query else set()
        if query:
            self._require(query.candidates, self._temperatures, "candidate")
        self._evaluators = self._find_evaluators(project, run)

    @property
    def is_about_votes(self) -> bool:
        """Return whether verdicts must be computed again from some of the judgements."""
        return self._evaluators is not None

    def evaluator(self, id: str) -> bool:
        """Return whether the judgements of this evaluator count."""
        return self._evaluators is None or id in self._evaluators

    def __call__(self, result: Result, case: Case) -> bool:
        """Return whether a result counts."""
        query = self._query
        if query is None:
            return True
        return (
            suits(case, query.required_tags1, query.prohibited_tags)
            and suits(case, query.required_tags2, ())
            and (not query.system_prompts or result.prompt in self._prompts)
            and self._is_chosen(query, result, case)
        )

    def _is_chosen(self, query: AnalysisQuery, result: Result, case: Case) -> bool:
        default = self._temperatures.get(result.model)
        temperature = default if case.temperature is None else case.temperature
        if query.candidates_temperature not in (None, temperature):
            return False
        return not query.candidates or any(
            _names(candidate, result.model) and candidate.temperature in (None, temperature)
            for candidate in query.candidates
        )

    def _find_evaluators(self, project: Project, run: Run) -> set[str] | None:
        """Return the ids of the evaluators that count; None if all count."""
        query = self._query
        if query is None or (not query.evaluators and query.evaluators_temperature is None):
            return None
        evaluators = project.store.load_all("evaluator")
        models: dict[str, set[str]] = {}
        for evaluator in run.evaluators:
            models.setdefault(evaluator.id, set()).add(
                evaluators.get(evaluator.evaluator, {}).get("model")
            )
        self._require(query.evaluators, models, "evaluator")
        chosen = [
            (
                {model for name in models if _names(evaluator, name) for model in models[name]},
                evaluator,
            )
            for evaluator in query.evaluators
        ]
        everyone = {model for versions in models.values() for model in versions}
        chosen = chosen or [(everyone, QueryModel(""))]
        return {
            id
            for id, content in evaluators.items()
            if query.evaluators_temperature in (None, content.get("temperature"))
            and any(
                content.get("model") in versions
                and by.temperature in (None, content.get("temperature"))
                for versions, by in chosen
            )
        }

    def _require(self, chosen: Sequence[QueryModel], names: Iterable[str], kind: str) -> None:
        names = list(names)
        for model in chosen:
            if not any(_names(model, name) for name in names):
                raise EvalstoreError(
                    f"'{model.id}' is not {_ARTICLES[kind]} {kind} of {side_name(self._run)}",
                    hint=suggest(model.id, names, f"{kind}s"),
                )


def _names(chosen: QueryModel, model: str) -> bool:
    """Return whether a query selects a model, also under a name with a temperature."""
    return model == chosen.id or model.startswith(f"{chosen.id}@")


def _find_prompts(project: Project, names: Sequence[str]) -> set[str]:
    """Return the ids of the current prompt versions with these names."""
    versions = project.reading.names.get("prompts", {})
    for name in names:
        if name not in versions:
            raise EvalstoreError(
                f"unknown system prompt '{name}'", hint=suggest(name, versions, "prompts")
            )
    return {id for name in names for id in versions[name]}
