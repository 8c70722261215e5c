"""The state of the workspace in a few figures: its verdicts, pending work, and what broke last.

Its figures are those of `stats @work`, `status` and `diff`. No model is called.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalstore.comparison.statistics import (
    Counts,
    Questions,
    Rate,
    add_verdict,
    count_by_file,
    rate_of_files,
)
from evalstore.core.case_name import case_name
from evalstore.core.errors import EvalstoreError
from evalstore.core.values import order_counts
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import SelectionOptions
from evalstore.planning.reasons.path_history import PathHistory
from evalstore.results.flips.run_differences import has_several_prompts
from evalstore.results.flips.verdict_changes import find_verdict_changes
from evalstore.results.growing_results import cell_of
from evalstore.results.labels.labels import read_labels
from evalstore.results.prompt_names import name_prompts
from evalstore.results.result_version import version_of
from evalstore.results.table.file_verdicts import list_files
from evalstore.runs.status.status import status as read_status
from evalstore.store.revisions import resolve_run
from evalstore.store.trees.case_files import StoredCases
from evalstore.store.trees.path_trees import read_tree

if TYPE_CHECKING:
    from evalstore.core.results import Result
    from evalstore.core.runs import Run
    from evalstore.planning.cells.settled_parts import SettledParts
    from evalstore.planning.options import Location
    from evalstore.planning.status.status_report import Status
    from evalstore.results.growing_results import CellKey
    from evalstore.results.labels.labels import LabelIndex
    from evalstore.results.result_version import ResultVersion
    from evalstore.results.table.file_verdicts import RunFiles
    from evalstore.store import Store
    from evalstore.workspace.folder import WorkspaceFolder

_RUNS = 10
"""Runs that are searched for cases that broke."""
_LISTED = 20
"""Cases that broke, at most."""
_NONE = Counts()
BrokenResults: TypeAlias = "Mapping[CellKey, ResultVersion]"
"""The results that broke, each with what did not pass."""


def find_broken_results(
    location: Location, revision: str | None, go_on: Callable[[], bool]
) -> BrokenResults | None:
    """Return the results that broke in a run; without a revision, those of the dashboard.

    Of these, later labels and taken back edits are not looked at: each has the version that did not
    pass in the newest run that had it. None once `go_on` returns False.
    """
    workspace = open_workspace(location)
    if revision is None:
        broken = _find_broken(location, workspace, go_on)
        return {cell: case.version for cell, case in broken.items()} if go_on() else None
    folder = workspace.settings.paths["tests"]
    with open_store(location) as store:
        changes = find_verdict_changes(store, folder, resolve_run(store, revision))
    return {cell_of(it): version_of(it) for it in changes.broke} if changes else {}


_UNDECIDED = " (undecided now)"
"""Behind the name of a case that broke, and neither fails nor is fixed now."""


class BrokenCase(NamedTuple):
    """A case that broke in a run, and has not been fixed in a later run."""

    name: str
    """The case, with its system prompt where the file has several, and its candidate."""
    run: str
    started: int
    """When the run started: microseconds since 1970, UTC."""
    file_node: str
    """The node of its test file in that run."""
    version: ResultVersion
    """What did not pass in the newest run that had it."""


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The state of the workspace."""

    rate: Rate | None = None
    """The pass rate of the workspace as it is now; None when it cannot be read."""
    verdicts: Mapping[str, int] = field(default_factory=dict)
    """The verdicts of the workspace that the rate counts, and how many are pending."""
    status: Status | None = None
    """The pending work; None when the workspace cannot be read."""
    files: RunFiles | None = None
    """The verdicts by test file; None when the workspace cannot be read."""
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
            left = tuple(
                case._replace(name=f"{case.name}{_UNDECIDED * (cell in now.undecided)}")
                for cell, case in broken.items()
                if cell not in now.fixed
            )
            verdicts = order_counts(now.verdicts)
            files = list_files(now.words)
            dashboard = replace(
                dashboard, rate=now.rate, verdicts=verdicts, files=files, broken=left
            )
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
    folder = workspace.settings.paths["tests"]
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
            for result in chain(changes.broke, changes.undecided, changes.failed_again):
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
        several = {pair for pair in files if has_several_prompts(store, runs[pair[0]], pair[1])}
        nodes = {run.id: read_tree(run.snapshot, store.load_nodes) for run in runs.values()}
    prompts = {result.prompt for run, result in listed.values() if (run.id, result.file) in several}
    names = name_prompts(location, prompts)
    cases = {}
    for cell, (run, result) in listed.items():
        file, row, _, model = cell
        prompt = names.get(result.prompt) if (run.id, result.file) in several else None
        name = f"{case_name(file, row, prompt)} {model}"
        node, version = nodes[run.id][result.file], version_of(newest[cell])
        cases[cell] = BrokenCase(name, run.id, run.started, node, version)
    return cases


def _newest_cell(history: PathHistory, result: Result) -> CellKey:
    """Return the place of a result under the newest path of its file."""
    return cell_of(result._replace(file=history.newest_path(result.file) or result.file))


class _Workspace(NamedTuple):
    """The verdicts of the workspace as they are now."""

    rate: Rate
    verdicts: Counter[str]
    words: Mapping[str, Counter[str]]
    """The verdicts by file."""
    fixed: frozenset[CellKey]
    """Of the cells that broke, those that pass by a newer label, or because of another version.

    A pass on an older answer to what broke is none of these: it broke when it was asked again.
    """
    undecided: frozenset[CellKey]
    """Of the cells that broke, those that are undecided."""


def _read_workspace(
    location: Location, broken: Mapping[CellKey, BrokenCase], go_on: Callable[[], bool]
) -> _Workspace:
    """Compute the verdicts of the workspace, and which of the cells that broke are fixed in it."""
    from evalstore.planning.cells.settled_parts import find_settled
    from evalstore.planning.open_project import open_project
    from evalstore.planning.planner import require_sound, resolve_scope
    from evalstore.planning.results import as_result
    from evalstore.planning.status.workspace_results import compute_workspace

    by_file: dict[str, Counter[Counts]] = {}
    words: dict[str, Counter[str]] = {}
    fixed: set[CellKey] = set()
    undecided: set[CellKey] = set()
    passed_by: dict[CellKey, list[str]] = {}
    files = {file for file, *_ in broken}
    with open_project(location) as project:
        every = SelectionOptions()
        require_sound(project, every)
        settled = _without_changed(project.store, find_settled(project, every), broken)
        scope = resolve_scope(project, every, settled=settled)
        questions: Questions = {}  # those of a batch: of all rows they would be too many
        for _, results in compute_workspace(project, scope):
            if not go_on():
                break
            question = None
            for result in results:
                question = result.cell.file, result.cell.case.row
                counts = questions.get(question, _NONE)
                questions[question] = add_verdict(counts, result.verdict)
                if result.word:
                    words.setdefault(result.cell.file, Counter())[result.word] += 1
                if result.verdict == "undecided" and result.cell.file in files:
                    undecided.add(cell_of(as_result(result)))
                if result.verdict == "pass" and result.cell.file in files:
                    passing = as_result(result)
                    case = broken.get(cell := cell_of(passing))
                    if case and version_of(passing) != case.version:
                        fixed.add(cell)
                    elif case:
                        passed_by[cell] = [vote.id for vote in result.votes if vote.human]
            # The row at the end of a batch may go on in the next one.
            unfinished = {question: questions.pop(question)} if question else {}
            _add_clusters(by_file, questions)
            questions = unfinished
        _add_clusters(by_file, questions)
        for path, _, part in scope.settled.places():
            for *sums, times in part.clusters:
                by_file.setdefault(path, Counter())[Counts(*sums)] += times
            for _, verdict, count in part.words:
                if verdict:
                    words.setdefault(path, Counter())[verdict] += count
        labels = project.store.find_labels() if any(passed_by.values()) else ()
        at = {label.id: label.at for label in labels}
    for cell, ids in passed_by.items():
        if any(at[id] > broken[cell].started for id in ids):
            fixed.add(cell)
    verdicts: Counter[str] = sum(words.values(), Counter())
    rate = rate_of_files(by_file.values())
    return _Workspace(rate, verdicts, words, frozenset(fixed), frozenset(undecided))


def _add_clusters(by_file: dict[str, Counter[Counts]], questions: Questions) -> None:
    for file, counted in count_by_file(questions).items():
        by_file.setdefault(file, Counter()).update(counted)


def _without_changed(
    store: Store, settled: SettledParts, broken: Mapping[CellKey, BrokenCase]
) -> SettledParts:
    """Return the settled parts whose sums need not tell which of the cells that broke pass now.

    They are those of files in which nothing broke, and without later labels those parts that are as
    they were when something broke: in others an edit may have been taken back.
    """
    if not settled or not broken:
        return settled
    since = min(case.started for case in broken.values())
    are_labelled = any(label.at > since for label in store.find_labels())
    nodes: dict[str, set[str]] = {}
    for (file, *_), case in broken.items():
        nodes.setdefault(file, set()).add(case.file_node)
    were = (
        {} if are_labelled else {file: _parts_of_all(store, each) for file, each in nodes.items()}
    )
    return settled.only(
        [
            (path, first)
            for path, first, part in settled.places()
            if path not in nodes or part.node in were.get(path, ())
        ]
    )


def _parts_of_all(store: Store, nodes: set[str]) -> set[str]:
    """Return the nodes of the parts that all of these long files have."""
    files = store.load_case_files(list(nodes)).values()
    parts = [
        {part.node for part in file.cases.parts()} if isinstance(file.cases, StoredCases) else set()
        for file in files
    ]
    return set.intersection(*parts)
