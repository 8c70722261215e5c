"""Reads the results of a revision: those of a run, or of the workspace as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from evalstore.planning.open_project import open_catalogue, open_project
from evalstore.planning.options import SelectionOptions
from evalstore.results import Result
from evalstore.store.results import iterate_cases
from evalstore.store.revisions import WORK, resolve_run
from evalstore.values import Case

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.planning.project import Project
    from evalstore.runs import Run


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


def find_results(
    project: Project, revision: str
) -> tuple[Run, Iterator[list[tuple[Result, Case]]]]:
    """Return the run that a revision names, and its results in batches."""
    if revision != WORK:
        run = resolve_run(project.store, revision)
        return run, iterate_cases(project.store, run)
    from evalstore.operations.workspace_results import iterate_workspace, workspace_as_run

    return workspace_as_run(project), iterate_workspace(project)
