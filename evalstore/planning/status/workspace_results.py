"""Computes the current verdicts of the workspace from stored answers and judgements."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from evalstore.core.display import WORKSPACE
from evalstore.core.results import Result
from evalstore.core.runs import Run, RunCandidate, RunEvaluator
from evalstore.core.values import Case
from evalstore.planning.cells.cell_batches import batches
from evalstore.planning.options import SelectionOptions
from evalstore.planning.plan import Plan
from evalstore.planning.planner import Scope, plan_cells, resolve_scope
from evalstore.planning.project import Project
from evalstore.planning.results import CellResult, as_result, compute_results


def compute_workspace(
    project: Project, scope: Scope | None = None
) -> Iterator[tuple[Plan, list[CellResult]]]:
    """Yield the results of all cases, or of a scope, in batches with their plans, by file and row.

    The cells of a case are in one batch. Its plan is dropped before the next is made, so that many
    cases need little memory.
    """
    scope = scope or resolve_scope(project, SelectionOptions())
    for batch in batches(scope.cells):
        plan = plan_cells(project, scope, batch)
        yield plan, compute_results(plan, project.settings.verdict)


def iterate_workspace(
    project: Project, scope: Scope | None = None
) -> Iterator[list[tuple[Result, Case]]]:
    """Yield the results of all cases, or of a scope, with their cases, in batches."""
    for _, results in compute_workspace(project, scope):
        yield [(as_result(result), result.cell.case) for result in results]


def results_at(project: Project, places: Iterable[tuple[str, str | None]]) -> Iterator[Result]:
    """Yield the results of rows of test files; without a row, those of all rows of a file."""
    root = project.workspace.root
    paths = tuple(f"{root / file}::{row}" if row else f"{root / file}" for file, row in places)
    if paths:
        for batch in iterate_workspace(project, resolve_scope(project, SelectionOptions(paths))):
            yield from (result for result, _ in batch)


def workspace_as_run(project: Project, selection: SelectionOptions | None = None) -> Run:
    """Return a run with the results of the workspace; its id is `workspace`, it is not stored.

    With a selection it has only the candidates and evaluators that this names, if any.
    """
    now, every = time.time_ns() // 1000, selection or SelectionOptions()
    return Run(
        id=WORKSPACE,
        started=now,
        ended=now,
        status="complete",
        snapshot="",
        results="",
        asked=0,
        judged=0,
        reused=0,
        verdicts={},
        candidates=tuple(
            RunCandidate(candidate.id, candidate.model, candidate.temperature)
            for candidate in project.candidates(every)
        ),
        evaluators=tuple(
            RunEvaluator(judge.id, judge.evaluator) for judge in project.judges(every)
        ),
        settings=project.settings.of_runs,
        selection={
            **({"models": list(every.models)} if every.models else {}),
            **({"attempts": every.attempts} if every.attempts else {}),
        },
    )
