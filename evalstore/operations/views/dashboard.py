"""The state of the workspace in a few figures: its verdicts, pending work, and what broke last.

Its figures are those of `stats @work`, `status` and `diff`. No model is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import EvalstoreError
from evalstore.operations.equal_parts import known_parts_in
from evalstore.operations.prompt_names import name_prompts
from evalstore.operations.status import status as read_status
from evalstore.operations.verdict_changes import cell_of, find_verdict_changes
from evalstore.operations.views.case_name import case_name
from evalstore.operations.views.labels import read_labels
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import SelectionOptions
from evalstore.planning.path_history import PathHistory
from evalstore.reports.statistics import (
    Counts,
    Questions,
    Rate,
    add_verdict,
    count_by_file,
    rate_of_files,
)
from evalstore.store.results import iterate_cases
from evalstore.store.revisions import resolve_run
from evalstore.values import order_counts

if TYPE_CHECKING:
    from evalstore.operations.status_report import Status
    from evalstore.operations.verdict_changes import CellKey
    from evalstore.operations.views.labels import LabelIndex
    from evalstore.planning.options import Location
    from evalstore.results import Result
    from evalstore.runs import Run
    from evalstore.store import Store
    from evalstore.values import Case
    from evalstore.workspace.folder import WorkspaceFolder

_RUNS = 10
"""Runs that are searched for cases that broke."""
_LISTED = 20
"""Cases that broke, at most."""
_NONE = Counts()


def find_broken_results(
    location: Location, revision: str | None, go_on: Callable[[], bool]
) -> frozenset[CellKey] | None:
    """Return the results that broke in a run; without a revision, those of the dashboard.

    Of these, labels of people are not looked at. None once `go_on` returns False.
    """
    workspace = open_workspace(location)
    if revision is None:
        broken = frozenset(_find_broken(location, workspace, go_on))
        return broken if go_on() else None
    folder, known = workspace.settings.paths["tests"], known_parts_in(workspace)
    with open_store(location) as store:
        changes = find_verdict_changes(store, folder, resolve_run(store, revision), known)
    return frozenset(map(cell_of, changes.broke)) if changes else frozenset()


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
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """The verdicts of the workspace that the rate counts, and how many are pending."""
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
        workspace = open_workspace(location)
    except EvalstoreError as problem:
        return Dashboard(broken=None, problem=problem)
    broken = _find_broken(location, workspace, go_on)
    dashboard = Dashboard(broken=tuple(broken.values()))
    try:
        if go_on():
            pending = read_status(location, SelectionOptions(), whole=False)
            dashboard = replace(dashboard, status=pending)
        if go_on():
            now = _read_workspace(location, broken, go_on)
            left = tuple(case for cell, case in broken.items() if cell not in now.labelled)
            verdicts = order_counts(now.verdicts)
            dashboard = replace(dashboard, rate=now.rate, verdicts=verdicts, broken=left)
    except EvalstoreError as problem:
        return replace(dashboard, problem=problem)
    return dashboard


def _find_broken(
    location: Location, workspace: WorkspaceFolder, go_on: Callable[[], bool]
) -> dict[CellKey, BrokenCase]:
    """Return the cases that broke in the newest runs and that no later run has passed.

    Those are left out, too, whose newest answer in these runs was labelled as a pass.
    """
    broken: dict[CellKey, tuple[Run, Result]] = {}
    newest: dict[CellKey, Result] = {}
    """The results that did not pass, in the newest run that had them."""
    fixed: set[CellKey] = set()
    folder, known = workspace.settings.paths["tests"], known_parts_in(workspace)
    with open_store(location) as store:
        history: PathHistory | None = None
        labels: LabelIndex | None = None
        for run in store.find_recent_runs(limit=_RUNS):
            if len(broken) >= _LISTED or not go_on():
                break
            history = history or PathHistory(store, folder, run.snapshot, {})
            history.step(run.snapshot)
            changes = find_verdict_changes(store, folder, run, known)
            if changes is None:
                continue
            for result in (*changes.broke, *changes.failed_again):
                newest.setdefault(_newest_cell(history, result), result)
            labels = labels or (read_labels(store) if changes.broke else None)
            for result in changes.broke:
                cell = _newest_cell(history, result)
                if labels and labels.word(newest[cell]) == "pass":
                    continue
                if cell not in fixed and cell not in broken:
                    broken[cell] = run, result
            fixed.update(_newest_cell(history, result) for result in changes.fixed)
        listed = dict(islice(broken.items(), _LISTED))
        runs = {run.id: run for run, _ in listed.values()}
        files = {(run.id, result.file) for run, result in listed.values()}
        several = {pair for pair in files if _has_several_prompts(store, runs[pair[0]], pair[1])}
    prompts = {result.prompt for run, result in listed.values() if (run.id, result.file) in several}
    names = name_prompts(location, prompts)
    cases = {}
    for cell, (run, result) in listed.items():
        file, row, _, model = cell
        prompt = names.get(result.prompt) if (run.id, result.file) in several else None
        name = f"{case_name(file, row, prompt)} {model}"
        cases[cell] = BrokenCase(name, run.id, run.started)
    return cases


def _newest_cell(history: PathHistory, result: Result) -> CellKey:
    """Return the place of a result under the newest path of its file."""
    return cell_of(result._replace(file=history.newest_path(result.file) or result.file))


def _has_several_prompts(store: Store, run: Run, file: str) -> bool:
    """Return whether the cases of a file had several system prompts in a run."""
    first: list[tuple[Result, Case]] = next(iterate_cases(store, run, file), [])
    return any(len(case.prompts) > 1 for _, case in first)


class _Workspace(NamedTuple):
    """The verdicts of the workspace as they are now."""

    rate: Rate
    verdicts: Counter[str]
    labelled: frozenset[CellKey]
    """Of the cells that broke, those that pass by a label which is newer than that."""


def _read_workspace(
    location: Location, broken: Mapping[CellKey, BrokenCase], go_on: Callable[[], bool]
) -> _Workspace:
    """Compute the verdicts of the workspace, and which of the cells that broke a label passes."""
    from evalstore.operations.workspace_results import compute_workspace
    from evalstore.planning.open_project import open_project
    from evalstore.planning.planner import require_sound, resolve_scope
    from evalstore.planning.results import as_result
    from evalstore.planning.settled_parts import find_settled

    questions: Questions = {}
    verdicts: Counter[str] = Counter()
    passed_by: dict[CellKey, list[str]] = {}
    files = {file for file, *_ in broken}
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        every, since = (
            SelectionOptions(),
            min((each.started for each in broken.values()), default=0),
        )
        settled = find_settled(project, every)
        if files and any(label.at > since for label in project.store.find_labels()):
            # Sums do not tell which cases pass by a label.
            places = [(path, first) for path, first, _ in settled.places() if path not in files]
            settled = settled.only(places)
        scope = resolve_scope(project, every, settled=settled)
        for _, results in compute_workspace(project, scope):
            if not go_on():
                break
            for result in results:
                question = result.cell.file, result.cell.case.row
                counts = questions.get(question, _NONE)
                questions[question] = add_verdict(counts, result.verdict)
                if result.word:
                    verdicts[result.word] += 1
                if result.verdict == "pass" and result.cell.file in files:
                    cell = cell_of(as_result(result))
                    passed_by[cell] = [vote.id for vote in result.votes if vote.human]
        by_file = count_by_file(questions)
        for path, _, part in scope.settled.places():
            for *sums, times in part.clusters:
                by_file.setdefault(path, Counter())[Counts(*sums)] += times
            for _, verdict, count in part.words:
                if verdict:
                    verdicts[verdict] += count
        ids = {id for cell in passed_by.keys() & broken.keys() for id in passed_by[cell]}
        at = {label.id: label.at for label in project.store.find_labels()} if ids else {}
    labelled = frozenset(
        cell
        for cell, case in broken.items()
        if any(at[id] > case.started for id in passed_by.get(cell, ()))
    )
    return _Workspace(rate_of_files(by_file.values()), verdicts, labelled)
