"""Reads the results of a revision: those of a run, or of the workspace as it is now."""

from __future__ import annotations

import gc
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from evalstore.core.display import WORKSPACE, short, side_name
from evalstore.core.errors import RevisionError
from evalstore.core.runs import Run
from evalstore.core.values import Case, Result
from evalstore.files.fields import suggest_file
from evalstore.planning.cell_results import as_result
from evalstore.planning.cells import Cell
from evalstore.planning.open_project import open_catalogue, open_project, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.path_history import find_later_name
from evalstore.planning.project import Project
from evalstore.planning.selection import name_file
from evalstore.results.log.failures import failed_now, mark_failed_in_run
from evalstore.store import Store
from evalstore.store.results import FoundRows, TaggedResult, iterate_cases, require_results
from evalstore.store.revisions import WORK, resolve_run
from evalstore.store.rows.row_queries import Among
from evalstore.store.trees.tree_nodes import find_entry
from evalstore.workspace.folder import WorkspaceFolder


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Leave out a search that takes a fifth of the time of reading many results."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


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
    from evalstore.planning.status_report import workspace_as_run

    return workspace_as_run(project)


def find_results(
    project: Project, revision: str
) -> tuple[Run, Iterator[list[tuple[Result, Case]]]]:
    """Return the run that a revision names, and its results in batches.

    Those whose call failed have a mark.
    """
    run = find_run(project, revision)
    if revision == WORK:
        marked = _mark_workspace(project)
        return run, ([(result, cell.case) for result, cell in batch] for batch in marked)
    batches = iterate_cases(project.store, run)
    return run, _mark(project, run, batches) if run.failed else batches


def _mark(
    project: Project, run: Run, batches: Iterator[list[tuple[Result, Case]]]
) -> Iterator[list[tuple[Result, Case]]]:
    for batch in batches:
        asked = [(result, case.temperature, case.seed) for result, case in batch]
        marked = mark_failed_in_run(project.store, run, asked)
        yield [(result, case) for result, (_, case) in zip(marked, batch, strict=True)]


def _mark_workspace(project: Project) -> Iterator[list[tuple[Result, Cell]]]:
    from evalstore.planning.status_report import compute_workspace

    has_failures = project.store.count_failures() > 0
    for plan, results in compute_workspace(project):
        failed = failed_now(project, plan, results) if has_failures else {}
        yield [(as_result(each).marked(failed), each.cell) for each in results]


@dataclass(frozen=True)
class FoundResults:
    """The results of a run, or of the workspace, by file and row."""

    run: Run
    batches: Iterator[list[TaggedResult]]
    """The results with the tags of their cases; few of them are in memory."""
    rows: FoundRows | None = None
    """What pages are read from, where rows say all that is wanted."""

    def results(self) -> Iterator[Result]:
        """Yield the results."""
        return (each.result for batch in self.batches for each in batch)

    def page(self, offset: int, limit: int) -> tuple[list[TaggedResult], int]:
        """Return so many results after the first ones, and how many there are."""
        if self.rows:
            return self.rows.page(offset, limit)
        total = 0
        chosen: list[TaggedResult] = []
        for batch in self.batches:
            chosen += batch[max(0, offset - total) : max(0, offset + limit - total)]
            total += len(batch)
        return chosen, total


def find_tagged_results(
    project: Project,
    run: Run,
    wanted: Sequence[Among] = (),
    covers: Callable[[str], bool] = lambda _file: True,
) -> FoundResults:
    """Return the results of a run, or of the workspace as one, in the files that are covered.

    Of a run, only those that meet the conditions in its rows; whoever asks looks at the others. A
    result without a reply is marked, and is `pending` in its row.
    """
    if run.id == WORKSPACE:
        marked = _mark_workspace(project)
        every = ([_tag(*each) for each in batch if covers(each[0].file)] for batch in marked)
        return FoundResults(run, every)
    require_results(project.store, run.results)
    rows = FoundRows(project.store, run.results, [it for it in wanted if it.is_in_rows], covers)
    if not run.failed:
        return FoundResults(run, rows.batches(), rows)
    return FoundResults(run, _mark_tagged(project, run, rows.batches()))


def _mark_tagged(
    project: Project, run: Run, batches: Iterator[list[TaggedResult]]
) -> Iterator[list[TaggedResult]]:
    for batch in batches:
        asked = [(each.result, each.temperature, each.seed) for each in batch]
        marked = mark_failed_in_run(project.store, run, asked)
        yield [each._replace(result=result) for each, result in zip(batch, marked, strict=True)]


def _tag(result: Result, cell: Cell) -> TaggedResult:
    case = cell.case
    several = len(case.prompts) > 1
    return TaggedResult(cell.number, result, case.tags, case.judged_by, has_several_prompts=several)


# --- the test file of a run, or of the workspace, that a path on the command line names


def find_test_file(
    location: Location, workspace: WorkspaceFolder, files: Collection[str], path: str, side: str
) -> str:
    """Return the test file that a path names; `files` are those of a run or of the workspace.

    The path is relative to the workspace, to the current folder or to the folder of the tests.
    Raises `RevisionError` for an unknown file.
    """
    names = _possible_names(location, workspace, path)
    name = next((name for name in names if name in files), None)
    if name is None:
        raise RevisionError(
            f"{side_name(side)} has no test file '{path}'",
            hint=suggest_file(path, files),
        )
    return name


def find_file_of_run(
    location: Location, store: Store, run: Run, files: Collection[str], path: str
) -> str:
    """Return the test file of a run that a path names, as `find_test_file` does.

    Raises `RevisionError` if the file does not exist; if it was renamed, the hint has its new path.
    """
    workspace = open_workspace(location)
    try:
        return find_test_file(location, workspace, files, path, run.id)
    except RevisionError as error:
        names, folder = (
            _possible_names(location, workspace, path),
            workspace.settings.paths["tests"],
        )
        later = find_later_name(store, run, names, folder)
        if later is not None:
            raise RevisionError(str(error), hint=f"it was renamed to '{later}'") from None
        tests = workspace.find_files("tests")
        if now := next((name for name in names if name in tests), None):
            hint = f"the workspace has it now: 'evalstore show @work:{now}' shows it"
            raise RevisionError(str(error), hint=hint) from None
        for older in store.find_recent_runs(before=run):
            for name in names:
                if find_entry({older.snapshot}, name, store.load_nodes):
                    hint = f"'evalstore show {short(older.id)}:{name}' shows its last version"
                    raise RevisionError(f"{error}: it was removed", hint=hint) from None
        raise


def _possible_names(location: Location, workspace: WorkspaceFolder, path: str) -> list[str]:
    """Return the paths in the workspace that a path on the command line may mean."""
    folder = workspace.settings.paths["tests"]
    return [path, name_file(location, workspace, path), f"{folder}/{path}"]
