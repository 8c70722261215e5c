"""The command `run`: carry out the plan, and record the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from itertools import chain, islice, product
from typing import NamedTuple

from evalstore.core import hashing
from evalstore.core.clock import Clock
from evalstore.core.display import plural, short
from evalstore.core.errors import (
    INCOMPLETE,
    INTERRUPTED,
    NO,
    OK,
    STOPPED,
    USAGE,
    EvalstoreError,
    NothingSelectedError,
    StoreError,
    UnsuitedError,
)
from evalstore.core.hashing import ValueSet
from evalstore.core.runs import ProgressListener, Run, describe_run
from evalstore.core.values import SPECIAL_TAGS, Request, Result
from evalstore.files.json_output import fields_to_json
from evalstore.planning.cell_results import find_feedback
from evalstore.planning.cells import Cell
from evalstore.planning.first_pushes import Baseline, find_baseline
from evalstore.planning.open_project import locate_store, open_project, open_store, open_workspace
from evalstore.planning.options import (
    GO_ON,
    ApprovedPlan,
    Location,
    RunOptions,
    SelectionOptions,
    is_chosen_by_verdict,
)
from evalstore.planning.plan import FiledItems
from evalstore.planning.planner import (
    Scope,
    SettledRecorder,
    measure_extent,
    require_sound,
    resolve_scope,
)
from evalstore.planning.project import Project
from evalstore.planning.settled_parts import SettledParts, find_settled
from evalstore.planning.status_report import CostLimit, Status
from evalstore.results.answer.verdict_explanation import former_results
from evalstore.results.edits.edits import find_unchanged_parts
from evalstore.results.flips.regressions import find_regressions, without_files
from evalstore.results.flips.verdict_changes import find_verdict_changes
from evalstore.results.log.failures import CallFailures, group_failures
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.limits.budget import estimate_call_cost, fits_in
from evalstore.runs.execution.sharing.run_share import RunnerLauncher, add_shares
from evalstore.runs.run_preview import Plans, PlanTotals, get_leave, keep_to, most_cost
from evalstore.runs.run_record import (
    FinishedRun,
    RunOrigin,
    carry_out,
    git_state,
    make_run,
    nonce_of,
    record,
    removed_if_unbegun,
    restored,
    share_run,
)
from evalstore.runs.run_report import MOST_SHOWN, RunReport, RunTotals, ThresholdGate
from evalstore.runs.status.remote_answers import find_unread_remotes, unread_text
from evalstore.runs.status.status import (
    KindReasons,
    WorkReasons,
    describe_scope,
    note_scripts,
    warn_of_edited_scripts,
)
from evalstore.store import Store
from evalstore.store.events import is_all_scripted
from evalstore.store.location import DatabaseAddress
from evalstore.store.results import ensure_sources, iterate_cases, iterate_results
from evalstore.store.shared_runs import SharedRun, describe_unreadable
from evalstore.workspace.git import read_user_name
from evalstore.workspace.reader import read_sources
from evalstore.workspace.settings.settings import Settings, Threshold


def plan_run(location: Location, selection: SelectionOptions, options: RunOptions) -> Status:
    """Return what `run` would do, without doing it; raises `RevisionError` for its baseline.

    The items of the plan are in a temporary file.
    """
    with open_scope(location, selection, options) as (project, selection, scope):
        survey = PlanTotals()
        status = describe_scope(project, scope, selection, FiledItems(), survey.add)
        status.short_limit = find_short_limit(project, options, status, survey)
        return status


@contextmanager
def open_scope(
    location: Location,
    selection: SelectionOptions,
    options: RunOptions,
    only: Callable[[Cell], bool] | None = None,
) -> Iterator[tuple[Project, SelectionOptions, Scope]]:
    """Open a project with the cells that a run would plan, selected by whole names of models.

    With `only`, just the selected cells for which it is true.
    """
    with open_project(location, create=True) as project:
        require_sound(project, selection, hint=GO_ON)
        selection = project.with_whole_names(selection)
        find_baseline(location, project, options, lambda _text: None)
        is_whole = only is None and not options.judge_only
        settled = find_unchanged_parts(project, selection) if is_whole else SettledParts()
        scope = resolve_scope(project, selection, judge_only=options.judge_only, settled=settled)
        if only is not None:
            scope, selection = narrow(scope, selection, only)
        yield project, selection, scope


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
        launcher = make_launcher(project, location, options, listener)
        require_sound(project, selection, hint=GO_ON)
        selection = project.with_whole_names(selection)
        record_abandoned(project.store, location, listener.note)
        baseline = find_baseline(location, project, options, listener.note)
        warn_of_edited_scripts(project, selection)
        clock = Clock(_latest_time(project, selection))
        started = clock()
        is_whole = only is None and not options.judge_only
        extent = measure_extent(project, selection) if is_whole else None
        settled = find_settled(project, selection) if is_whole else SettledParts()
        scope = resolve_scope(
            project, selection, judge_only=options.judge_only, begun=started, settled=settled
        )
        recorder = SettledRecorder(project, scope, selection) if is_whole else None
        if only is not None:
            scope, selection = narrow(scope, selection, only)
        # The survey stores results and judgements, which refer to the versions of the workspace.
        about = replace(selection, keep_going=bool(project.left_out))
        snapshot = project.store_versions()
        project.reading.save_index(project.workspace)
        origin = RunOrigin(
            cases=snapshot,
            started=started,
            selection=fields_to_json(
                replace(about, paths=project.place_paths(about.paths)), defaults=False
            ),
            message=options.message,
            git=git_state(project.workspace.root),
            author=read_user_name(project.workspace.root),
            sources=ensure_sources(project.store, read_sources(project.workspace, project.reading)),
        )
        plans = Plans(project, scope)
        totals = RunTotals(project, started, plans.shared, scope.settled, recorder)
        survey = plans.survey(totals.add)
        if options.agreed:
            keep_to(options.agreed, survey, plans.todo(), plans.price)
        asks = bool(survey.asks or survey.waiting)
        if asks or survey.judgements > survey.by_checks:
            for remote in find_unread_remotes(project, selection):
                listener.note(unread_text(remote, asks=asks))
        for warning in _warnings(project):
            listener.warn(warning)
        get_leave(project, survey, plans.price, options, listener)
        shared = None
        if (project.store.is_remote or launcher) and not survey.is_empty:
            shared = share_run(project, origin, options, survey, launcher)

        def plan_again() -> tuple[Plans, RunTotals]:
            whole = resolve_scope(project, selection, judge_only=options.judge_only, begun=started)
            again = Plans(project, whole if only is None else narrow(whole, selection, only)[0])
            return again, RunTotals(project, started, again.shared)

        with removed_if_unbegun(project.store, shared):
            totals, outcome, *_ = carry_out(
                project, survey, plans, totals, clock, options, listener, shared, plan_again
            )
        totals.add_settled()
        finished = FinishedRun(about, options, totals, outcome, origin, clock())
        recorded = record(project, finished, shared, listener.note)
        was_stopped = outcome.interrupted or outcome.over_budget or outcome.stopped_at_failure
        if recorder and extent and not was_stopped:
            recorder.save(extent)
        note_scripts(project, selection, {id for id, _ in outcome.spending})
        report = _make_report(location, project, scope, finished, recorded)
        _compare(project, report, recorded, options, baseline)
        decide(project, report, options, recorded.results)
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
        changes = find_verdict_changes(project.store, folder, recorded)
        failures = chain.from_iterable(changes.failures) if changes else ()
        shown = [*islice(failures, MOST_SHOWN)]
        if options.fail_on == "regression" and options.threshold is None:
            report.regressions = without_files(
                find_regressions(project, recorded, baseline),
                partial(reaches_threshold, project, report.totals),
            )
            shown += [regression.result for regression in report.regressions[:MOST_SHOWN]]
        decisions = (result.decision for result in shown)
        report.totals.feedback |= find_feedback(project.store, decisions)
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
    location: Location, project: Project, scope: Scope, finished: FinishedRun, recorded: Run
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
        seconds=(recorded.ended - recorded.started) / 1e6,
        stopped_at_failure=outcome.stopped_at_failure,
        time_is_up=outcome.time_is_up,
        is_refresh=finished.selection.refresh,
        is_by_verdict=is_chosen_by_verdict(recorded.selection),
        judge_only=options.judge_only,
        gate="undetermined",
        exit_code=OK,
        totals=finished.totals,
        used_again=finished.totals.used_again,
        lines=lambda: _read_lines(location, recorded),
        skipped=scope.cells.skipped,
        warnings=_warnings(project),
        untrusted=project.code.named,
        is_simulated=is_all_scripted(project.store, recorded),
        left_out=project.left_out,
        gate_off=options.fail_on == "none" and options.threshold is None,
    )


def _warnings(project: Project) -> list[str]:
    """Return the warnings about models, keys and files."""
    return [*project.warnings, *(problem.sentence for problem in project.reading.problems)]


def _read_lines(location: Location, run: Run) -> Iterator[tuple[Result, str]]:
    """Yield the results of a run, each with its feedback: of a labelled one, only the note."""
    with open_store(location) as store:
        for batch in iterate_results(store, run):
            feedback = find_feedback(store, (result.decision for result in batch))
            for result in batch:
                yield result, feedback.get(result.decision, "")


# --- decides the gate of a run, and its exit code


def decide(
    project: Project, report: RunReport, options: RunOptions, results: str | None = None
) -> None:
    """Set the gate and the exit code of a report.

    The gate passes only if there are verdicts, and if no missing verdict could make it fail.
    `results` is the id of the tree of results, for the thresholds of the settings.
    """
    covered: Mapping[str, Mapping[str | None, int]] = {}
    report.missed = []
    if results and project.settings.thresholds:
        report.thresholds, found = _find_gates(project.store, project.settings, results)
        if options.fail_on == "failure" and options.threshold is None:
            report.missed = [gate for gate in report.thresholds if not gate.reached]
            covered = found
    failing = bool(report.missed) or _is_failing(project, report, options, covered)
    counts = report.totals.verdicts
    # A regression is found without its decision: undecided is not a pass either.
    is_by_rate = options.threshold is not None
    needs_decisions = is_by_rate if options.fail_on == "regression" else options.fail_on != "none"
    open_ended = bool(
        counts["pending"]
        or report.failed
        or (counts["undecided"] and needs_decisions)
        or (report.totals.rate.rate is None and not report.gate_off)
    )
    if failing:
        report.gate = "failed"
    elif report.gate_off:
        report.gate = "off"
    elif open_ended or report.status in ("interrupted", "over budget"):
        report.gate = "undetermined"
    else:
        report.gate = "passed"
    if report.status == "interrupted":
        report.exit_code = INTERRUPTED
    elif report.status == "over budget":
        report.exit_code = STOPPED
    elif failing:
        report.exit_code = NO
    elif open_ended:
        report.exit_code = INCOMPLETE
    if report.left_out and report.exit_code not in (INTERRUPTED, STOPPED):
        report.exit_code = USAGE


def reaches_threshold(project: Project, totals: RunTotals, file: str) -> bool | None:
    """Return whether enough cases of a test file pass for its own threshold.

    None if it has none, or nothing of it is judged.
    """
    threshold, words = project.reading.files[file].threshold, totals.files[file]
    judged = words.total() - words["pending"] - words[None]
    return words["pass"] / judged >= threshold if threshold is not None and judged else None


def _is_failing(
    project: Project,
    report: RunReport,
    options: RunOptions,
    covered: Mapping[str, Mapping[str | None, int]],
) -> bool:
    """Return whether verdicts fail the gate; `covered` are counted that do not fail it alone."""
    if options.threshold is not None:
        rate = report.totals.rate.rate
        return rate is not None and rate < options.threshold
    bad: tuple[str, ...] = {
        "failure": ("fail", "error"),
        "undecided": ("fail", "error", "undecided"),
        "error": ("error",),
        "regression": (),
        "none": (),
    }[options.fail_on]
    if options.fail_on == "regression":
        return bool(report.regressions)
    for file, words in report.totals.files.items():
        reached = reaches_threshold(project, report.totals, file)
        if reached is not None and options.fail_on == "failure":
            if not reached:
                return True
        elif any(words[word] > covered.get(file, {}).get(word, 0) for word in bad):
            return True
    return False


# --- the gates of a run that the thresholds of the settings make, by tag, file or model


_Words = dict[str, Counter[str | None]]
"""Test file -> how many results have each verdict."""


def _find_gates(
    store: Store, settings: Settings, results: str
) -> tuple[list[ThresholdGate], _Words]:
    """Return the gates of a run, in the order of the settings, and the results that have one."""
    gates: list[ThresholdGate] = []
    covered: _Words = {}
    groups: list[dict[tuple[str, ...], Counter[str | None]]] = [{} for _ in settings.thresholds]
    for file, model, kind, verdict, count in store.count_results_by_kind(results):
        tags, is_covered = kind.get("tags", ()), False
        for threshold, counts in zip(settings.thresholds, groups, strict=True):
            if set(threshold.where) <= set(tags):
                is_covered = True
                for group in _groups(threshold, tags, file, model):
                    counts.setdefault(group, Counter())[verdict] += count
        if is_covered:
            covered.setdefault(file, Counter())[verdict] += count
    for threshold, counts in zip(settings.thresholds, groups, strict=True):
        for group, words in sorted(counts.items()):
            judged = words.total() - words[None]
            by = dict(zip(threshold.by, group, strict=True))
            gates.append(
                ThresholdGate(threshold.where, by, threshold.pass_rate, words["pass"], judged)
            )
    return gates, covered


def _groups(
    threshold: Threshold, tags: Sequence[str], file: str, model: str
) -> Iterator[tuple[str, ...]]:
    """Yield the groups of a result, several when the gates are by tag."""
    by_tag = [tag for tag in tags if tag not in SPECIAL_TAGS and tag not in threshold.where]
    values = {"tag": by_tag, "file": [file], "model": [model]}
    return product(*(values[name] for name in threshold.by))


# --- narrows the scope of a run to single cells, and describes what is left as a selection


_MOST_ROWS = 20
"""The most rows that a selection names; of more, it names the files."""


def narrow(
    scope: Scope, selection: SelectionOptions, keep: Callable[[Cell], bool]
) -> tuple[Scope, SelectionOptions]:
    """Return the scope with only those cells for which `keep` is true, and its selection.

    The selection names the paths and the candidates that are left, if some are left out. Raises
    `NothingSelectedError` when no cell is left.
    """
    cells = scope.cells.keep(map(keep, scope.cells))
    if not cells:
        raise NothingSelectedError("nothing is selected")
    if len(cells) == len(scope.cells):
        return scope, selection
    models = {cell.candidate.id for cell in scope.cells}
    kept_models = {cell.candidate.id for cell in cells}
    return (
        replace(scope, cells=cells),
        replace(
            selection,
            paths=_name_paths(scope.cells, cells),
            models=tuple(sorted(kept_models)) if kept_models < models else selection.models,
        ),
    )


def _name_paths(every: Collection[Cell], kept: Collection[Cell]) -> tuple[str, ...]:
    """Return the files with the rows that are left, or only the files if these are many."""
    total = Counter(file for file, _ in {(cell.file, cell.case.row) for cell in every})
    rows: dict[str, dict[str, None]] = {}
    for cell in kept:
        rows.setdefault(cell.file, {})[cell.case.row] = None
    paths = [
        path
        for file, names in rows.items()
        for path in ([file] if len(names) == total[file] else [f"{file}::{row}" for row in names])
    ]
    return tuple(paths) if len(paths) <= _MOST_ROWS else tuple(rows)


# --- compares the limit on the cost of a run with what its plan is likely to cost


_ROUNDING = 1e-6
"""Allows for the rounding errors of floats, so that $0.30 of $0.80 are 15 of 40."""


def find_short_limit(
    project: Project, options: RunOptions, status: Status, survey: PlanTotals
) -> CostLimit | None:
    """Return the limit of a run of these plans if it is likely to reach it, else None.

    Answers and their judgements are paid in turn, so it lasts for the same part of both. A call is
    made only where the longest answer to it would fit in the limit.
    """
    usd = most_cost(project, options)
    if usd is None:
        return None
    name = "maxCost" if options.max_cost is None else "--max-cost"
    if unpriced := tuple(id for id in survey.models if not project.has_known_costs(id)):
        return CostLimit(usd, name, None, None, unpriced)
    judged = project.settings.max_evaluation_output_tokens
    sizes = survey.sizes | {(id, judged) for id in survey.first_judges}
    requests = ((id, Request("", (), max_output_tokens=most)) for id, most in sizes)
    costs = [estimate_call_cost(project.price_of(id), request, 0) for id, request in requests]
    if costs and not fits_in(usd, min(costs)):
        return CostLimit(usd, name, 0, 0, call=min(costs))
    if status.cost is None or status.cost <= usd:
        return None
    part = usd / status.cost
    by_models = status.judge - status.by_checks
    answers, judgements = (int(count * part + _ROUNDING) for count in (status.ask, by_models))
    return CostLimit(usd, name, answers, judgements)


# --- records runs in progress as interrupted when all of their programs have ended or fallen sile


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
        outcome = ExecutionCounts(interrupted=True)
        add_shares(outcome, store.find_shares(run.id))
        done = f"{plural(outcome.asked, 'answer')} and {plural(outcome.judged, 'verdict')}"
        if run.description.get("problem"):
            if store.record_abandoned_run(run, None):
                note(f"an abandoned run is not recorded; its {done} are stored")
            continue
        try:
            record = _restore(store, location, run, outcome)
        except EvalstoreError as error:
            note(f"the abandoned run {run.id[:8]} cannot be recorded: {error}")
            continue
        if store.record_abandoned_run(run, record):
            id, _ = hashing.identify(describe_run(record))
            note(f"an abandoned run is recorded as interrupted, with {done}: {short(id)}")


def _restore(store: Store, location: Location, run: SharedRun, outcome: ExecutionCounts) -> Run:
    """Return the record of a run: its results are those that are stored now."""
    with restored(store, location, run) as known:
        plans, totals = known.plan()
        for plan in plans.take():
            totals.add(plan)
        ended = known.origin.started + int(1e6 * (run.elapsed - run.silence))
        finished = FinishedRun(known.selection, known.options, totals, outcome, known.origin, ended)
        return make_run(known.project, finished, nonce_of(run.id))


# --- starts the runners of a run


_NEEDS_SCHEDULER = (
    "name one, as in '--scheduler tcp://HOST:8786'; '--scheduler local' starts one on this machine"
)


def make_launcher(
    project: Project, location: Location, options: RunOptions, listener: ProgressListener
) -> RunnerLauncher | None:
    """Return what starts the runners of a run; None when its options ask for none.

    Raises `EvalstoreError` for options that cannot be combined, a missing package, or a store that
    the runners could not reach.
    """
    if options.executor is None:
        for name, value in (("--workers", options.workers), ("--scheduler", options.scheduler)):
            if value is not None:
                raise UnsuitedError(
                    f"'{name}' needs '--executor'",
                    hint="add '--executor processes' (on this machine) or '--executor dask'",
                )
        return None
    root, store = project.workspace.root, locate_store(project.workspace, location)
    if options.executor == "processes":
        if options.scheduler is not None:
            raise UnsuitedError("'--scheduler' needs '--executor dask'")
        from evalstore.runs.runners import RunnerProcesses

        return RunnerProcesses(root, location, store, options.workers, listener.note)
    if options.scheduler is None:
        raise EvalstoreError("'--executor dask' needs a scheduler", hint=_NEEDS_SCHEDULER)
    if find_spec("distributed") is None:
        raise EvalstoreError(
            "'--executor dask' needs the package 'distributed'",
            hint="install it with: pip install 'evalstore[dask]'",
        )
    from evalstore.runs.runners import DaskRunners

    if not isinstance(store, DatabaseAddress):
        raise EvalstoreError(
            f"the store '{store}' is a file, which the workers of dask cannot share",
            hint="use a PostgreSQL database, or '--executor processes' on this machine",
        )
    return DaskRunners(root, store, options.scheduler, options.workers, listener.note)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run that is requested in the browser, with the options of the command line."""

    title: str
    selection: SelectionOptions = field(default_factory=SelectionOptions)
    judge_only: bool = False
    before: tuple[Result, ...] = ()
    """The previous results that are judged again: these alone, of all that is selected."""
    prompts: Collection[str | None] = ()
    """The system prompts that were there when these were judged."""

    @property
    def is_of_file(self) -> bool:
        """Return whether the run is about the pending work of one test file."""
        return bool(self.selection.paths) and not self.before

    @property
    def only(self) -> Callable[[Cell], bool] | None:
        """Return whether a selected cell is meant; None when all are."""
        if not self.before:
            return None
        find = former_results(self.before, self.prompts)
        return lambda cell: find(cell.case, cell) is not None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended."""

    report: RunReport
    repeated: tuple[tuple[Result, Result], ...]
    """The results that were judged again: pairs of the previous and the new result."""
    failures: tuple[CallFailures, ...]


ALL = RunRequest("run pending work")


def of_file(location: Location, file: str) -> RunRequest:
    """Return the request to run a test file, or all files if it is not a test file.

    That of the only test file is one of all pending work.
    """
    workspace = open_workspace(location)
    files = workspace.find_files("tests")
    if file not in files:
        return ALL
    if len(files) == 1:
        return replace(ALL, title=f"run {file}")
    return RunRequest(f"run {file}", SelectionOptions(paths=(str(workspace.root / file),)))


def again(
    location: Location, results: Sequence[Result], prompts: Collection[str | None]
) -> RunRequest:
    """Return the request to judge results again whose rows the workspace still has.

    `prompts` are all system prompts of the side that the results are of. Raises
    `NothingSelectedError` when the workspace has none of these rows.
    """
    wanted = {(result.file, result.row) for result in results}
    with open_project(location) as project:
        files = project.reading.files
        rows = {
            place: case.prompts
            for path in {path for path, _ in wanted} & files.keys()
            for case in files[path].cases
            if (place := (path, case.row)) in wanted
        }
        root = project.workspace.root
    before = tuple(
        result
        for result in dict.fromkeys(results)
        if (now := rows.get((result.file, result.row))) is not None
        and (result.prompt in now or not {*now[result.prompt_number :][:1]} & {*prompts})
    )
    if not before:
        with_prompts = " with these system prompts" if rows else ""
        raise NothingSelectedError(
            f"the workspace no longer has any of these cases{with_prompts}",
            hint="what a run has recorded stays as it is; only the workspace is judged again",
        )
    here = dict.fromkeys((result.file, result.row) for result in before)
    models = tuple(dict.fromkeys(result.model for result in results))
    cells = {(result.file, result.row, result.model) for result in results}
    every = len(cells) == len(wanted) * len(models)
    whose = f" of {models[0]}" if len(models) == 1 else ""
    return RunRequest(
        f"judge {plural(len(before), 'result')}{whose} again",
        SelectionOptions(
            paths=tuple(f"{root / file}::{row}" if row else str(root / file) for file, row in here),
            models=models if every else (),
            refresh=True,
        ),
        judge_only=True,
        before=before,
        prompts=prompts,
    )


class PlanPreview(NamedTuple):
    """The plan of a run, and the limit on its cost."""

    status: Status
    """Without a list of items."""
    reasons: Mapping[str, KindReasons]
    """What would be done and why, by kind."""
    max_cost: float | None
    agreed: ApprovedPlan
    """The plan to pass to `run` when the user agrees."""


def plan(
    location: Location, request: RunRequest, *, offline: bool = False, max_cost: float | None = None
) -> PlanPreview:
    """Return the plan of a request, with its reasons and cost; raises `EvalstoreError`."""
    selection = replace(request.selection, offline=offline)
    options = RunOptions(judge_only=request.judge_only, max_cost=max_cost)
    reasons, todo = WorkReasons(), ValueSet()
    with open_scope(location, selection, options, request.only) as (project, selection, scope):
        status = describe_scope(
            project, scope, selection, reasons, lambda plan: todo.update(plan.todo())
        )
        agreed = ApprovedPlan(status.ask, status.judge, status.cost, todo)
        return PlanPreview(status, reasons.kinds, most_cost(project, options), agreed)


def carry_out_request(
    location: Location,
    request: RunRequest,
    listener: ProgressListener,
    planned: PlanPreview,
    *,
    offline: bool = False,
) -> RunEnd:
    """Carry out a request; raises `EvalstoreError` if the plan exceeds the approved one."""
    options = RunOptions(
        judge_only=request.judge_only,
        yes=True,
        agreed=planned.agreed,
        max_cost=planned.max_cost,
        fail_on="none",
    )
    selection = replace(request.selection, offline=offline)
    report = run(location, selection, options, listener, request.only)
    with open_store(location) as store:
        pairs = tuple(_pairs(store, request, report.run)) if request.before else ()
    return RunEnd(
        report=report,
        repeated=pairs,
        failures=tuple(group_failures(location, report.failures)),
    )


def _pairs(store: Store, request: RunRequest, run: str) -> Iterator[tuple[Result, Result]]:
    find = former_results(request.before, request.prompts)
    for batch in iterate_cases(store, store.load_run(run)):
        yield from ((was, result) for result, case in batch if (was := find(case, result)))
