"""What reports compare: a run with the one before, or the workspace, which is planned once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from evalstore.core.batches import in_batches
from evalstore.core.results import Result
from evalstore.core.runs import Run
from evalstore.core.values import Case
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.project import Project
from evalstore.planning.status_report import workspace_as_run
from evalstore.results.compare.compared_side import Side
from evalstore.results.compare.diff import diff
from evalstore.results.compare.diff_result import Diff
from evalstore.results.compare.diff_sides import workspace_side
from evalstore.results.flips.regressions import Regression, find_open_regressions
from evalstore.store.revisions import WORK


@dataclass(frozen=True, slots=True)
class ComparedWorkspace:
    """The results of the workspace, and what changed."""

    side: Side
    diff: Diff | None
    """None without an earlier run."""

    def batches(self, project: Project) -> Iterator[list[tuple[Result, Case]]]:
        """Yield the results with their cases."""
        files = project.reading.files

        def read() -> Iterator[tuple[Result, Case]]:
            for file, results in groupby(self.side.results, lambda result: result.file):
                cases = iter(files[file].cases)
                for row, of_row in groupby(results, lambda result: result.row):
                    case = next(case for case in cases if case.row == row)
                    yield from ((result, case) for result in of_row)

        return in_batches(read())

    def regressions(self, project: Project) -> Sequence[Regression]:
        """Return what broke before, as the gate of a run of the workspace would count it.

        There is nothing if it is not compared with the newest run.
        """
        before = project.store.find_run_before()
        if self.diff is None or before is None or self.diff.was != before.id:
            return []
        after = replace(workspace_as_run(project), id="0" * 32)  # after all runs
        batches = partial(self.batches, project)
        return find_open_regressions(project, after, self.diff.comparison, batches)


def compare_workspace(
    location: Location, project: Project, revision: str | None = None
) -> ComparedWorkspace:
    """Compare the workspace with a run, by default the one before it."""
    side = workspace_side(project, SelectionOptions(), is_marked=True)
    if revision is None and (earlier := project.store.find_run_before()):
        revision = earlier.id
    compared = diff(location, revision, opened=project, workspace=side) if revision else None
    return ComparedWorkspace(side, compared)


def compare_run(
    location: Location, project: Project, run: Run, revision: str | None, *, answers: bool = True
) -> tuple[Diff | None, Sequence[Regression]]:
    """Compare a run with another, by default the one before it: then with what broke earlier."""
    before = project.store.find_run_before(run)
    was = revision or (before.id if before else None)
    if was is None:
        return None, []
    # The files of the workspace are not read where the report is of a run.
    opened = None if was == WORK else project
    compared = diff(location, was, run.id, answers=answers, opened=opened)
    if before is None or compared.was != before.id:
        return compared, []
    return compared, find_open_regressions(project, run, compared.comparison)
