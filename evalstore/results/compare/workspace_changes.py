"""The workspace and what changed since the run before it: planned once for its report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby

from evalstore.core.batches import in_batches
from evalstore.core.results import Result
from evalstore.core.values import Case
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.project import Project
from evalstore.planning.status.workspace_results import workspace_as_run
from evalstore.results.compare.compared_side import Side
from evalstore.results.compare.diff import diff
from evalstore.results.compare.diff_result import Diff
from evalstore.results.compare.diff_sides import workspace_side
from evalstore.results.flips.regressions import Regression, find_open_regressions


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
        """Return what broke before, as the gate of a run of the workspace would count it."""
        if self.diff is None:
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
