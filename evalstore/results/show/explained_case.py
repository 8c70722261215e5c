"""Finds the result that `show FILE::ROW` explains."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.core.values import RECORDED, URGENCY
from evalstore.files.fields import suggest
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.results.answer.verdict_explanation import (
    VerdictExplanation,
    explain_stored_result,
    explain_workspace_result,
    workspace_results,
)
from evalstore.results.planned_work import find_edit_of, find_planned_work
from evalstore.results.prompt_names import find_prompt, name_prompts
from evalstore.results.show.chosen_results import CasePrompts, ChosenResults, FoundResult
from evalstore.results.show.newest_results import find_newest_results
from evalstore.store.revisions import WORK

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.planning.options import Location
    from evalstore.results.case_reference import CaseReference
    from evalstore.results.show.chosen_results import ListedResults, Pair
    from evalstore.results.show.newest_results import NewestResults
    from evalstore.store import Store


class SeveralCasesError(EvalstoreError):
    """The name of a case is that of a test file with several cases."""

    def __init__(
        self, case: str, results: ChosenResults, newest: NewestResults | None = None
    ) -> None:
        """Name the file and up to three of its cases.

        `newest` are the results of stored runs, from which these are; else from the workspace.
        """
        places, count = results.first, results.cases
        listed = [shlex.quote(f"{file}::{row}") for file, row in places[:3]]
        more = ", …" if len(places) > 3 else ""
        super().__init__(f"'{case}' has {count} cases", hint=f"name one: {', '.join(listed)}{more}")
        self.newest, self._case, self._results = newest, case, results
        self.file, _ = places[0]

    def select(self, location: Location, model: str | None, prompt: str | None) -> ListedResults:
        """Return the results of a candidate and of a system prompt; call it once.

        Raises `EvalstoreError` when there are none.
        """
        pairs = _select_pairs(location, self._case, self._results.pairs, model, prompt)
        return self._results.choose(pairs)


def explain_case(
    location: Location,
    reference: CaseReference,
    model: str | None = None,
    prompt: str | None = None,
) -> VerdictExplanation:
    """Explain a case: the most urgent of its results in a run.

    Without a revision each result is that of the newest run that has it, and results of models
    that are candidates now are preferred; `@work` is the workspace. `model` names a candidate, and
    `prompt` a system prompt by its name or the first digits of its id. Raises `EvalstoreError`
    if the case does not exist or has no result.
    """
    case, revision = reference.case, reference.revision
    prompt = prompt or reference.prompt
    if revision == WORK:
        return _explain_now(location, case, model, prompt)
    with open_store(location) as store:
        newest = _find_single_case(location, store, case, revision, model)
        cells = newest.results
        former = frozenset() if revision else _former_candidates(location, cells)
        preferred = [] if model else [cell for cell in cells if cell.model not in former]
        result = _choose(location, case, preferred or cells, model, prompt)
        explanation = explain_stored_result(
            location, store, result, newest.runs[result], cells=cells
        )
    if revision:
        return replace(explanation, former=former)
    planned, edit = find_planned_work(location, result), find_edit_of(location, result)
    return replace(explanation, former=former, planned=planned, edit=edit)


def _former_candidates(location: Location, cells: Iterable[Result]) -> frozenset[str]:
    """Return the models of these results that are not candidates of the workspace now."""
    candidates = open_workspace(location).settings.candidates
    current = {candidate.name or candidate.id for candidate in candidates}
    return frozenset({cell.model for cell in cells} - current - {RECORDED})


def find_case(location: Location, case: str, revision: str | None = None) -> tuple[Run, Result]:
    """Return the most urgent result of a case, and its run, as `explain_case` finds them."""
    with open_store(location) as store:
        newest = _find_single_case(location, store, case, revision)
        result = _choose(location, case, newest.results, None, None)
        return newest.runs[result], result


def _find_single_case(
    location: Location, store: Store, case: str, revision: str | None, model: str | None = None
) -> NewestResults:
    newest = find_newest_results(location, store, case, revision, model=model)
    if newest.several:
        raise SeveralCasesError(case, newest.several, newest)
    return newest


def _explain_now(
    location: Location, case: str, model: str | None, prompt: str | None
) -> VerdictExplanation:
    with open_project(location) as project:
        (target,) = project.targets((case,))
        cells: list[Result] = []
        left = workspace_results(project, target.path, target.row)
        for cell in left:
            if cells and cell.row != cells[0].row:
                found = (FoundResult(each, WORK, 0) for each in chain(cells, [cell], left))
                raise SeveralCasesError(case, ChosenResults(target.path, found, CasePrompts()))
            cells.append(cell)
        result = _choose(location, case, cells, model, prompt)
        return explain_workspace_result(project, result, cells)


def _choose(
    location: Location, case: str, cells: Sequence[Result], model: str | None, prompt: str | None
) -> Result:
    """Return the most urgent of the results that the options leave; raises `EvalstoreError`."""
    left = _select(location, case, cells, model, prompt)
    return min(left, key=lambda cell: URGENCY.index(cell.word or "answered"))


def _select(
    location: Location, case: str, cells: Sequence[Result], model: str | None, prompt: str | None
) -> list[Result]:
    """Return the results that the options leave; raises `EvalstoreError` when there are none."""
    pairs = _select_pairs(location, case, dict.fromkeys(map(_pair, cells)), model, prompt)
    return [cell for cell in cells if _pair(cell) in pairs]


def _select_pairs(
    location: Location,
    case: str,
    pairs: Collection[Pair],
    model: str | None,
    prompt: str | None,
) -> set[Pair]:
    """Return the candidates and system prompts that the options leave, as `_select` does."""
    left = {*pairs}
    if model is not None:
        left = {pair for pair in left if pair[0] == model}
        if not left:
            models = sorted({known for known, _ in pairs})
            raise EvalstoreError(
                f"'{model}' has no result of '{case}'", hint=suggest(model, models, "candidates")
            )
    if prompt is not None:
        ids = dict.fromkeys(id for known, id in pairs if model in (None, known))
        id = find_prompt(name_prompts(location, [*ids]), prompt)
        left = {pair for pair in left if pair[1] == id}
    if not left:
        raise EvalstoreError(f"'{case}' has no result", hint="'evalstore run' asks for answers")
    return left


def _pair(result: Result) -> Pair:
    return result.model, result.prompt
