"""The state of the workspace in a few figures: its pass rate, pending work, and what broke last.

Its figures are those of `stats @work`, `status` and `diff`. No model is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import EvalstoreError
from evalstore.operations.status import status as read_status
from evalstore.operations.verdict_changes import cell_of, find_verdict_changes
from evalstore.operations.views.case_name import case_name
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import SelectionOptions
from evalstore.planning.path_history import PathHistory
from evalstore.reports.statistics import Counts, Questions, Rate, add_verdict, rate_of

if TYPE_CHECKING:
    from evalstore.operations.status_report import Status
    from evalstore.operations.verdict_changes import CellKey
    from evalstore.planning.options import Location

_RUNS = 10
"""Runs that are searched for cases that broke."""
_LISTED = 20
"""Cases that broke, at most."""
_NONE = Counts()


class BrokenCase(NamedTuple):
    """A case that broke in a run, and has not been fixed in a later run."""

    name: str
    """The case and its candidate."""
    run: str
    started: int
    """When the run started: microseconds since 1970, UTC."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The state of the workspace."""

    rate: Rate | None = None
    """The pass rate of the workspace as it is now; None when it cannot be read."""
    status: Status | None = None
    """The pending work; None when the workspace cannot be read."""
    broken: tuple[BrokenCase, ...] | None = ()
    """The newest first; None when the settings cannot be read."""
    problem: EvalstoreError | None = None
    """Why the workspace cannot be read."""


def read_dashboard(location: Location, go_on: Callable[[], bool] = lambda: True) -> Dashboard:
    """Compute the state of the workspace; it is incomplete once `go_on` returns False.

    A workspace that cannot be read is a `problem` of the result. Raises `EvalstoreError` for a
    store that cannot be read.
    """
    try:
        folder = open_workspace(location).settings.paths["tests"]
    except EvalstoreError as problem:
        return Dashboard(broken=None, problem=problem)
    dashboard = Dashboard(broken=_find_broken(location, folder, go_on))
    try:
        if go_on():
            pending = read_status(location, SelectionOptions(), whole=False)
            dashboard = replace(dashboard, status=pending)
        if go_on():
            dashboard = replace(dashboard, rate=_rate_workspace(location, go_on))
    except EvalstoreError as problem:
        return replace(dashboard, problem=problem)
    return dashboard


def _find_broken(
    location: Location, folder: str, go_on: Callable[[], bool]
) -> tuple[BrokenCase, ...]:
    """Return the cases that broke in the newest runs, without those that a later run fixed."""
    broken: dict[CellKey, BrokenCase] = {}
    fixed: set[CellKey] = set()
    with open_store(location) as store:
        history: PathHistory | None = None
        for run in store.find_recent_runs(limit=_RUNS):
            if len(broken) >= _LISTED or not go_on():
                break
            history = history or PathHistory(store, folder, run.snapshot, {})
            history.step(run.snapshot)
            changes = find_verdict_changes(store, folder, run)
            broke, passed = (
                [
                    replace(result, file=history.newest_path(result.file) or result.file)
                    for result in results
                ]
                for results in ((changes.broke, changes.fixed) if changes else ((), ()))
            )
            for result in broke:
                cell = cell_of(result)
                name = f"{case_name(result.file, result.row)} {result.model}"
                if cell not in fixed:
                    broken.setdefault(cell, BrokenCase(name, run.id, run.started))
            fixed.update(map(cell_of, passed))
    return tuple(broken.values())[:_LISTED]


def _rate_workspace(location: Location, go_on: Callable[[], bool]) -> Rate:
    """Return the pass rate of the workspace as it is now."""
    from evalstore.operations.workspace_results import compute_workspace
    from evalstore.planning.open_project import open_project
    from evalstore.planning.planner import require_sound

    questions: Questions = {}
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        for _, results in compute_workspace(project):
            if not go_on():
                break
            for result in results:
                question = result.cell.file, result.cell.case.row
                counts = questions.get(question, _NONE)
                questions[question] = add_verdict(counts, result.verdict)
    return rate_of(questions)
