"""Finds the result that `show FILE::ROW` explains."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError, RevisionError
from evalstore.files.fields import suggest
from evalstore.operations.prompt_names import find_prompt, name_prompts
from evalstore.operations.show import find_test_file
from evalstore.operations.views.planned_work import find_planned_work
from evalstore.operations.views.verdict_explanation import (
    VerdictExplanation,
    explain_stored_result,
    explain_workspace_result,
    workspace_results,
)
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.path_history import follow_file
from evalstore.planning.path_targets import find_targets, split_case
from evalstore.store.path_trees import find_entry, read_tree
from evalstore.store.results import iterate_entries, results_of
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.runs import RUNS_SEARCHED
from evalstore.values import RECORDED, URGENCY

if TYPE_CHECKING:
    from evalstore.operations.views.case_reference import CaseReference
    from evalstore.planning.options import Location
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store


class SeveralCasesError(EvalstoreError):
    """The name of a case is that of a test file with several cases."""

    def __init__(self, case: str, results: Sequence[Result], run: Run | None) -> None:
        """Name the file, up to three of its cases, and the run (None: the workspace)."""
        places = list(dict.fromkeys((result.file, result.row) for result in results))
        listed = [shlex.quote(f"{file}::{row}") for file, row in places[:3]]
        more = ", …" if len(places) > 3 else ""
        super().__init__(
            f"'{case}' has {len(places)} cases", hint=f"name one: {', '.join(listed)}{more}"
        )
        self.case, self.results, self.run = case, results, run
        self.file, _ = places[0]

    def select(self, location: Location, model: str | None, prompt: str | None) -> list[Result]:
        """Return the results of a candidate and of a system prompt.

        Raises `EvalstoreError` when there are none.
        """
        return _select(location, self.case, self.results, model, prompt)


def explain_case(
    location: Location,
    reference: CaseReference,
    model: str | None = None,
    prompt: str | None = None,
) -> VerdictExplanation:
    """Explain a case: the most urgent of its results in a run.

    Without a revision it is the newest run that has a result of the case, and results of models
    that are candidates now are preferred; `@work` is the workspace. `model` names a candidate, and
    `prompt` a system prompt by its name or the first digits of its id. Raises `EvalstoreError`
    if the case does not exist or has no result.
    """
    case, revision = reference.case, reference.revision
    prompt = prompt or reference.prompt
    if revision == WORK:
        return _explain_now(location, case, model, prompt)
    with open_store(location) as store:
        run, cells = _find_cells(location, store, case, revision)
        former = frozenset() if revision else _former_candidates(location, cells)
        preferred = [] if model else [cell for cell in cells if cell.model not in former]
        result = _choose(location, case, preferred or cells, model, prompt)
        explanation = explain_stored_result(location, store, result, run)
    planned = None if revision else find_planned_work(location, result)
    return replace(explanation, former=former, planned=planned)


def _former_candidates(location: Location, cells: Iterable[Result]) -> frozenset[str]:
    """Return the models of these results that are not candidates of the workspace now."""
    candidates = open_workspace(location).settings.candidates
    current = {candidate.name or candidate.id for candidate in candidates}
    return frozenset({cell.model for cell in cells} - current - {RECORDED})


def find_case(location: Location, case: str, revision: str | None = None) -> tuple[Run, Result]:
    """Return the most urgent result of a case, and its run, as `explain_case` finds them."""
    with open_store(location) as store:
        run, cells = _find_cells(location, store, case, revision)
        return run, _choose(location, case, cells, None, None)


def _explain_now(
    location: Location, case: str, model: str | None, prompt: str | None
) -> VerdictExplanation:
    with open_project(location) as project:
        (target,) = project.targets((case,))
        cells = workspace_results(project, target.path, target.row)
        _require_single_case(case, cells, None)
        result = _choose(location, case, cells, model, prompt)
        return explain_workspace_result(project, result, cells)


def _find_cells(
    location: Location, store: Store, case: str, revision: str | None
) -> tuple[Run, list[Result]]:
    """Return the run in which a case is explained, and all its results there."""
    newest = resolve_run(store, revision or "@")
    file, row = _find_place(location, store, newest, case)
    runs = [newest]
    if revision is None:
        runs += store.find_recent_runs(before=newest, limit=RUNS_SEARCHED)
    folder = open_workspace(location).settings.paths["tests"]
    for run, (path, node) in zip(runs, follow_file(store, runs, file, folder), strict=False):
        if node is None:  # the file was absent, or its path was that of another file
            continue
        leaf = find_entry([run.results], path, store.load_nodes).get(run.results)
        if leaf is None:
            continue
        rows = None if row is None else {row}
        cells = _read(store, path, leaf, rows)
        if cells:
            _require_single_case(case, cells, run)
            return run, cells
    where = f"run {newest.id[:8]}" if revision else f"the newest {len(runs)} runs"
    raise RevisionError(
        f"'{case}' has no result in {where}",
        hint="'evalstore run' asks for answers; '@work:FILE::ROW' shows the workspace",
    )


def _read(store: Store, path: str, leaf: str, rows: set[str] | None) -> list[Result]:
    if rows is not None:
        return results_of(store, path, {leaf: rows})[leaf]
    return [cell for batch in iterate_entries(store, {path: leaf}) for cell, _ in batch]


def _find_place(location: Location, store: Store, run: Run, case: str) -> tuple[str, str | None]:
    """Return the path and the row of a case in a run; the row is None if only the file is named."""
    workspace = open_workspace(location)
    nodes = read_tree(run.snapshot, store.load_nodes)
    name, row = split_case(case)
    if row is None and "[" in case:
        name, row = case.split(" [", 1)[0], case
    file = find_test_file(location, workspace, nodes, name, run.id)
    files = store.load_case_files([nodes[file]])
    named = file + case[len(name) :] if row else file
    known = {file: files[nodes[file]]}
    (target,) = find_targets(location, workspace, nodes, known, (named,))
    return target.path, target.row


def _require_single_case(case: str, cells: Sequence[Result], run: Run | None) -> None:
    """Raise `SeveralCasesError` when the results belong to several cases."""
    if len({(cell.file, cell.row) for cell in cells}) > 1:
        raise SeveralCasesError(case, cells, run)


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
    left = list(cells)
    if model is not None:
        left = [cell for cell in left if cell.model == model]
        if not left:
            models = sorted({cell.model for cell in cells})
            raise EvalstoreError(
                f"'{model}' has no result of '{case}'", hint=suggest(model, models, "candidates")
            )
    if prompt is not None:
        names = name_prompts(location, list(dict.fromkeys(cell.prompt for cell in left)))
        id = find_prompt(names, prompt)
        left = [cell for cell in left if cell.prompt == id]
    if not left:
        raise EvalstoreError(f"'{case}' has no result", hint="'evalstore run' asks for answers")
    return left
