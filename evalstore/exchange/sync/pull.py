"""The commands `pull` and `clone`: copies from a remote, a bundle or another store.

`pull` copies what the store lacks, and `clone` makes a new workspace with everything that a remote
has. `pull_for_plan` copies only what the current plan asks for, and the run to compare with.

A clean machine, such as one of CI, needs neither the history nor the results of other cases. It
looks up the questions of its plan, then the judgements of the answers that came, and again until
nothing more comes. Unless only some cases are selected, it copies the newest run and the newest
about all cases first: they tell what broke. For the gate on regressions it goes on to older runs,
until each planned case has passed in one: whichever fails is a regression then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from evalstore.core.display import plural
from evalstore.core.errors import EvalstoreError, RemoteError
from evalstore.core.values import RECORDED, Json
from evalstore.exchange.init import init
from evalstore.exchange.sync.push import count_kinds
from evalstore.exchange.sync.remotes import (
    OpenDatabase,
    OpenRemote,
    allow_address,
    open_remote,
    open_source,
    open_typed,
    open_typed_database,
    typed_address,
)
from evalstore.files.atomic_write import temporary_folder
from evalstore.files.json_output import fields_to_json
from evalstore.planning.cell_results import as_result, compute_results
from evalstore.planning.first_pushes import Baseline, choose_runs
from evalstore.planning.open_project import (
    open_project,
    open_store,
    open_workspace,
    warn_before_opening,
)
from evalstore.planning.options import Location, SelectionOptions
from evalstore.planning.plan import Plan
from evalstore.planning.planner import make_plan, require_sound
from evalstore.planning.project import Project
from evalstore.remotes.download import Pull, Pulled, copy_records
from evalstore.remotes.index_cache import IndexCache, cache_path
from evalstore.remotes.layout import require_remote
from evalstore.results.flips.regressions import has_case_without_verdict
from evalstore.runs.status.remote_answers import waiting_subjects
from evalstore.store.events import RUNS_SEARCHED
from evalstore.store.records import CopyListener, count_by_table, find_missing
from evalstore.store.revisions import resolve_remote_run
from evalstore.store.schema.table_definitions import RUNS
from evalstore.workspace.settings.remote_names import (
    DEFAULT_REMOTE,
    is_database,
    is_folder,
    path_of,
)
from evalstore.workspace.settings.remotes import read_database, write_remote


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The pushes of a writer that do not count."""

    writer: str
    """As the pushes say themselves, or who has signed them; empty if it cannot be read."""
    pushes: int
    reason: str
    """`unsigned`: no allowed signer has signed them; `untrusted`: the writer is not trusted."""


@dataclass(slots=True)
class PullReport:
    """What was pulled, or would be."""

    remote: str
    address: str
    records: Mapping[str, int]
    """How many runs, answers, judgements and versions."""
    bytes_received: int = 0
    newer: int = 0
    """Rows of a newer program, which were left in the remote."""
    waiting: int = 0
    """Runs that were left in the remote, because it lacks rows that they refer to."""
    waiting_rows: int = 0
    """Other rows that were left there for the same reason."""
    missing_packs: int = 0
    """Packs that are not in the remote yet: a synchronised folder may have their index first."""
    missing_rows: int = 0
    """The rows in them, which the next pull copies."""
    dry_run: bool = False
    left_out: Sequence[LeftOut] = ()
    """Pushes that do not count, of which nothing is copied."""


def pull(
    location: Location,
    remote: str | None = None,
    *,
    dry_run: bool = False,
    listener: CopyListener | None = None,
) -> PullReport:
    """Copy all rows of a remote that the store does not have; each is checked before it is stored.

    In the place of its name, a path or an address names a bundle or another store. Raises
    `EvalstoreError`, and then the rows that were stored until then stay; the next pull goes on from
    there.
    """
    with open_source(location, remote, dry_run=dry_run) as opened:
        return pull_missing(opened, dry_run=dry_run, listener=listener)


def pull_missing(
    opened: OpenRemote | OpenDatabase, *, dry_run: bool, listener: CopyListener | None
) -> PullReport:
    """Copy all rows of an open remote, database or store that its store lacks.

    Raises `EvalstoreError`.
    """
    report = PullReport(opened.name, opened.address, {}, dry_run=dry_run)
    if isinstance(opened, OpenRemote):
        require_remote(opened.files)
        report.bytes_received = opened.cache.refresh(opened.files)
        report.left_out = count_left_out(opened.cache)
    with opened.ids() as theirs, opened.store.snapshot_ids() as ours:
        missing = find_missing(theirs, ours)
    report.records = count_kinds(count_by_table(missing))
    if dry_run or not missing:
        return report
    listener = listener or CopyListener()
    if isinstance(opened, OpenRemote):

        def copy() -> Pulled:
            begun = Pull.open(opened.store, opened.files, opened.cache, listener)
            with begun as pull, opened.cache.unchanged():
                with opened.store.snapshot_ids() as ids:
                    missing = find_missing(opened.cache, ids)
                return pull.copy_all(missing)

        _copy(opened, report, copy)
    else:
        assert opened.database  # one without tables lacks all rows
        pulled = copy_records(opened.database, opened.store, missing, listener, opened.address)
        report.records = count_kinds(pulled.stored)
        report.bytes_received = pulled.bytes_received
        note_left(report, pulled)
    return report


def _copy(opened: OpenRemote, report: PullReport, copy: Callable[[], Pulled]) -> None:
    """Copy and report it; once more if packs are missing, as somebody may have replaced them."""
    stored: Counter[str] = Counter()
    for is_last in (False, True):
        pulled = copy()
        stored.update(pulled.stored)
        report.bytes_received += pulled.bytes_received
        if is_last or not pulled.missing_packs:
            break
        report.bytes_received += opened.cache.refresh(opened.files)
    report.records = count_kinds(stored)
    report.newer = opened.cache.count_unknown()
    note_left(report, pulled)


def note_left(report: PullReport, pulled: Pulled) -> None:
    """Note in a report what was left in the remote."""
    report.waiting = pulled.waiting
    report.waiting_rows = pulled.left.total() - pulled.waiting
    report.missing_packs = pulled.missing_packs
    report.missing_rows = pulled.missing.total()


def count_left_out(cache: IndexCache) -> list[LeftOut]:
    """Return the pushes that do not count, by their writers and reasons."""
    counts = Counter((push.writer, str(push.reason)) for push in cache.list_refused())
    return [LeftOut(writer, count, reason) for (writer, reason), count in sorted(counts.items())]


def _describe(report: PullReport) -> dict[str, Json]:
    """Return the members of a pull that a clone has, too."""
    document = fields_to_json(report)
    return {name: document[name] for name in document if name not in ("dryRun", "leftOut")}


@dataclass(frozen=True, slots=True)
class CloneReport:
    """The workspace that was made, and what was pulled into it."""

    workspace: str
    """Its folder, as it was given or chosen."""
    pulled: PullReport = field(metadata={"json_as": _describe, "json_inline": True})


def clone(
    location: Location,
    address: str,
    directory: Path | None = None,
    *,
    listener: CopyListener | None = None,
) -> CloneReport:
    """Make a workspace without tests, and copy all rows of a remote or a bundle into its store.

    `directory` is a folder that does not exist yet, or is empty (default: one with the last name of
    the address, without the suffix of a file, or that of the database). A bundle becomes no remote.
    Warns of variables in the `.env` of the current folder that have no effect. Raises
    `EvalstoreError`, and then no folder is created.
    """
    address = typed_address(location, address)
    bundle = Path(path_of(address)) if is_folder(address) else None
    if bundle and not bundle.is_file():
        bundle = None
    database = read_database(address) if is_database(address) else None
    if directory is None:
        name = database.options.get("dbname", "") if database else Path(address).name
        directory = Path((bundle.stem if bundle else Path(name).name) or "results")
    target = location.directory / directory
    is_used = any(target.iterdir()) if target.is_dir() else target.exists()
    if target.is_symlink() or is_used:
        raise _exists_already(target, directory, address, bundle)
    warn_before_opening(location.directory, location.warn)
    files = None if bundle or database else open_typed(address)
    if files:
        require_remote(files)

    def fill(folder: Path) -> PullReport:
        inside = Location(folder, warn=location.warn)
        if bundle:
            return pull(inside, str(bundle), listener=listener)
        with open_store(inside) as store:
            if files:
                cache = cache_path(open_workspace(inside), DEFAULT_REMOTE, files.address)
                with IndexCache.open(cache, files.address) as indexes:
                    opened = OpenRemote(DEFAULT_REMOTE, address, files, indexes, store)
                    return pull_missing(opened, dry_run=False, listener=listener)
            place = read_database(address)
            with open_typed_database(DEFAULT_REMOTE, place, store, location) as typed:
                return pull_missing(typed, dry_run=False, listener=listener)

    try:
        with _made_parents(target), temporary_folder(target) as folder:
            init(folder, bare=True)
            if not bundle:
                write_remote(open_workspace(Location(folder)), DEFAULT_REMOTE, address)
            report = fill(folder)
        if not bundle:
            allow_address(location, target, DEFAULT_REMOTE, address)
    except OSError as error:
        raise EvalstoreError(
            f"the folder '{directory}' cannot be made: {error.strerror or error}"
        ) from error
    report.address = address
    return CloneReport(str(directory), report)


def _exists_already(
    target: Path, directory: Path, address: str, bundle: Path | None
) -> EvalstoreError:
    """Return the error for a place that is neither free nor an empty folder."""
    reason = "is not empty" if target.is_dir() else "is not a folder"
    same = f"'evalstore remote add origin {address}' and 'evalstore pull' get"
    same = f"'evalstore pull {address}' gets" if bundle else same
    return EvalstoreError(
        f"'{directory}' exists already and {reason}",
        hint=f"name another folder; in a workspace, {same} the same results",
    )


@contextmanager
def _made_parents(path: Path) -> Iterator[None]:
    """Make the missing folders above a path; they are removed again if the block fails."""
    missing = [parent for parent in path.parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in missing:
            with suppress(OSError):
                parent.rmdir()
        raise


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
        report = PullReport(
            *(opened.name, opened.address, {}, received), left_out=count_left_out(opened.cache)
        )

        def copy() -> Pulled:
            begun = Pull.open(opened.store, opened.files, opened.cache, listener)
            with begun as pull, opened.cache.unchanged():
                _pull(location, selection, opened, pull, baseline, is_searched=is_searched)
                return pull.pulled

        _copy(opened, report, copy)
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
    pull: Pull,
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
    project: Project, opened: OpenRemote, pull: Pull, revision: str
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
    pull: Pull,
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


def _pull_runs(project: Project, pull: Pull, ids: Collection[bytes]) -> None:
    """Copy those of these runs that the store lacks."""
    pull.copy(RUNS.name, set(ids) - project.store.find_present(RUNS.name, ids))


def questions_of(plan: Plan) -> set[str]:
    """Return the ids of the questions that a run would ask a model, also once it is trusted."""
    asks = (*plan.asks, *plan.waiting_asks)
    return {ask.question_id for ask in asks if ask.cell.candidate.id != RECORDED}
