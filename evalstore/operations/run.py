"""The commands `run` and `judge`: carry out the plan, and record the run."""

from __future__ import annotations

import secrets
from dataclasses import replace
from itertools import islice
from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from evalstore import __version__
from evalstore.clock import Clock
from evalstore.errors import OK, StoreError
from evalstore.execution.execution_counts import ExecutionCounts
from evalstore.git import read_state, read_user_name
from evalstore.operations.baseline import Baseline, find_baseline
from evalstore.operations.equal_parts import known_parts
from evalstore.operations.gate import decide, reaches_threshold
from evalstore.operations.json_output import fields_to_json
from evalstore.operations.plan_status import describe_plan
from evalstore.operations.regressions import find_regressions
from evalstore.operations.remote_answers import find_unread_remotes, unread_text
from evalstore.operations.run_preview import PlanTotals, get_leave, keep_to
from evalstore.operations.run_report import RunReport, describe_spending
from evalstore.operations.run_scope import narrow
from evalstore.operations.run_totals import MOST_SHOWN, RunTotals
from evalstore.operations.verdict_changes import find_verdict_changes
from evalstore.planning.cell_batches import batches, find_shared, take_out
from evalstore.planning.estimate import estimate
from evalstore.planning.open_project import open_project, open_store
from evalstore.planning.options import GO_ON, ApprovedPlan
from evalstore.planning.planner import make_plan, plan_cells, require_sound, resolve_scope
from evalstore.planning.reasons import Explainer
from evalstore.planning.settled_parts import SettledParts, find_settled
from evalstore.planning.settled_recorder import SettledRecorder
from evalstore.runs import Run, RunCandidate, RunCases, RunCommit, RunEvaluator
from evalstore.store.results import find_decisive, read_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from evalstore.operations.progress import ProgressListener
    from evalstore.operations.status_report import Status
    from evalstore.planning.cells import Cell
    from evalstore.planning.options import Location, RunOptions, SelectionOptions
    from evalstore.planning.plan import Plan
    from evalstore.planning.planner import Scope
    from evalstore.planning.project import Project
    from evalstore.results import Result


BATCH = 4_000
"""About the number of cells that are planned and carried out together, to save memory."""
LONGEST = 2 * BATCH
"""The most cells of one file in a batch."""


def plan_run(location: Location, selection: SelectionOptions, options: RunOptions) -> Status:
    """Return what `run` would do, without doing it; raises `RevisionError` for its baseline."""
    return offer_run(location, selection, options)[0]


def offer_run(
    location: Location, selection: SelectionOptions, options: RunOptions
) -> tuple[Status, ApprovedPlan]:
    """Return what `run` would do, and the plan to pass to it when the user agrees."""
    with open_project(location, create=True) as project:
        require_sound(project, selection, hint=GO_ON)
        find_baseline(location, project, options, lambda _text: None)
        plan = make_plan(project, selection, judge_only=options.judge_only)
        status = describe_plan(project, plan, selection)
        return status, ApprovedPlan(status.ask, status.judge, status.cost, frozenset(plan.todo()))


def run(
    location: Location,
    selection: SelectionOptions,
    options: RunOptions,
    listener: ProgressListener,
    only: Callable[[Cell], bool] | None = None,
) -> RunReport:
    """Make the missing calls and judgements, and record the run.

    With `only`, just for the selected cells for which it is true. Raises `WorkspaceError` when
    files have errors, before any call is made.
    """
    with open_project(location, create=True, keep=True) as project:
        require_sound(project, selection, hint=GO_ON)
        baseline = find_baseline(location, project, options, listener.note)
        clock = Clock(_latest_time(project, selection))
        started = clock()
        is_whole = only is None and not options.judge_only
        before = project.store.measure_extent()
        settled = find_settled(project, selection) if is_whole else SettledParts()
        scope = resolve_scope(
            project, selection, judge_only=options.judge_only, begun=started, settled=settled
        )
        recorder = SettledRecorder(project, scope, selection if is_whole else None)
        if only is not None:
            scope, selection = narrow(scope, selection, only)
        plans = Plans(project, scope)
        totals = RunTotals(
            project, started, project.settings.verdict, plans.shared, scope.settled, recorder
        )
        survey = plans.survey(lambda plan: totals.add(plan, ExecutionCounts()))
        if options.agreed:
            keep_to(options.agreed, survey, plans.todo(), plans.price)
        if survey.asks or survey.waiting:
            for remote in find_unread_remotes(project, selection):
                listener.note(unread_text(remote))
        get_leave(project, survey, plans.price, options, listener)
        snapshot = _store_workspace(project)
        if survey.is_empty:
            outcome = ExecutionCounts()
            for plan in plans.take():
                totals.add(plan, outcome)
        else:  # these modules take as long to import as all others together
            from evalstore.operations.run_control import carry_out_plans

            outcome = carry_out_plans(
                project, survey, plans.take(), totals.add, clock, options, listener
            )
        totals.add_settled()
        about = replace(selection, keep_going=bool(project.left_out))
        finished = _FinishedRun(about, options, totals, outcome, snapshot, started, clock())
        recorded = project.store.record_run(_make_run(project, finished))
        if not (outcome.interrupted or outcome.over_budget or outcome.stopped_at_failure):
            recorder.save(before, outcome.asked + outcome.recorded, outcome.judged)
        report = _make_report(location, project, scope, finished, recorded)
        _compare(project, report, recorded, options, baseline)
        decide(project, report, options)
        return report


def _compare(
    project: Project,
    report: RunReport,
    recorded: Run,
    options: RunOptions,
    baseline: Baseline | None,
) -> None:
    """Compare a run with earlier runs, and read the feedback on its new failures.

    An earlier run that cannot be read is an error only where the gate depends on it.
    """
    try:
        folder = project.settings.paths["tests"]
        changes = find_verdict_changes(project.store, folder, recorded, known_parts(project))
        shown = changes.failures[:MOST_SHOWN] if changes else []
        if options.fail_on == "regression" and options.threshold is None:
            report.regressions = [
                regression
                for regression in find_regressions(project.store, folder, recorded, baseline)
                if not reaches_threshold(project, report.totals, regression.result.file)
            ]
            shown += [regression.result for regression in report.regressions[:MOST_SHOWN]]
        ids = find_decisive(project.store, shown)
        report.totals.feedback |= project.store.find_feedback(ids)
        report.changes = changes
    except StoreError as problem:
        if options.fail_on == "regression":
            raise
        report.warnings.append(f"the verdicts are not compared with earlier runs: {problem}")


def _latest_time(project: Project, selection: SelectionOptions) -> int:
    """Return the time after which the run must start, in microseconds since 1970.

    With `refresh` and `retry_errors` new results are distinguished from stored ones by time.
    """
    newest = project.store.find_runs(limit=1)
    ended = newest[0].ended if newest else 0
    if selection.refresh or selection.retry_errors:
        return max(ended, project.store.newest_time())
    return ended


def _make_report(
    location: Location, project: Project, scope: Scope, finished: _FinishedRun, recorded: Run
) -> RunReport:
    """Return the report of a recorded run; its gate is not decided yet."""
    options, outcome = finished.options, finished.outcome
    return RunReport(
        run=recorded.id,
        status=recorded.status,
        asked=outcome.asked,
        recorded=outcome.recorded,
        judged=outcome.judged,
        judged_by_checks=outcome.judged_by_checks,
        reused=recorded.reused,
        failed=outcome.failed,
        failures=outcome.failures,
        hopeless=outcome.permanent_failures,
        cost=recorded.cost,
        judge_cost=outcome.judge_cost,
        spending=list(recorded.spending),
        saved=round(finished.totals.saved, 8),
        seconds=(finished.ended - finished.started) / 1e6,
        stopped_at_failure=outcome.stopped_at_failure,
        time_is_up=outcome.time_is_up,
        is_refresh=finished.selection.refresh,
        judge_only=options.judge_only,
        gate="undetermined",
        exit_code=OK,
        totals=finished.totals,
        lines=lambda: _read_lines(location, recorded),
        skipped=[
            (pair.file, pair.row, pair.model, ", ".join(pair.lacks)) for pair in scope.skipped
        ],
        warnings=[
            *project.warnings,
            *(f"{problem.place}: {problem.message}" for problem in project.reading.problems),
        ],
        untrusted=project.code.named,
        left_out=project.left_out,
        gate_off=options.fail_on == "none" and options.threshold is None,
    )


def _read_lines(location: Location, run: Run) -> Iterator[tuple[Result, str]]:
    with open_store(location) as store:
        yield from read_lines(store, run)


class Plans:
    """The plans of a scope, batch by batch, in the order of files and rows.

    Each is made when it is needed, and takes the results of the previous ones into account.
    `survey` makes them once more; a scope of one batch is planned only once.
    """

    def __init__(self, project: Project, scope: Scope) -> None:
        self._project = project
        self._scope = scope
        count = max(1, round(len(scope.cells) / BATCH))
        self._size = ceil(len(scope.cells) / count)
        self._only = plan_cells(project, scope, [*scope.cells]) if count == 1 else None
        self.shared = set[str]() if count == 1 else find_shared(scope.cells)
        """Ids of the questions that several batches may ask."""
        self._done = 0
        """How many of the first batches are done, as nothing was to be done for them."""
        self._is_done = False
        """Whether these are all batches."""

    def take(self) -> Iterator[Plan]:
        """Yield the plans to carry out; cells are removed from the scope as they are planned."""
        if self._only is not None:
            yield self._only
            return
        if self._is_done:
            return
        cells = batches(take_out(self._scope.cells), self._size, LONGEST)
        for batch in islice(cells, self._done, None):
            yield plan_cells(self._project, self._scope, batch)

    def _once(self) -> Iterator[Plan]:
        """Yield the plans before any is carried out; a question of several is only in the first."""
        if self._only is not None:
            yield self._only
            return
        planned: dict[str, int] = {}
        judged = set[tuple[object, ...]]()
        for cells in batches(self._scope.cells, self._size, LONGEST):
            plan = plan_cells(self._project, self._scope, cells)
            judgements, plan.judgements = plan.judgements, []
            for judgement in judgements:
                if self.shared.isdisjoint(judgement.cell.questions):
                    plan.judgements.append(judgement)
                elif (place := (*judgement.place, judgement.sessions)) not in judged:
                    judged.add(place)
                    plan.judgements.append(judgement)
            asks, plan.asks = plan.asks, []
            for ask in asks:
                question = ask.question_id
                before = planned.get(question, 0)
                if ask.count > before:
                    plan.asks.append(replace(ask, count=ask.count - before))
                    if question in self.shared:
                        planned[question] = ask.count
            yield plan

    def survey(self, finish: Callable[[Plan], None]) -> PlanTotals:
        """Return the totals of all plans.

        The plans at the beginning for which nothing is to be done are finished at once: `take`
        leaves them out.
        """
        survey = PlanTotals()
        is_empty = self._only is None
        for plan in self._once():
            is_empty = is_empty and not (plan.asks or plan.judgements or plan.waiting_asks)
            survey.add(plan)
            if is_empty:
                finish(plan)
                self._done += 1
        self._is_done = is_empty
        return survey

    def todo(self) -> Iterator[object]:
        """Yield all items of the plans."""
        for plan in self._once():
            yield from plan.todo()

    def price(self) -> float | None:
        """Return the estimated cost in USD; None if a price is not known."""
        explainer = Explainer(self._project)
        prices = [
            estimate(self._project, explainer.asks(plan), explainer.judgements(plan)).usd
            for plan in self._once()
        ]
        return None if None in prices else sum(price for price in prices if price is not None)


def _store_workspace(project: Project) -> str:
    """Store the versions of the workspace and its snapshot, then save the index; returns its id."""
    nodes = dict(project.reading.nodes)
    root = project.store_versions()
    project.reading.save_index(project.workspace)
    assert nodes.keys() == project.reading.files.keys()
    return root


# --- recording


class _FinishedRun(NamedTuple):
    """The facts of a run whose plans are carried out, for its record and its report."""

    selection: SelectionOptions
    options: RunOptions
    totals: RunTotals
    outcome: ExecutionCounts
    snapshot: str
    started: int
    ended: int


def _make_run(project: Project, finished: _FinishedRun) -> Run:
    """Return the run to record; stores its results."""
    settings, outcome = project.settings, finished.outcome
    return Run(
        id="",
        nonce=secrets.token_hex(8),
        started=finished.started,
        ended=finished.ended,
        status=_status(finished.totals, outcome),
        message=finished.options.message,
        snapshot=finished.snapshot,
        results=finished.totals.store_tree(),
        candidates=tuple(
            RunCandidate(candidate.id, candidate.model, candidate.temperature)
            for candidate in project.candidates(finished.selection)
        ),
        evaluators=tuple(
            RunEvaluator(judge.id, judge.evaluator) for judge in project.judges(finished.selection)
        ),
        settings={
            "attempts": settings.attempts,
            "evaluationsPerEvaluator": settings.evaluations_per_evaluator,
            "verdict": settings.verdict,
            "maxTestOutputTokens": settings.max_test_output_tokens,
        },
        selection=fields_to_json(
            replace(finished.selection, paths=project.place_paths(finished.selection.paths)),
            defaults=False,
        ),
        judge_only=finished.options.judge_only,
        asked=outcome.asked,
        recorded=outcome.recorded,
        judged=outcome.judged,
        reused=finished.totals.answers - outcome.asked - outcome.recorded,
        failed=outcome.failed,
        verdicts=finished.totals.verdicts,
        cost=round(outcome.cost + outcome.judge_cost, 8) if outcome.priced else None,
        spending=describe_spending(outcome, settings),
        git=git_state(project.workspace.root),
        version=__version__,
        author=read_user_name(project.workspace.root),
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
    """Return the commit of the workspace and whether it has changes; None outside of git."""
    state = read_state(root)
    return RunCommit(state.commit, state.dirty) if state else None
