"""Finds the results whose verdict changes without a call, by what is stored already."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.operations.earlier_results import EarlierRuns
from evalstore.operations.verdict_changes import file_batches
from evalstore.planning.path_history import PathHistory
from evalstore.planning.plan import Plan
from evalstore.planning.results import as_result, compute_results
from evalstore.reports.comparison import Pair, ResultIndex, sort_pair
from evalstore.store.results import iterate_entries

if TYPE_CHECKING:
    from collections.abc import Collection

    from evalstore.planning.project import Project
    from evalstore.results import Result
    from evalstore.values import Case


@dataclass
class StoredOutcomes:
    """The results that have a verdict now, and another one in the newest run that judged them."""

    broke: list[Result] = field(default_factory=list)
    """Passed then, and do not now."""
    fixed: list[Result] = field(default_factory=list)
    """Did not pass then, and do now."""


def find_stored_outcomes(
    project: Project, plan: Plan, files: Collection[str] | None = None
) -> StoredOutcomes:
    """Return what a run would find broken and fixed without asking or judging anything for it.

    Only results of these test files count; None: of all. The newest 100 runs are searched.
    """
    waiting = _judged_now(project, plan, files)
    nodes = project.reading.nodes
    cases = {node: project.reading.files[path] for path, node in nodes.items()}
    history = PathHistory(project.store, project.settings.paths["tests"], nodes, cases)
    paths, found = set(waiting), StoredOutcomes()
    for _, entries in EarlierRuns(project.store, history).before(None, paths):
        for batch in file_batches(entries):
            judged = (
                result
                for results in iterate_entries(project.store, batch)
                for result, _ in results
                if result.verdict
            )
            before = ResultIndex(judged)
            for path in batch:
                waiting[path] = _compare(waiting[path], before, found)
        paths &= {path for path, left in waiting.items() if left}
        if not paths:
            break
    return found


def _judged_now(
    project: Project, plan: Plan, files: Collection[str] | None
) -> dict[str, list[tuple[Result, Case]]]:
    """Return the results that have a verdict, by file."""
    cells = [cell for cell in plan.cells if files is None or cell.file in files]
    settled = Plan(cells, sessions=plan.sessions, votes=plan.votes)
    judged: dict[str, list[tuple[Result, Case]]] = {}
    for result in compute_results(settled, project.settings.verdict):
        if result.verdict:
            judged.setdefault(result.cell.file, []).append((as_result(result), result.cell.case))
    return judged


def _compare(
    results: list[tuple[Result, Case]], before: ResultIndex, found: StoredOutcomes
) -> list[tuple[Result, Case]]:
    """Sort results by how they changed; returns those that the earlier run has not judged."""
    left = []
    for result, case in results:
        was = before.find(result, case.prompts)
        if was is None:
            left.append((result, case))
            continue
        change = sort_pair(Pair(was, result), answers=False)
        if change == "broke":
            found.broke.append(result)
        elif change == "fixed":
            found.fixed.append(result)
    return left
