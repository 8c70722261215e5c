"""The state of the workspace in a few figures: its pass rate, pending work, and what broke last.

Its figures are those of `stats @work`, `status` and `diff`. No model is called.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import EvalstoreError
from evalstore.operations.prompt_names import name_prompts
from evalstore.operations.status import status as read_status
from evalstore.operations.verdict_changes import cell_of, find_verdict_changes
from evalstore.operations.views.case_name import case_name
from evalstore.operations.views.labels import read_labels
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import SelectionOptions
from evalstore.planning.path_history import PathHistory
from evalstore.reports.statistics import Counts, Questions, Rate, add_verdict, rate_of
from evalstore.store.results import iterate_cases

if TYPE_CHECKING:
    from evalstore.operations.status_report import Status
    from evalstore.operations.verdict_changes import CellKey
    from evalstore.operations.views.labels import LabelIndex
    from evalstore.planning.options import Location
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case

_RUNS = 10
"""Runs that are searched for cases that broke."""
_LISTED = 20
"""Cases that broke, at most."""
_NONE = Counts()


class BrokenCase(NamedTuple):
    """A case that broke in a run, and has not been fixed in a later run."""

    name: str
    """The case, with its system prompt where the file has several, and its candidate."""
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
    """Return the cases that broke in the newest runs and that no later run or label has passed."""
    broken: dict[CellKey, tuple[Run, Result]] = {}
    fixed: set[CellKey] = set()
    with open_store(location) as store:
        history: PathHistory | None = None
        labels: LabelIndex | None = None
        for run in store.find_recent_runs(limit=_RUNS):
            if len(broken) >= _LISTED or not go_on():
                break
            history = history or PathHistory(store, folder, run.snapshot, {})
            history.step(run.snapshot)
            changes = find_verdict_changes(store, folder, run)
            if changes is None:
                continue
            labels = labels or (read_labels(store) if changes.broke else None)
            for result in changes.broke:
                if labels and labels.word(result) == "pass":
                    continue
                cell = _newest_cell(history, result)
                if cell not in fixed and cell not in broken:
                    broken[cell] = run, result
            fixed.update(_newest_cell(history, result) for result in changes.fixed)
        listed = dict(islice(broken.items(), _LISTED))
        runs = {run.id: run for run, _ in listed.values()}
        files = {(run.id, result.file) for run, result in listed.values()}
        several = {pair for pair in files if _has_several_prompts(store, runs[pair[0]], pair[1])}
    prompts = {result.prompt for run, result in listed.values() if (run.id, result.file) in several}
    names = name_prompts(location, prompts)
    cases = []
    for (file, row, _, model), (run, result) in listed.items():
        prompt = names.get(result.prompt) if (run.id, result.file) in several else None
        cases.append(BrokenCase(f"{case_name(file, row, prompt)} {model}", run.id, run.started))
    return tuple(cases)


def _newest_cell(history: PathHistory, result: Result) -> CellKey:
    """Return the place of a result under the newest path of its file."""
    return cell_of(replace(result, file=history.newest_path(result.file) or result.file))


def _has_several_prompts(store: Store, run: Run, file: str) -> bool:
    """Return whether the cases of a file had several system prompts in a run."""
    first: list[tuple[Result, Case]] = next(iterate_cases(store, run, file), [])
    return any(len(case.prompts) > 1 for _, case in first)


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
