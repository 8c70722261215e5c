"""Plans and carries out the runs of the browser."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from evalstore.errors import NothingSelectedError
from evalstore.operations.failure_hints import hint_for
from evalstore.operations.run import offer_run, run
from evalstore.operations.verdict_changes import find_changes
from evalstore.operations.views.run_text import RunSummary, summarise
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import RunOptions, SelectionOptions
from evalstore.store.results import read_results

if TYPE_CHECKING:
    from evalstore.operations.progress import ProgressListener
    from evalstore.operations.run_report import RunReport
    from evalstore.operations.status_report import Status
    from evalstore.operations.verdict_changes import VerdictChanges
    from evalstore.planning.code_trust import Untrusted
    from evalstore.planning.options import ApprovedPlan, Location
    from evalstore.results import Failure, Result
    from evalstore.store import Store


_LOOKED_THROUGH = 4
"""Of the newest failures so many times those of a run: others may have met some meanwhile."""


@dataclass(frozen=True, slots=True)
class RunRequest:
    """A run that is requested in the browser, with the options of the command line."""

    title: str
    wanted: SelectionOptions = field(default_factory=SelectionOptions)
    judge_only: bool = False
    before: tuple[Result, ...] = ()
    """What is to be judged again, as it was."""


@dataclass(frozen=True, slots=True)
class PlanPreview:
    """What would be done, and the bound on its cost."""

    status: Status
    max_cost: float | None
    agreed: ApprovedPlan
    """What a person agrees to who is shown this."""


@dataclass(frozen=True, slots=True)
class CallFailures:
    """Failed calls, in the same way."""

    count: int
    model: str
    kind: str
    """The class: `timeout`, `http` …"""
    status: int | None
    message: str
    hint: str | None


@dataclass(frozen=True, slots=True)
class RunEnd:
    """How a run ended."""

    summary: RunSummary
    repeated: tuple[tuple[Result, Result], ...]
    """What was judged again: the result before, and that of this run."""
    failures: tuple[CallFailures, ...]
    warnings: tuple[str, ...]
    untrusted: tuple[Untrusted, ...]
    """Python files that checks wait for."""


ALL = RunRequest("run what is missing")


def of_file(location: Location, file: str) -> RunRequest:
    """The request to run what is missing of a test file, or of all when it is another file."""
    workspace = open_workspace(location)
    if file not in workspace.find_files("tests", ".md"):
        return ALL
    return RunRequest(
        f"run what is missing of {file}", SelectionOptions(paths=(str(workspace.root / file),))
    )


def again(location: Location, results: Sequence[Result]) -> RunRequest:
    """To judge cells again, whose rows the workspace must still have.

    Raises `NothingSelectedError` when it has none of them.
    """
    with open_project(location) as project:
        rows = {
            (path, case.row) for path, file in project.reading.files.items() for case in file.cases
        }
        root = project.workspace.root
    places = list(dict.fromkeys((result.file, result.row) for result in results))
    here = [place for place in places if place in rows]
    if not here:
        raise NothingSelectedError(
            "the workspace has none of these cases any more",
            hint="what a run has recorded stays as it is; only the workspace is judged again",
        )
    models = tuple(dict.fromkeys(result.model for result in results))
    cells = {(result.file, result.row, result.model) for result in results}
    every = len(cells) == len(places) * len(models)
    count = len(here)
    whose = f" of {models[0]}" if len(models) == 1 else ""
    return RunRequest(
        f"judge {count:,} case{'s' * (count != 1)}{whose} again",
        SelectionOptions(
            paths=tuple(f"{root / file}::{row}" if row else str(root / file) for file, row in here),
            models=models if every else (),
            refresh=True,
        ),
        judge_only=True,
        before=tuple(
            dict.fromkeys(result for result in results if (result.file, result.row) in rows)
        ),
    )


def plan(
    location: Location, request: RunRequest, *, offline: bool = False, max_cost: float | None = None
) -> PlanPreview:
    """What would be done, why, and its price; raises `EvalstoreError`."""
    selection = replace(request.wanted, offline=offline)
    status, agreed = offer_run(location, selection, judge_only=request.judge_only)
    settled = open_workspace(location).settings.max_cost
    return PlanPreview(status, settled if max_cost is None else max_cost, agreed)


def carry_out(
    location: Location,
    request: RunRequest,
    listener: ProgressListener,
    planned: PlanPreview,
    *,
    offline: bool = False,
) -> RunEnd:
    """Do it, unless it would by now be more than was planned: that was shown and agreed to."""
    options = RunOptions(
        judge_only=request.judge_only,
        yes=True,
        agreed=planned.agreed,
        max_cost=planned.max_cost,
        fail_on="none",
    )
    report = run(location, replace(request.wanted, offline=offline), options, listener)
    return _ended(location, request, report)


def _ended(location: Location, request: RunRequest, report: RunReport) -> RunEnd:
    with open_store(location) as store:
        failures = tuple(_call_failures(store, report)) if report.failures else ()
        pairs = tuple(_pairs(store, request, report.run)) if request.before else ()
    return RunEnd(
        summary=summarise(report),
        repeated=pairs,
        failures=failures,
        warnings=tuple(report.warnings),
        untrusted=tuple(report.untrusted),
    )


def _call_failures(store: Store, report: RunReport) -> list[CallFailures]:
    """The failures of a run, those that read the same together, the most frequent first.

    The report counts them; the store has their classes, and also what others met meanwhile.
    """
    run = store.load_run(report.run)
    known = {
        f"{failure.model or failure.evaluator or ''}: {failure.message}": failure
        for _, failure in store.find_failures(limit=_LOOKED_THROUGH * report.failed)
        if failure.at >= run.started
    }
    by_count = sorted(report.failures.items(), key=lambda pair: -pair[1])
    return [_call_failure(line, count, known.get(line)) for line, count in by_count]


def _call_failure(line: str, count: int, stored: Failure | None) -> CallFailures:
    """What a line of the report is about; what was never called is not stored."""
    model, _, message = line.partition(": ")
    kind, status = (stored.kind, stored.status) if stored else ("not called", None)
    return CallFailures(count, model, kind, status, message, hint_for(kind, status, message))


def _pairs(store: Store, request: RunRequest, run: str) -> Iterator[tuple[Result, Result]]:
    results = read_results(store, store.load_run(run))
    now = {
        (result.file, result.row, result.prompt_number, result.model): result for result in results
    }
    for was in request.before:
        new_result = now.get((was.file, was.row, was.prompt_number, was.model))
        if new_result:
            yield was, new_result


def flips(location: Location, run: str) -> VerdictChanges | None:
    """What broke and what was fixed, compared with the last earlier verdict on each case.

    None when there is no earlier run.
    """
    folder = open_workspace(location).settings.paths["tests"]
    with open_store(location) as store:
        return find_changes(store, folder, store.load_run(run))
