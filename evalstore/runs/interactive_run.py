"""Plans and carries out the runs of the browser."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from evalstore.core.display import plural
from evalstore.core.errors import NothingSelectedError
from evalstore.core.hashing import ValueSet
from evalstore.core.runs import ProgressListener
from evalstore.core.values import Result
from evalstore.planning.cells import Cell
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import ApprovedPlan, Location, RunOptions, SelectionOptions
from evalstore.planning.status_report import Status
from evalstore.results.answer.verdict_explanation import former_results
from evalstore.results.log.failures import CallFailures, group_failures
from evalstore.runs.run import open_scope, run
from evalstore.runs.run_preview import most_cost
from evalstore.runs.run_report import RunReport
from evalstore.runs.status.status import KindReasons, WorkReasons, describe_scope
from evalstore.store import Store
from evalstore.store.results import iterate_cases


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
