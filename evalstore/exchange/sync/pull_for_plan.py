"""Copies from a remote only what the current plan asks for, and the run to compare with.

A clean machine, such as one of CI, needs neither the history nor the results of other cases. It
looks up the questions of its plan, then the judgements of the answers that came, and again until
nothing more comes. Unless only some cases are selected, it copies the newest run and the newest
about all cases first: they tell what broke. For the gate on regressions it goes on to older runs,
until each planned case has passed in one: whichever fails is a regression then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from evalstore.core.display import plural
from evalstore.core.errors import RemoteError
from evalstore.core.values import RECORDED
from evalstore.exchange.sync.open_remote import OpenRemote, open_remote
from evalstore.exchange.sync.pull import PullReport, count_left_out, note_left
from evalstore.exchange.sync.push import count_kinds
from evalstore.planning.baseline import Baseline, choose_runs
from evalstore.planning.open_project import open_project
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.plan import Plan
from evalstore.planning.planner import make_plan, require_sound
from evalstore.planning.project import Project
from evalstore.planning.results import as_result, compute_results
from evalstore.remotes.differences import CopyListener
from evalstore.remotes.places.layout import require_remote
from evalstore.remotes.pull import ReferencedPull
from evalstore.results.flips.regressions import has_case_without_verdict
from evalstore.runs.status.remote_answers import waiting_subjects
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.revisions import resolve_remote_run
from evalstore.store.schema.table_definitions import RUNS


def pull_for_plan(
    location: Location,
    remote: str | None = None,
    selection: SelectionOptions | None = None,
    *,
    baseline: str | None = None,
    with_history: bool | None = None,
    listener: CopyListener | None = None,
) -> PullReport:
    """Copy the answers and judgements that a run with this selection would ask for.

    `with_history` adds the runs that tell whether a failure is a regression; None: where all cases
    are selected. With a `baseline`, a revision, only its run is added. Raises `EvalstoreError`,
    also when earlier runs are needed and the remote is not complete yet.
    """
    with open_remote(location, remote, create=True) as opened:
        require_remote(opened.files)
        received = opened.cache.refresh(opened.files)
        listener = listener or CopyListener()
        selection = selection or SelectionOptions()
        if with_history and not opened.cache.list_runs():
            location.warn(f"'{opened.name}' has no runs: no failure can be told from a regression")
        is_searched = not selection.narrows if with_history is None else with_history
        copied: Counter[str] = Counter()
        for is_last in (False, True):
            pull = ReferencedPull(opened.store, opened.files, opened.cache, listener)
            _pull(location, selection, opened, pull, baseline, is_searched=is_searched)
            copied.update(pull.by_table)
            received += pull.pulled.bytes_received
            if is_last or not pull.pulled.missing_packs:
                break
            again = opened.cache.refresh(opened.files)
            received += again
            if not again:  # nobody has replaced packs meanwhile
                break
        report = PullReport(
            opened.name,
            opened.address,
            count_kinds(copied),
            bytes_received=received,
            newer=opened.cache.count_unknown(),
            left_out=count_left_out(opened.cache),
        )
        note_left(report, pull.pulled)
        if is_searched or baseline:
            _require_complete(report)
        return report


def _require_complete(report: PullReport) -> None:
    """Raise `RemoteError` if earlier runs stayed in the remote: an older one would stand for them.

    So a failure that is new could look like an old one.
    """
    lacks = []
    if report.missing_packs:
        rows = plural(report.missing_rows, "row")
        lacks.append(f"{plural(report.missing_packs, 'pack')} with {rows}")
    if report.waiting:
        refer = "refers" if report.waiting == 1 else "refer"
        lacks.append(f"rows to which {plural(report.waiting, 'run')} {refer}")
    if lacks:
        raise RemoteError(
            f"the remote '{report.address}' is not complete yet: it lacks {' and '.join(lacks)}, "
            "and a regression could be overlooked",
            hint="try again later; 'evalstore fsck --remote' lists what is missing",
        )


def _pull(
    location: Location,
    selection: SelectionOptions,
    opened: OpenRemote,
    pull: ReferencedPull,
    revision: str | None,
    *,
    is_searched: bool,
) -> None:
    """Copy rows; with `is_searched`, a failure may be a regression since any earlier run."""
    with open_project(replace(location, was_seen=True)) as project:
        require_sound(project, selection)
        selection = project.with_whole_names(selection)
        project.store_versions()  # so that the remote need not send them
        if is_searched or not selection.narrows:
            pull.copy("runs", pull.find_newest_runs())
        while True:
            plan = make_plan(project, selection)
            sessions = pull.find_keyed("sessions", questions_of(plan))
            subjects = {item.subject for item in plan.judgements if item.subject}
            subjects |= {subject.hex() for subject in waiting_subjects(plan)}
            judgements = pull.find_keyed("evaluations", subjects)
            if not sessions and not judgements:
                break
            pull.copy("sessions", sessions)
            pull.copy("evaluations", judgements)
        baseline = None
        if revision is not None:
            baseline = _pull_baseline(project, opened, pull, revision)
        if baseline or (is_searched and revision is None):
            _pull_older_runs(project, opened, pull, plan, baseline)


def _pull_baseline(
    project: Project, opened: OpenRemote, pull: ReferencedPull, revision: str
) -> Baseline | None:
    """Copy the run that is the baseline if the remote has it; returns it.

    Raises `RevisionError`, but not for a revision that the remote does not know: the run says what
    is wrong with it.
    """
    runs = opened.cache.list_runs()
    remote, slash, name = revision.partition("/")
    if slash and remote == opened.name:
        id = resolve_remote_run(runs, remote, name)
    else:
        found = [id for id in runs if revision and id.startswith(revision.lower())]
        if len(found) != 1:
            return None
        id = found[0]
    counts = choose_runs(project.workspace.root, revision)
    for candidate in runs[runs.index(id) :]:
        _pull_runs(project, pull, [bytes.fromhex(candidate)])
        if not project.store.load_sizes(RUNS.name, [candidate]):
            return None
        run = project.store.load_run(candidate)
        if counts(run):
            return Baseline(run, counts)
    return None


def _pull_older_runs(
    project: Project,
    opened: OpenRemote,
    pull: ReferencedPull,
    plan: Plan,
    baseline: Baseline | None,
) -> None:
    """Copy runs, newest first, until they tell whether each planned case can be a regression.

    With a baseline, the runs before it.
    """
    runs = opened.cache.list_runs()
    if baseline:
        runs = runs[runs.index(baseline.run.id) + 1 :]
    older = [bytes.fromhex(id) for id in runs[:RUNS_SEARCHED]]
    cells = [
        (as_result(result), result.cell.case)
        for result in compute_results(plan, project.settings.verdict)
    ]
    count = 1
    while older and has_case_without_verdict(project, cells, baseline):
        _pull_runs(project, pull, older[:count])
        del older[:count]
        count *= 2


def _pull_runs(project: Project, pull: ReferencedPull, ids: Collection[bytes]) -> None:
    """Copy those of these runs that the store lacks."""
    pull.copy(RUNS.name, set(ids) - project.store.find_present(RUNS.name, ids))


def questions_of(plan: Plan) -> set[str]:
    """Return the ids of the questions that a run would ask a model, also once it is trusted."""
    asks = (*plan.asks, *plan.waiting_asks)
    return {ask.question_id for ask in asks if ask.cell.candidate.id != RECORDED}
