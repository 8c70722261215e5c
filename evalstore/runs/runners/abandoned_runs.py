"""Records runs in progress as interrupted when all of their programs have ended or fallen silent.

The next `run` on the store does so. All that was answered and judged is in the store already; what
is missing is the record of the run, with what its runners have noted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.core.display import plural, short
from evalstore.core.errors import EvalstoreError
from evalstore.core.runs import describe_run
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.run_record import FinishedRun, make_run, nonce_of
from evalstore.store.work.runs_in_progress import describe_unreadable

if TYPE_CHECKING:
    from collections.abc import Callable

    from evalstore.core.runs import Run
    from evalstore.planning.options import Location
    from evalstore.store import Store
    from evalstore.store.work.shared_runs import SharedRun


def record_abandoned(store: Store, location: Location, note: Callable[[str], None]) -> None:
    """Record the abandoned runs of a store as interrupted, and note it.

    One that no other machine could join has no description, so it is only removed. One that cannot
    be read stays, and is noted.
    """
    for run in store.find_shared_runs():
        if run.error:
            note(describe_unreadable(run.error))
            continue
        if not run.is_abandoned:
            continue
        outcome = _sum_up(store, run)
        done = f"{plural(outcome.asked, 'answer')} and {plural(outcome.judged, 'judgement')}"
        if run.description.get("problem"):
            if store.record_abandoned_run(run, None):
                note(f"a run that its program has left is not recorded; its {done} are stored")
            continue
        try:
            record = _restore(store, location, run, outcome)
        except EvalstoreError as error:
            note(f"run {run.id[:8]}, which its programs have left, cannot be recorded: {error}")
            continue
        if store.record_abandoned_run(run, record):
            id, _ = hashing.identify(describe_run(record))
            note(
                "a run that its programs have left is recorded as interrupted, with "
                f"{done}: {short(id)}"
            )


def _sum_up(store: Store, run: SharedRun) -> ExecutionCounts:
    """Return what all runners of a run have done."""
    # Takes as long to import as all others together.
    from evalstore.runs.execution.sharing.run_share import add_shares

    outcome = ExecutionCounts()
    add_shares(outcome, store.find_shares(run.id))
    outcome.interrupted = True
    return outcome


def _restore(store: Store, location: Location, run: SharedRun, outcome: ExecutionCounts) -> Run:
    """Return the record of a run: its results are those that are stored now."""
    from evalstore.runs.runners.restored_run import restored

    with restored(store, location, run) as known:
        plans, totals = known.plan()
        for plan in plans.take():
            totals.add(plan)
        ended = known.origin.started + int(1e6 * (run.elapsed - run.silence))
        finished = FinishedRun(known.selection, known.options, totals, outcome, known.origin, ended)
        return make_run(known.project, finished, nonce_of(run.id))
