"""The command `run --join`: takes part in a run in progress, without its workspace."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, replace

from evalstore.core.clock import Clock
from evalstore.core.display import status_word
from evalstore.core.errors import INTERRUPTED, OK, NoWorkspaceError, RevisionError
from evalstore.core.runs import ProgressListener, Run
from evalstore.files.access import normal_path
from evalstore.planning.open_project import locate_store, open_workspace, warn_outside
from evalstore.planning.options import Location, RunOptions
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.sharing.run_share import SharedWork
from evalstore.runs.run_record import FinishedRun, carry_out, record
from evalstore.runs.runners.shared_run import RestoredRun, require_joinable, restored
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, StoreLocation, is_url, read_address
from evalstore.store.revisions import find_recorded
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
    status: str | None = None
    """The status of the run; None while others still work on it."""
    stopped: str | None = None
    """What has stopped this program: `interrupted`, or the limit `max-cost` or `max-time`."""

    @property
    def exit_code(self) -> int:
        """Return the exit code of the command: that of the run belongs to who has begun it."""
        return INTERRUPTED if self.stopped == "interrupted" else OK


def join_run(
    location: Location, name: str, options: RunOptions, listener: ProgressListener
) -> JoinReport:
    """Take part in a run in progress: `@` for the newest one, or the start of its id.

    Its settings, models and prompts come from the store. Of `options`, the number of calls at once
    counts. One that is named and over by now is complete for this program: launchers may start it
    late. Raises `RevisionError` if the run does not exist.
    """
    # A migration would end the runs of programs of the older version that are in progress.
    with closing(Store.open(_find_store(location), may_migrate=False)) as store:
        run = _find(store, name)
        if isinstance(run, Run):
            shown = f"'evalstore show {run.id[:8]}' shows it"
            if run.status != "complete":
                shown = f"'evalstore run' does what is left; {shown}"
            recorded = f"it is recorded as {run.id[:8]}, {status_word(run.status)}"
            listener.note(f"run {name[:8]} is over: {recorded}; {shown}")
            return JoinReport(run.id, 0, 0, 0, 0.0, run.status)
        require_joinable(run)
        if run.is_silent:
            listener.note(f"no other program is working on run {run.id[:8]}: this one continues it")
        with restored(store, location, run) as known:
            return _take_part(known, run, options, listener)


def _find_store(location: Location) -> StoreLocation:
    """Return where the store is; where it is named, no workspace is needed.

    Warns of what has no effect in `.env`, also where that is why no store is named.
    """
    if location.keys_folder is None:  # the program that has started others has warned of it
        warn_outside(location.directory, location.warn, is_database=is_url(location.store or ""))
    if location.store:
        if is_url(location.store):
            return read_address(location.store)
        return normal_path(location.directory, location.store)
    try:
        workspace = open_workspace(location)
    except NoWorkspaceError as error:
        hint = "'--store' or EVALSTORE_STORE names the store of the run; then none is needed"
        raise NoWorkspaceError(str(error), hint=hint) from error
    place = locate_store(workspace, location)
    if isinstance(place, DatabaseAddress):
        warn_outside(location.directory, location.warn, is_database=True)
    return place


def _find(store: Store, name: str) -> SharedRun | Run:
    """Return the run in progress with this name, or its record if it is over by now.

    The newest one must have a live runner: who names none may also wait for the next to begin.
    """
    runs = store.find_shared_runs()
    if name == NEWEST:
        live = [run for run in runs if not run.is_silent]
        named = ([run for run in live if not run.error] or live)[:1]
    else:
        named = [run for run in runs if run.id.startswith(name)]
    if len(named) == 1:
        return named[0]
    if named:
        raise RevisionError(f"'{name}' is ambiguous: {len(named)} runs in progress begin with it")
    if name == NEWEST:
        hint = "'evalstore run' begins one"
        if left := [run for run in runs if not run.error]:
            hint = f"'--join {left[0].id[:8]}' continues an abandoned run"
        raise RevisionError(f"no run is in progress in the store '{store.path}'", hint=hint)
    if recorded := find_recorded(store, name):
        return recorded
    at_work, left_behind = (
        ", ".join(run.id[:8] for run in runs if run.is_silent == is_left and not run.error)
        for is_left in (False, True)
    )
    hints = [f"runs in progress are {at_work}"] if at_work else []
    hints += [f"abandoned runs are {left_behind}"] if left_behind else []
    raise RevisionError(
        f"no run in progress is called '{name}' in the store '{store.path}'",
        hint="; ".join(hints) or "'evalstore run' begins one",
    )


def _take_part(
    known: RestoredRun, run: SharedRun, options: RunOptions, listener: ProgressListener
) -> JoinReport:
    project, origin, selection, stored = known
    options = replace(
        stored, concurrency=options.concurrency or stored.concurrency, fail_on="none", yes=True
    )
    clock = Clock(origin.started)
    plans, totals = known.plan()
    survey = plans.survey(totals.add)
    if project.location.keys_folder is None:  # the program that has started others says so itself
        for file in project.code.named:
            listener.warn(
                f"{file.words}; 'evalstore trust {file.path}' in the workspace, on this machine, "
                "allows it"
            )
    shared = SharedWork(run.id, False, run.cost_limit, run.elapsed)
    totals, outcome, own = carry_out(
        project, survey, plans, totals, clock, options, listener, shared, known.plan
    )
    done = (own.asked, own.judged, own.failed, own.cost)
    stopped = _describe_stop(outcome)
    if not own.is_last:
        return JoinReport(None, *done, stopped=stopped)
    finished = FinishedRun(selection, options, totals, outcome, origin, clock())
    recorded = record(project, finished, shared, listener.note)
    return JoinReport(recorded.id, *done, recorded.status, stopped)


def _describe_stop(outcome: ExecutionCounts) -> str | None:
    """Return what has stopped this program, if anything has."""
    if outcome.interrupted:
        return "interrupted"
    if outcome.time_is_up:
        return "max-time"
    return "max-cost" if outcome.over_budget else None
