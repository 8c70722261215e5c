"""Finds the results that broke in the newest runs and do not pass, as the browser marks them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence, Set
from contextlib import nullcontext
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from evalstore.comparison.comparison import numbers_now
from evalstore.core.display import BROKEN_PENDING, NEWEST_RUNS, STILL_BROKEN, WORKSPACE, case_name
from evalstore.core.runs import Run
from evalstore.core.values import Case, CellKey, Result
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.path_history import PathHistory
from evalstore.planning.planner import require_sound
from evalstore.results.compare.diff import diff
from evalstore.results.flips.verdict_changes import find_verdict_changes, name_several_prompts
from evalstore.results.labels import LabelIndex, read_labels
from evalstore.store import Store
from evalstore.store.results import iterate_cases
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.trees.tree_nodes import RowIndex, read_tree
from evalstore.workspace.folder import WorkspaceFolder

if TYPE_CHECKING:
    from evalstore.planning.project import Project
    from evalstore.results.compare.diff_result import Diff


BrokenResults: TypeAlias = "Set[CellKey]"
"""The places of the results that broke."""


def is_broken(result: Result, broken: BrokenResults, labels: LabelIndex) -> bool:
    """Return whether a result broke and does not pass, by a later label or otherwise."""
    return result.cell in broken and result.verdict != "pass" and labels.word(result) != "pass"


def find_broken_results(location: Location, revision: str | None) -> BrokenResults:
    """Return the results that broke in a run; without a revision, in the newest ones.

    `@work`: also those that broke since without a call, as by a label. `is_broken` tells which do
    not pass.
    """
    workspace = open_workspace(location)
    if revision in (None, WORK):
        with open_project(location) if revision else nullcontext() as project:
            cases = find_broken_cases(location, workspace, project=project)
            now = find_broken_now(project) if project else ()
        return {*cases, *(result.cell for result in now)}
    folder = workspace.settings.paths["tests"]
    with open_store(location) as store:
        changes = find_verdict_changes(store, folder, resolve_run(store, revision))
    return {it.cell for it in changes.broke} if changes else set()


def find_broken_now(project: Project) -> list[Result]:
    """Return the results of the workspace that broke since the last run, without a call."""
    if not project.store.count_runs():
        return []
    require_sound(project, SelectionOptions())
    return [pair.now for pair in diff(project.location, opened=project).broke if pair.now]


class BrokenCase(NamedTuple):
    """A case that broke, and has not been fixed in a later run."""

    name: str
    """The case, with its system prompt where the file has several, and its candidate."""
    run: str
    """The run in which it broke; empty if that was since the last run, without a call."""
    started: int
    """When the run started: microseconds since 1970, UTC; 0 without one."""


def find_broken_cases(
    location: Location,
    workspace: WorkspaceFolder,
    now: Collection[Result] = (),
    project: Project | None = None,
    until: Run | None = None,
) -> dict[CellKey, BrokenCase]:
    """Return the cases that broke in the newest runs and that no later run has passed.

    Those are left out, too, whose newest answer in these runs was labelled as a pass. First come
    those that broke `now`, since the last run. The keys are places in the newest run; with a
    `project`, those in its files. With `until`, that run is the newest, and later labels do not
    count.
    """
    broken: dict[CellKey, tuple[Run, Result]] = {}
    newest = {result.cell: result for result in now}
    """The results that did not pass, in the newest run that had them."""
    since = frozenset(newest)
    fixed: set[CellKey] = set()
    folder = workspace.settings.paths["tests"]
    with open_store(location) as store:
        places: _Places | None = None
        labels: LabelIndex | None = None
        earlier = store.find_recent_runs(before=until, limit=NEWEST_RUNS)
        for run in islice(chain([until] if until else [], earlier), NEWEST_RUNS):
            if places is None:
                places = _Places(store, folder, run, project)
                known = read_tree(run.snapshot, store.load_nodes)
                broken = {it: (run, newest[it]) for it in newest if newest[it].file in known}
            changes = find_verdict_changes(store, folder, run)
            if changes is None:
                continue
            failures = [*changes.broke]  # first: `broken` takes them by their number
            if not until:
                failures += [*changes.undecided, *changes.failed_again]
            passed = chain(changes.fixed, changes.passed)
            cells = places.find(run, [it.cell for it in chain(failures, passed)])
            for result, cell in zip(failures, cells, strict=False):
                newest.setdefault(cell, result)
            if changes.broke and not until:
                labels = labels or read_labels(store)
            for result, cell in zip(changes.broke, cells, strict=False):
                if labels and labels.word(newest[cell]) == "pass":
                    continue
                if cell not in fixed and cell not in broken:
                    broken[cell] = run, result
            fixed.update(cells[len(failures) :])
        prompts = name_several_prompts(location, store, [*broken.values()])
    cases = {}
    for (cell, (run, _)), prompt in zip(broken.items(), prompts, strict=True):
        file, row, _, model = cell
        name = f"{case_name(file, row, prompt)} {model}"
        cases[cell] = BrokenCase(name, *(("", 0) if cell in since else (run.id, run.started)))
    return cases


class EarlierBreak(NamedTuple):
    """A result that broke in an earlier run and is not fixed."""

    result: Result
    run: str
    """The id of the run in which it broke."""
    started: int
    """When the run started: microseconds since 1970, UTC."""


def by_title(breaks: Sequence[EarlierBreak]) -> dict[str, list[EarlierBreak]]:
    """Return those that do not pass, and those that are pending, by the titles of their lists."""
    titles = {STILL_BROKEN: False, BROKEN_PENDING.capitalize(): True}
    return {
        title: [it for it in breaks if (it.result.word == "pending") == is_pending]
        for title, is_pending in titles.items()
    }


def find_earlier_breaks(
    location: Location,
    project: Project,
    run: Run,
    compared: Diff | None,
    batches: Iterable[Sequence[tuple[Result, Case]]] = (),
) -> list[EarlierBreak] | None:
    """Return the results of a run, or of the workspace, that broke before and are not fixed.

    What broke or became undecided as `compared`, with the run before, is left out. None if it is
    with another run. `batches` are the results of the workspace.
    """
    store, stored = project.store, None if run.id == WORKSPACE else run
    before = store.find_run_before(stored)
    if compared is None or before is None or compared.was != before.id:
        return None
    opened = None if stored else project
    cases = find_broken_cases(location, project.workspace, project=opened, until=stored)
    for pair in chain(compared.broke, compared.comparison.now_undecided):
        cases.pop(pair.either.cell, None)
    if not cases:
        return []
    if stored:
        files = sorted({file for file, *_ in cases})
        batches = chain.from_iterable(iterate_cases(store, stored, file) for file in files)
    return [
        EarlierBreak(result, cases[cell].run, cases[cell].started)
        for batch in batches
        for result, _ in batch
        if (cell := result.cell) in cases and result.verdict != "pass"
    ]


class _Places:
    """Finds the places that results of older runs have in the newest one, or now, run by run."""

    def __init__(self, store: Store, folder: str, newest: Run, project: Project | None) -> None:
        now = project.reading.nodes if project else None
        files = project.reading.files if project else {}
        self._nodes = read_tree(newest.snapshot, store.load_nodes) if now is None else now
        self._files = {self._nodes[path]: file for path, file in files.items()}
        self._store = store
        self._history = PathHistory(store, folder, now or newest.snapshot, self._files)

    def find(self, run: Run, cells: Sequence[CellKey]) -> list[CellKey]:
        """Return the places of cells of the next older run, in their order.

        The number of a system prompt that the case no longer has is below 0.
        """
        self._history.step(run.snapshot)
        rows_of = defaultdict[str, set[str]](set)
        for file, row, *_ in cells:
            rows_of[file].add(row)
        names = {file: self._history.newest_path(file) or file for file in rows_of}
        then = read_tree(run.snapshot, self._store.load_nodes)
        nodes = {file: (then[file], self._nodes.get(name)) for file, name in names.items()}
        edited = {file: both for file, both in nodes.items() if both[1] not in (None, both[0])}
        unread = {it for both in edited.values() for it in both if it} - self._files.keys()
        files = self._files | self._store.load_case_files(unread)
        cases: dict[tuple[str, str], tuple[Case, Case | None]] = {}
        for file, (was, now) in edited.items():
            rows = rows_of[file]
            named = self._store.find_named_cases(files[was], rows)
            known = [it for it in named if it.row in rows]
            index = RowIndex(files[now or was], self._store)
            index.expect(known)
            cases |= {(file, case.row): (case, index.find(case)) for case in known}
        return [_place(it, names[it[0]], *cases.get(it[:2], ())) for it in cells]


def _place(cell: CellKey, file: str, then: Case | None = None, now: Case | None = None) -> CellKey:
    """Return the place of a cell in a file, where its case is another one `now`."""
    _, row, number, model = cell
    if then and now:
        places = numbers_now(then.prompts, now.prompts)
        row, number = now.row, places.get(then.prompts[number], -1 - number)
    return file, row, number, model
