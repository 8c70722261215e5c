"""Carries out the plans of a run, and records the run; alone or together with other programs."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, NamedTuple

from evalstore import __version__
from evalstore.core.errors import StoreError
from evalstore.core.runs import Run, RunCandidate, RunCases, RunCommit, RunEvaluator
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.run_report import describe_spending
from evalstore.workspace.git import read_state

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from evalstore.core.clock import Clock
    from evalstore.core.runs import ProgressListener
    from evalstore.planning.options import RunOptions, SelectionOptions
    from evalstore.planning.project import Project
    from evalstore.runs.execution.sharing.run_share import SharedWork
    from evalstore.runs.run_preview import Plans, PlanTotals
    from evalstore.runs.run_totals import RunTotals
    from evalstore.runs.runners.shared_run import RunOrigin


def carry_out(
    project: Project,
    survey: PlanTotals,
    plans: Plans,
    totals: RunTotals,
    clock: Clock,
    options: RunOptions,
    listener: ProgressListener,
    shared: SharedWork | None = None,
    plan_again: Callable[[], tuple[Plans, RunTotals]] | None = None,
) -> tuple[RunTotals, ExecutionCounts, OwnCounts]:
    """Carry out the plans of a run, and add them to its totals; returns these and its counts.

    They include those of the other runners of a `shared` run, which `plan_again` plans once more
    when it was stopped: it has more results than this runner knows. The counts of this one alone
    are last. If another runner will record the run, the totals are incomplete, and the outcome has
    the counts of this runner.
    """
    if survey.is_empty and not shared:
        for plan in plans.take():
            totals.add(plan)
        return totals, ExecutionCounts(), OwnCounts(0, 0, 0, 0.0)
    # These modules take as long to import as all others together.
    from evalstore.runs.run_control import carry_out_plans

    outcome, shares = carry_out_plans(
        project, survey, plans.take(), totals.add, clock, options, listener, shared
    )
    asked_cost = outcome.cost
    own = OwnCounts(
        outcome.asked, outcome.judged, outcome.failed, outcome.cost + outcome.judge_cost
    )
    if shares is None:
        return totals, outcome, own._replace(is_last=False)
    if shares:
        from evalstore.runs.execution.sharing.run_share import add_shares

        add_shares(outcome, shares)
        if not all(share.is_readable for share in shares):
            listener.note(
                "the notes of another program about this run cannot be read: its answers are "
                "stored, but missing from the counts and the cost of the run"
            )
        # Answers that were just paid for are found in the store, as if they were older.
        found = outcome.cost - asked_cost
        if plan_again and (outcome.over_budget or outcome.interrupted or totals.count("pending")):
            plans, totals = plan_again()
            for plan in plans.take():
                totals.add(plan)
            found = outcome.cost
        totals.saved = max(totals.saved - found, 0.0)
    return totals, outcome, own


def record(
    project: Project,
    finished: FinishedRun,
    shared: SharedWork | None,
    note: Callable[[str], None],
) -> Run:
    """Record a run with its results; one that is shared is recorded by one of its runners.

    Note it when another program has done so because this one was silent for too long.
    """
    if shared is None:
        return project.store.record_run(make_run(project, finished, secrets.token_hex(8)))
    run = make_run(project, finished, nonce_of(shared.id))
    if recorded := project.store.record_shared_run(shared.id, run):
        return recorded
    for other in project.store.find_recent_runs():
        if other.nonce == run.nonce:
            if other.status == "interrupted" != run.status:
                note(
                    "another program recorded this run as interrupted, because it had not reported "
                    "for too long: its answers are stored, and a new run does the rest"
                )
            return other
    raise StoreError(
        "the run was ended by another program, and its record is missing",
        hint="run again: what was answered and judged is stored",
    )


class OwnCounts(NamedTuple):
    """What one runner of a shared run has done."""

    asked: int
    judged: int
    failed: int
    cost: float
    """USD"""
    is_last: bool = True
    """Whether it records the run."""


class FinishedRun(NamedTuple):
    """The facts of a run whose plans are carried out, for its record and its report."""

    selection: SelectionOptions
    options: RunOptions
    totals: RunTotals
    outcome: ExecutionCounts
    origin: RunOrigin
    ended: int


def nonce_of(shared_run: str) -> str:
    """Return the nonce of the record of a run in progress, by which it is found."""
    return shared_run[:16]


def make_run(project: Project, finished: FinishedRun, nonce: str) -> Run:
    """Return the run to record; stores its results."""
    settings, outcome, origin = project.settings, finished.outcome, finished.origin
    return Run(
        id="",
        nonce=nonce,
        started=origin.started,
        ended=max(finished.ended, origin.started),
        status=_status(finished.totals, outcome),
        message=origin.message,
        snapshot=origin.snapshot,
        results=finished.totals.store_tree(),
        candidates=tuple(
            RunCandidate(candidate.id, candidate.model, candidate.temperature)
            for candidate in project.candidates(finished.selection)
        ),
        evaluators=tuple(
            RunEvaluator(judge.id, judge.evaluator) for judge in project.judges(finished.selection)
        ),
        settings=settings.of_runs,
        selection=origin.selection,
        judge_only=finished.options.judge_only,
        asked=outcome.asked,
        recorded=outcome.recorded,
        judged=outcome.judged,
        reused=finished.totals.answers - outcome.asked - outcome.recorded,
        failed=outcome.failed,
        verdicts=finished.totals.verdicts,
        cost=round(outcome.cost + outcome.judge_cost, 8) if outcome.priced else None,
        spending=describe_spending(outcome, settings),
        git=origin.git,
        version=__version__,
        author=origin.author,
        sources=origin.sources,
        cases=RunCases(
            finished.totals.cases,
            sum(len(file.cases) for file in project.reading.files.values()),
        ),
    )


def _status(totals: RunTotals, outcome: ExecutionCounts) -> str:
    if outcome.interrupted:
        return "interrupted"
    if outcome.over_budget:
        return "over budget"
    return "incomplete" if outcome.failed or totals.count("pending") else "complete"


def git_state(root: Path) -> RunCommit | None:
    """Return the commit of the workspace and whether it has changes; None outside git."""
    state = read_state(root)
    return RunCommit(state.commit, state.dirty) if state else None
