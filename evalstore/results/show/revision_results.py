"""Reads the results of a revision: those of a run, or of the workspace as it is now."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evalstore.core.results import Result
from evalstore.core.values import Case
from evalstore.planning.open_project import open_catalogue, open_project
from evalstore.planning.options import SelectionOptions
from evalstore.planning.results import as_result
from evalstore.results.failed_results import (
    failed_now,
    find_failed,
    mark_failed,
)
from evalstore.store.results import iterate_cases
from evalstore.store.revisions import WORK, resolve_run

if TYPE_CHECKING:
    from evalstore.core.runs import Run
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project
    from evalstore.results.growing_results import CellKey


@contextmanager
def open_revision(location: Location, revision: str) -> Iterator[Project]:
    """Open the project; test files are read, and must be valid, only for the workspace."""
    if revision != WORK:
        with open_catalogue(location) as project:
            yield project
        return
    from evalstore.planning.planner import require_sound

    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        yield project


def find_run(project: Project, revision: str) -> Run:
    """Return the run that a revision names, or the workspace as one."""
    if revision != WORK:
        return resolve_run(project.store, revision)
    from evalstore.planning.status.workspace_results import workspace_as_run

    return workspace_as_run(project)


def find_results(
    project: Project, revision: str
) -> tuple[Run, Iterator[list[tuple[Result, Case]]]]:
    """Return the run that a revision names, and its results in batches."""
    run = find_run(project, revision)
    if revision != WORK:
        return run, iterate_cases(project.store, run)
    from evalstore.planning.status.workspace_results import iterate_workspace

    return run, iterate_workspace(project)


def find_marked_results(
    project: Project, revision: str
) -> tuple[Run, Iterator[list[tuple[Result, Case]]]]:
    """Return what `find_results` does, with a mark on results whose call failed."""
    run, batches = find_results(project, revision)
    if revision == WORK:
        return run, _mark_workspace(project)
    failed = find_failed(project.store, run)
    return run, _mark(batches, failed) if failed else batches


def _mark(
    batches: Iterator[list[tuple[Result, Case]]], failed: Collection[CellKey]
) -> Iterator[list[tuple[Result, Case]]]:
    for batch in batches:
        yield [(mark_failed(result, failed), case) for result, case in batch]


def _mark_workspace(project: Project) -> Iterator[list[tuple[Result, Case]]]:
    from evalstore.planning.status.workspace_results import compute_workspace

    for plan, results in compute_workspace(project):
        failed = failed_now(project, plan, results)
        yield [(mark_failed(as_result(each), failed), each.cell.case) for each in results]
