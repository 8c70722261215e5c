"""Carries out the plans of a run, and records the run; alone or together with other programs."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from evalstore import __version__
from evalstore.core.clock import Clock
from evalstore.core.errors import EvalstoreError, StoreError
from evalstore.core.runs import (
    ProgressListener,
    Run,
    RunCandidate,
    RunCases,
    RunCommit,
    RunEvaluator,
)
from evalstore.core.values import Json
from evalstore.files.access import LARGEST_TEXT
from evalstore.files.atomic_write import write_whole
from evalstore.files.json_output import camel_case
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location, RunOptions, SelectionOptions
from evalstore.planning.planner import resolve_scope
from evalstore.planning.project import Project
from evalstore.runs.execution.execution_counts import ExecutionCounts
from evalstore.runs.execution.sharing.run_share import RunnerLauncher, SharedWork
from evalstore.runs.run_preview import Plans, PlanTotals, most_cost
from evalstore.runs.run_report import RunTotals, describe_spending
from evalstore.store import Store
from evalstore.store.leases import FORMAT, LARGEST, LEFT, NUMBERS, quoted
from evalstore.store.records import StoredRecord
from evalstore.store.shared_runs import SharedRun
from evalstore.store.trees.tree_nodes import read_tree
from evalstore.workspace.folder import WorkspaceFolder, variables_of
from evalstore.workspace.git import read_state
from evalstore.workspace.reader import read_workspace

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDERS = ("prompts", "models", "providers", "currencies")
"""The kinds of files that a runner needs."""
_OPTIONS = ("concurrency", "timeout", "retries", "judge_only", "max_time", "exit_first")
"""The options of a run that hold for all its runners."""


class RunOrigin(NamedTuple):
    """Where a run comes from: its cases, and who has begun it."""

    cases: str
    """The id of their snapshot."""
    started: int
    selection: dict[str, Json]
    message: str | None
    git: RunCommit | None
    author: str | None
    sources: str | None


def share_run(
    project: Project,
    origin: RunOrigin,
    options: RunOptions,
    survey: PlanTotals,
    launcher: RunnerLauncher | None = None,
) -> SharedWork:
    """Describe a run in the store, so that other programs can join it.

    If that is not possible, the run has no description, and others cannot join it; its limit of
    cost holds all the same. With a launcher of runners `EvalstoreError` is raised.
    """
    limit = most_cost(project, options)
    shared = SharedWork(secrets.token_hex(16), True, limit, launcher=launcher)
    description: Json = {
        "format": FORMAT,
        "version": __version__,
        "author": origin.author,
        "planned": {"ask": survey.asks, "judge": survey.judgements},
    }
    try:
        description |= {
            "files": {**_read_applications(project), **_read_files(project.workspace)},
            "config": project.workspace.config.name,
            "overrides": list(project.location.overrides),
            **origin._asdict(),
            "options": {name: getattr(options, name) for name in _OPTIONS},
        }
        _require_shareable(description, shared.id, project.workspace.root)
    except EvalstoreError as error:
        if launcher:
            raise EvalstoreError(
                f"no other runner can take part in this run: {error}",
                hint="leave out '--executor', or change the file",
            ) from error
        description["problem"] = str(error)
    project.store.add_shared_run(shared.id, description, limit)
    return shared


@contextmanager
def removed_if_unbegun(store: Store, shared: SharedWork | None) -> Iterator[None]:
    """Remove the description of a run that fails in the block before any runner has done a part."""
    try:
        yield
    except EvalstoreError:
        shares = [each.counts for each in store.find_shares(shared.id)] if shared else []
        if shared and all(it.get(LEFT) and not any(map(it.get, NUMBERS)) for it in shares):
            store.remove_shared_runs([shared.id])
        raise


def _read_files(workspace: WorkspaceFolder) -> dict[str, str]:
    """Return the texts of the settings, and of the models and prompts, by path."""
    names = [name for kind in _FOLDERS for name in workspace.find_files(kind)]
    texts = {workspace.config.name: workspace.config.read_text(encoding="utf-8")}
    for name in names:
        texts[name] = workspace.read_bytes(name, LARGEST_TEXT).decode("utf-8", "strict")
    return texts


def _read_applications(project: Project) -> dict[str, str]:
    """Return the texts of the files of applications, by path; other machines must trust them."""
    texts = {}
    for model in project.reading.models.values():
        for path, data in model.application.files.items() if model.application else ():
            try:
                texts[path] = data.decode("utf-8")
            except UnicodeDecodeError as error:
                raise EvalstoreError(f"{path} of an application is not text") from error
    return texts


def _require_shareable(description: Json, id: str, root: Path) -> None:
    """Raise `EvalstoreError` for a description with a key in it, or one that is too large."""
    from evalstore.remotes.upload import SecretScan

    text = json.dumps(description, ensure_ascii=False)
    if len(text) > LARGEST:
        raise EvalstoreError(f"its settings, models and prompts have {len(text):,} characters")
    if found := SecretScan(os.environ, variables_of(root)).find(
        StoredRecord("shared_runs", id, text)
    ):
        raise EvalstoreError(f"its settings, models or prompts contain {found.name}")


# --- takes part in a shared run


class RestoredRun(NamedTuple):
    """A run in progress, as the program that began it has described it."""

    project: Project
    origin: RunOrigin
    selection: SelectionOptions
    options: RunOptions

    def plan(self) -> tuple[Plans, RunTotals]:
        """Return the plans of what is missing now, and totals without results."""
        begun = self.origin.started
        judges = self.options.judge_only
        scope = resolve_scope(self.project, self.selection, judge_only=judges, begun=begun)
        plans = Plans(self.project, scope)
        return plans, RunTotals(self.project, begun, plans.shared)


@contextmanager
def restored(store: Store, location: Location, run: SharedRun) -> Iterator[RestoredRun]:
    """Restore a run, whose settings, models and prompts are in a folder for the block.

    Raises `EvalstoreError` where that is not possible.
    """
    with TemporaryDirectory(prefix="evalstore-join-") as folder:
        _write_files(run, Path(folder))
        inner = replace(
            location,
            directory=Path(folder),
            config=Path(folder) / run.description["config"],
            overrides=tuple(run.description["overrides"]),
        )
        values = {name: run.description.get(name) for name in RunOrigin._fields}
        git = RunCommit(*values["git"]) if values["git"] else None
        origin = RunOrigin(**{**values, "git": git})
        yield RestoredRun(
            _open(store, inner, origin.cases),
            origin,
            _restore_selection(run),
            RunOptions(**run.description["options"]),
        )


def require_joinable(run: SharedRun) -> None:
    """Raise `EvalstoreError` if a run in progress cannot be joined by this program."""
    if run.error:
        raise run.error
    version, problem = run.description["version"], run.description.get("problem")
    if version != __version__:
        raise EvalstoreError(
            f"run {run.id[:8]} was begun by evalstore {quoted(version)}, and this is {__version__}",
            hint="use the same version on all machines",
        )
    if problem:
        raise EvalstoreError(f"run {run.id[:8]} cannot be joined: {quoted(problem, 500)}")


def _write_files(run: SharedRun, folder: Path) -> None:
    """Write the settings, models and prompts of a run in progress into an empty folder."""
    for name, text in run.description["files"].items():
        path, shown = folder / name, quoted(name)
        try:
            if not path.resolve().is_relative_to(folder.resolve()):
                raise EvalstoreError(
                    f"run {run.id[:8]} names a file outside its workspace: '{shown}'"
                )
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode(), durable=False)
        except (OSError, ValueError) as error:  # such as for a name that no file can have
            raise EvalstoreError(
                f"run {run.id[:8]} has a file that cannot be written here: '{shown}': "
                f"{quoted(str(error))}"
            ) from error


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
    return SelectionOptions(**values)


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
) -> tuple[RunTotals, ExecutionCounts, ExecutionCounts, bool]:
    """Carry out the plans of a run, and add them to its totals; returns these and its counts.

    They include those of the other runners of a `shared` run, which `plan_again` plans once more
    when it was stopped: it has more results than this runner knows. The numbers of this one alone
    follow, and whether it records the run. If not, the totals are incomplete, and the outcome has
    the counts of this runner.
    """
    if survey.is_empty and not shared:
        for plan in plans.take():
            totals.add(plan)
        return totals, ExecutionCounts(), ExecutionCounts(), True
    # These modules take as long to import as all others together.
    from evalstore.runs.run_control import carry_out_plans

    outcome, shares = carry_out_plans(
        project, survey, plans.take(), totals.add, clock, options, listener, shared
    )
    own = replace(outcome)
    if shares is None:
        return totals, outcome, own, False
    if shares:
        from evalstore.runs.execution.sharing.run_share import add_shares

        add_shares(outcome, shares)
        if any(share.problem for share in shares):
            listener.note(
                "the notes of another program about this run cannot be read: its answers are "
                "stored, but missing from the counts and the cost of the run"
            )
        # Answers that were just paid for are found in the store, as if they were older.
        found = outcome.cost - own.cost
        if plan_again and (outcome.over_budget or outcome.interrupted or totals.count("pending")):
            plans, totals = plan_again()
            for plan in plans.take():
                totals.add(plan)
            found = outcome.cost
        totals.saved = max(totals.saved - found, 0.0)
    return totals, outcome, own, True


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
    status = "complete"
    if outcome.interrupted:
        status = "interrupted"
    elif outcome.over_budget:
        status = "over budget"
    elif outcome.failed or finished.totals.count("pending"):
        status = "incomplete"
    return Run(
        id="",
        nonce=nonce,
        started=origin.started,
        ended=max(finished.ended, origin.started),
        status=status,
        message=origin.message,
        snapshot=origin.cases,
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


def git_state(root: Path) -> RunCommit | None:
    """Return the commit of the workspace and whether it has changes; None outside git."""
    state = read_state(root)
    return RunCommit(state.commit, state.dirty) if state else None
