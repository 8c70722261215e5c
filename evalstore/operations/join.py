"""The command `run --join`: takes part in a run in progress, without its workspace."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from evalstore.clock import Clock
from evalstore.errors import EvalstoreError, RevisionError
from evalstore.execution.shared_work import SharedWork
from evalstore.files.normal_path import normal_path
from evalstore.operations.json_output import camel_case
from evalstore.operations.run_plans import Plans
from evalstore.operations.run_record import FinishedRun, OwnCounts, carry_out, record
from evalstore.operations.run_totals import RunTotals
from evalstore.operations.shared_run import require_joinable, restore_origin, write_files
from evalstore.planning.open_project import locate_store, open_workspace
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.planning.planner import resolve_scope
from evalstore.planning.project import Project
from evalstore.store import Store
from evalstore.store.location import StoreLocation, is_url, read_address
from evalstore.store.path_trees import read_tree
from evalstore.workspace.reader import read_workspace

if TYPE_CHECKING:
    from evalstore.operations.progress import ProgressListener
    from evalstore.store.shared_runs import SharedRun

NEWEST = "@"
"""Names the newest run in progress."""


@dataclass(frozen=True, slots=True)
class JoinReport:
    """What this program has done of a run."""

    run: str | None
    """The id of the run; None while other programs still work on it."""
    asked: int
    judged: int
    failed: int
    cost: float
    """USD"""
    status: str | None = field(default=None)
    """The status of the run; None while others still work on it."""


def join_run(
    location: Location, name: str, options: RunOptions, listener: ProgressListener
) -> JoinReport:
    """Take part in a run in progress: `@` for the newest one, or the start of its id.

    Its settings, models and prompts come from the store. Of `options`, the number of calls at once
    counts. Raises `RevisionError` when there is no such run.
    """
    with closing(Store.open(_find_store(location))) as store:
        run = _find(store, name)
        require_joinable(run)
        with TemporaryDirectory(prefix="evalstore-join-") as folder:
            write_files(run, Path(folder))
            inner = replace(
                location,
                directory=Path(folder),
                config=Path(folder) / run.description["config"],
                overrides=tuple(run.description["overrides"]),
            )
            return _take_part(store, inner, run, options, listener)


def _find_store(location: Location) -> StoreLocation:
    """Return where the store is; where it is named, no workspace is needed."""
    if not location.store:
        return locate_store(open_workspace(location), location)
    if is_url(location.store):
        return read_address(location.store)
    return normal_path(location.directory, location.store)


def _find(store: Store, name: str) -> SharedRun:
    runs = store.find_shared_runs()
    named = runs[:1] if name == NEWEST else [run for run in runs if run.id.startswith(name)]
    if len(named) == 1:
        return named[0]
    if named:
        raise RevisionError(f"'{name}' is ambiguous: {len(named)} runs in progress begin with it")
    what = "no run is in progress" if name == NEWEST else f"no run in progress is called '{name}'"
    known = ", ".join(run.id[:8] for run in runs)
    raise RevisionError(
        f"{what} in the store '{store.path}'",
        hint=f"those in progress are {known}" if known else "'evalstore run' begins one",
    )


def _take_part(
    store: Store,
    location: Location,
    run: SharedRun,
    options: RunOptions,
    listener: ProgressListener,
) -> JoinReport:
    origin = restore_origin(run)
    project = _open(store, location, origin.snapshot)
    selection = _restore_selection(run)
    stored = RunOptions(**run.description["options"])
    options = replace(
        stored, concurrency=options.concurrency or stored.concurrency, fail_on="none", yes=True
    )
    clock = Clock(origin.started)

    def begin() -> tuple[Plans, RunTotals]:
        scope = resolve_scope(
            project, selection, judge_only=options.judge_only, begun=origin.started
        )
        plans = Plans(project, scope)
        return plans, RunTotals(project, origin.started, plans.shared)

    plans, totals = begin()
    survey = plans.survey(totals.add)
    shared = SharedWork(run.id, False, run.cost_limit, run.elapsed)
    totals, outcome, own = carry_out(
        project, survey, plans, totals, clock, options, listener, shared, begin
    )
    if own and not own.is_last:
        return JoinReport(None, own.asked, own.judged, own.failed, own.cost)
    finished = FinishedRun(selection, options, totals, outcome, origin, clock())
    recorded = record(project, finished, shared)
    own = own or _nothing()
    return JoinReport(recorded.id, own.asked, own.judged, own.failed, own.cost, recorded.status)


def _nothing() -> OwnCounts:
    return OwnCounts(0, 0, 0, 0.0)


def _open(store: Store, location: Location, snapshot: str) -> Project:
    """Return a project with the cases of a snapshot, and the models and prompts of a folder."""
    workspace = open_workspace(location)
    reading = read_workspace(workspace, store.find_case_files, tests=False)
    reading.nodes = dict(read_tree(snapshot, store.load_nodes))
    leaves = store.load_case_files(reading.nodes.values())
    reading.files = {path: leaves[leaf] for path, leaf in reading.nodes.items()}
    reading.tests = frozenset(reading.nodes)
    return Project(location, workspace, store, reading)


def _restore_selection(run: SharedRun) -> SelectionOptions:
    """Return the selection of a run in progress."""
    names = {camel_case(member.name): member.name for member in fields(SelectionOptions)}
    values: dict[str, Any] = {
        names[name]: tuple(value) if isinstance(value, list) else value
        for name, value in run.description["selection"].items()
    }
    try:
        return SelectionOptions(**values)
    except TypeError as error:
        raise EvalstoreError(f"run {run.id[:8]} has options that are not known: {error}") from error
