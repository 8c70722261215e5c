"""The command `push`: copies to a remote what it does not have, or writes a bundle.

What only excluded tags need is imported when there are some, to keep other pushes quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter
from pathlib import Path
from struct import iter_unpack
from typing import NamedTuple

from evalstore.core.clock import iso, now
from evalstore.core.display import plural, short
from evalstore.core.errors import (
    USAGE,
    EvalstoreError,
    RemoteError,
    StoreError,
    UnsuitedError,
    WorkspaceError,
)
from evalstore.core.values import Json
from evalstore.exchange.sync.remotes import (
    OpenDatabase,
    OpenRemote,
    is_meant_as_bundle,
    is_place,
    open_files_or_database,
)
from evalstore.files.atomic_write import require_writable
from evalstore.files.fields import nearest, suggest
from evalstore.planning.first_pushes import note_excluded_tags, note_own_name, read_excluded_tags
from evalstore.planning.open_project import open_project, open_store, open_workspace
from evalstore.planning.options import Location, SelectionOptions
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.layout import INDEXES, is_remote, make_remote, require_remote
from evalstore.remotes.packs import IndexHeader
from evalstore.remotes.upload import (
    Announce,
    IndexWriter,
    ReachedIds,
    SecretScan,
    SecretsError,
    find_reached,
    push_records,
    refuse_secrets,
)
from evalstore.store import Store
from evalstore.store.contents import ID_BYTES, as_bytes, as_id, damaged
from evalstore.store.records import (
    COPIED_TABLES,
    OF_SESSIONS,
    OF_VERSIONS,
    CopyListener,
    IdSnapshot,
    IdSource,
    MissingIds,
    count_by_table,
    count_ids,
    find_missing,
    iterate_references,
)
from evalstore.store.revisions import TAG, read_tag, resolve_run
from evalstore.store.schema.table_definitions import (
    EVALUATIONS,
    FAILURES,
    NODES,
    RUNS,
    SESSIONS,
    VERSIONS,
)
from evalstore.store.sqlite.driver import inspect_database
from evalstore.workspace.folder import variables_of
from evalstore.workspace.git.status import name_of_writer
from evalstore.workspace.settings.remote_names import BUNDLE
from evalstore.workspace.settings.remotes import read_database

COUNTED = {"runs": "runs", "sessions": "answers", "evaluations": "judgements"}
"""The tables that are counted apart, with the words for their rows; all others are `versions`."""
_LISTED = 10
"""Keys that an error lists."""


@dataclass(slots=True)
class PushReport:
    """What was pushed, or would be."""

    remote: str
    address: str
    records: Mapping[str, int]
    """How many runs, answers, judgements and versions."""
    bytes_sent: int = 0
    dry_run: bool = False
    excluded_runs: int = 0
    """How many runs stay here that the remote lacks: with tests with an excluded tag, or earlier
    versions of tests."""


@dataclass(slots=True)
class BundleReport(PushReport):
    """A bundle that was written; `address` is its file."""

    presumes: Sequence[str] = ()
    """The ids of the runs that a store must have already."""


def push(
    location: Location,
    remote: str | None = None,
    *,
    since: str | None = None,
    exclude_tags: Sequence[str] = (),
    dry_run: bool = False,
    with_failures: bool = False,
    allow_keys: bool = False,
    listener: CopyListener | None = None,
) -> PushReport:
    """Copy all rows to a remote that it does not have; failed calls only `with_failures`.

    With `since`, a revision, only the runs after it and what belongs to them. What has to do with
    cases with excluded tags stays here, with all runs that have such cases. An empty or missing
    folder becomes a remote, and a database without tables gets them. Raises `EvalstoreError`, also
    when there are keys in what would be pushed, unless `allow_keys`. In the place of a name, the
    path of a bundle has all rows written to it.
    """
    if remote is not None and is_place(location, remote):
        _require_bundle(location, remote, dry_run=dry_run)
        return create_bundle(
            location,
            Path(remote),
            since=since,
            exclude_tags=exclude_tags,
            with_failures=with_failures,
            allow_keys=allow_keys,
            listener=listener,
        )
    with open_files_or_database(location, remote, to_push=not dry_run, may_lack=True) as opened:
        chosen = choose_rows(
            location,
            opened,
            since=since,
            exclude_tags=exclude_tags,
            with_failures=with_failures,
        )
        if isinstance(opened, OpenRemote):
            if not dry_run:
                make_remote(opened.files)
            if not dry_run or is_remote(opened.files):
                opened.cache.refresh(opened.files)
        missing = find_missing_rows(opened, chosen, with_failures=with_failures)
        report = PushReport(
            opened.name,
            opened.address,
            count_kinds(count_by_table(missing)),
            dry_run=dry_run,
            excluded_runs=count_excluded_runs(opened, chosen),
        )
        if not dry_run and missing:
            announce = partial(note_own_name, open_workspace(location))
            report.bytes_sent = _write(
                location, opened, missing, listener, allow_keys=allow_keys, announce=announce
            )
        if not dry_run:
            note_excluded_tags(open_workspace(location), opened.name, exclude_tags)
        return report


def _require_bundle(location: Location, file: str, *, dry_run: bool) -> None:
    """Raise `EvalstoreError` unless a push may write a bundle at a path."""
    if not is_meant_as_bundle(location, file):
        raise EvalstoreError(
            f"'{file}' is neither a remote nor a bundle",
            hint="a bundle is a FILE.bundle; 'evalstore remote add NAME ADDRESS' adds a remote",
        )
    if dry_run:
        raise EvalstoreError("'--dry-run' is for remotes: a bundle has all results")


def create_bundle(
    location: Location,
    file: Path,
    *,
    since: str | None = None,
    exclude_tags: Sequence[str] = (),
    with_failures: bool = False,
    allow_keys: bool = False,
    listener: CopyListener | None = None,
) -> BundleReport:
    """Write all rows of the store to a bundle; failed calls only `with_failures`.

    With `since`, a revision, only the runs after it, without what it and earlier runs reach; with
    `exclude_tags`, nothing that has to do with cases with these tags. A file at the path is
    replaced. Raises `EvalstoreError`, and then no bundle is written.
    """
    from evalstore.remotes.bundle_files import BundleDescription, BundleWriter, is_bundle

    path = location.directory / file
    require_writable(path, file)
    if path.exists() and path.stat().st_size and not is_bundle(path):
        raise RemoteError(
            f"'{file}' is another file, not a bundle, so it is not replaced",
            hint="name a file that does not exist yet, such as results.bundle",
        )
    if since is not None and exclude_tags:
        raise EvalstoreError(
            "'--since' cannot be combined with '--exclude-tag' in a bundle",
            hint="the earlier runs that the bundle needs may have such cases",
        )
    with open_store(location) as store:
        runs = None
        if since is not None:
            runs = choose_since(store, since, with_failures=with_failures)
            if not runs.later:
                raise RemoteError(
                    f"no run after '{since}', so the bundle would be empty",
                    hint="'evalstore log' lists the runs",
                )
        presumes = sorted(id.hex() for id in runs.earlier) if runs else []
        created = max(now(), 0)  # a clock may be wrong
        description = BundleDescription(name_of_writer(location.directory), created, presumes)
        with (
            BundleWriter.open(path, description) as files,
            IndexCache.open(None, str(path)) as cache,
        ):
            make_remote(files)
            opened = OpenRemote(BUNDLE, str(path), files, cache, store)
            if runs:
                reached = find_reached(store, runs.later, presumed=runs.earlier, others=runs.others)
                chosen = ChosenRows(reached)
            else:
                chosen = choose_rows(
                    location, opened, exclude_tags=exclude_tags, with_failures=with_failures
                )
            rows = find_missing_rows(opened, chosen, with_failures=with_failures)
            excluded_runs = count_excluded_runs(opened, chosen)
            _write(location, opened, rows, listener, allow_keys=allow_keys, verb="written")
    counts, size = count_kinds(count_by_table(rows)), path.stat().st_size
    return BundleReport(
        BUNDLE, str(file), counts, size, excluded_runs=excluded_runs, presumes=presumes
    )


def _write(
    location: Location,
    opened: OpenRemote | OpenDatabase,
    missing: MissingIds,
    listener: CopyListener | None,
    *,
    allow_keys: bool,
    verb: str = "pushed",
    announce: Announce | None = None,
) -> int:
    """Write these rows; returns the bytes. Raises `EvalstoreError` when there are keys in them.

    `verb` is what the message says that was not done; `announce` is that of `IndexWriter`.
    """
    scan = None
    if not allow_keys:
        scan = SecretScan(os.environ, variables_of(open_workspace(location).root))
    listener = listener or CopyListener()
    try:
        if isinstance(opened, OpenDatabase):
            return _write_to_database(opened, missing, listener, scan)
        created = max(now(), 0)  # a clock may be wrong
        header = IndexHeader(name_of_writer(location.directory), created, ())
        files, cache, sign = opened.files, opened.cache, opened.sign
        writer = IndexWriter(files, cache, header, listener, sign, announce)
        return push_records(opened.store, writer, missing, scan).bytes_sent
    except SecretsError as error:
        found = error.secrets
        lines = [f"nothing was {verb}: {plural(len(found), 'row')} would reveal a key:"]
        lines += [f"  {it.name} in {short(it.id)} ({it.table})" for it in found[:_LISTED]]
        if len(found) > _LISTED:
            lines.append(f"  and {len(found) - _LISTED:,} more")
        shown = f"'evalstore show {short(found[0].id)}' prints it"
        raise EvalstoreError(
            "\n".join(lines), hint=f"{shown}; revoke it, then add --allow-keys"
        ) from error


def _write_to_database(
    opened: OpenDatabase, missing: MissingIds, listener: CopyListener, scan: SecretScan | None
) -> int:
    from evalstore.remotes.download import copy_records

    if scan:
        refuse_secrets(opened.store, missing, scan)
    with (
        nullcontext(opened.database)
        if opened.database
        else closing(Store.open(opened.place, create=True, may_migrate=False))
    ) as database:
        copied = copy_records(opened.store, database, missing, listener, opened.store.path)
    if lacking := copied.left.total():
        raise StoreError(
            f"the store is damaged, so {plural(lacking, 'row')} "
            f"{'was' if lacking == 1 else 'were'} not pushed: it lacks what others refer to",
            hint="'evalstore fsck' lists what is wrong",
        )
    return copied.bytes_received


def count_kinds(by_table: Mapping[str, int]) -> dict[str, int]:
    """Return how many runs, answers, judgements and versions there are, from those of tables."""
    counts = dict.fromkeys((*COUNTED.values(), "versions"), 0)
    for table, count in by_table.items():
        counts[COUNTED.get(table, "versions")] += count
    return counts


# --- which rows a push copies


class ChosenRuns(NamedTuple):
    """The runs after a revision, and what else is copied with them."""

    earlier: frozenset[bytes]
    """The ids of the run that the revision names and of those before it."""
    later: frozenset[bytes]
    others: frozenset[bytes]
    """The ids of the calls that have failed since, and of the names of runs."""


def choose_since(store: Store, revision: str, *, with_failures: bool) -> ChosenRuns:
    """Return the runs after the one that a revision names; raises `RevisionError`."""
    run = resolve_run(store, revision)
    earlier, later = map(frozenset, store.find_run_ids(run.started, run.id))
    failures = store.find_failure_ids(run.ended) if with_failures else ()
    return ChosenRuns(earlier, later, frozenset((*failures, *store.load_files_of(TAG))))


class ChosenRows(NamedTuple):
    """The rows that a push copies unless the remote has them."""

    ids: ReachedIds | None = None
    """None: all rows of the store."""
    excluded_runs: ReachedIds | None = None
    """The runs that must not be copied, as they refer to something excluded."""


def choose_rows(
    location: Location,
    opened: OpenRemote | OpenDatabase,
    *,
    since: str | None = None,
    exclude_tags: Sequence[str] = (),
    with_failures: bool = False,
) -> ChosenRows:
    """Return the rows that a push copies; the remote is not read.

    To the tags are added those that the remote excludes. Raises `EvalstoreError`.
    """
    reached = None
    if since is not None:
        runs = choose_since(opened.store, since, with_failures=with_failures)
        reached = find_reached(opened.store, runs.later, others=runs.others)
    if exclude_tags or opened.exclude_tags:
        return find_untagged_rows(
            location, exclude_tags, opened.exclude_tags, reached, with_failures=with_failures
        )
    return ChosenRows(reached)


def find_missing_rows(
    opened: OpenRemote | OpenDatabase, chosen: ChosenRows, *, with_failures: bool = False
) -> MissingIds:
    """Return those of the chosen rows that the remote lacks, as far as it was read."""
    with opened.ids() as theirs:
        if chosen.ids is not None:
            return find_missing(chosen.ids, theirs)
        with opened.store.snapshot_ids() as ids:
            tables = [name for name in COPIED_TABLES if with_failures or name != FAILURES.name]
            return find_missing(ids, theirs, tables)


def count_excluded_runs(opened: OpenRemote | OpenDatabase, chosen: ChosenRows) -> int:
    """Return how many runs stay here although the remote lacks them, as far as it was read."""
    if chosen.excluded_runs is None:
        return 0
    with opened.ids() as theirs:
        return count_ids(find_missing(chosen.excluded_runs, theirs))


# --- which rows a push copies that leaves out cases with some tags


_EVALUATORS = VERSIONS["evaluator"].name
_REFERRING = tuple(VERSIONS[kind].name for kind in ("test", "evaluation", "evaluator", "prompt"))
"""The tables of versions that may refer to others, each before those that it refers to."""
_UNSHARED_SELECTIONS = frozenset({"name", "keepGoing"})
"""Selections of a run: by a text, and without files that have errors."""


def find_shared_rows(
    store: Store,
    shared: frozenset[bytes],
    excluded: frozenset[bytes],
    within: IdSource | None = None,
) -> ChosenRows:
    """Return the answers, judgements and runs that may be copied, and all that these refer to.

    Both collections have ids of versions of tests, prompts and evaluations. All that an answer, a
    judgement or a case of a run refers to is shared, and no evaluator has an excluded prompt.
    Failed calls are not among them, nor runs that may name a test they were not about. With
    `within`, which has all that its rows refer to, only those that it has.
    """
    touched, chosen, excluded_runs = set(excluded), set[bytes](), set[bytes]()
    # What is touched is excluded, or refers to it, directly or not.
    with store.snapshot_ids() as rows:  # what is written meanwhile is not examined
        for id, content in rows.iterate_contents(_EVALUATORS):
            if not touched.isdisjoint(_references(content)):
                touched.add(id)
        for id, *fields in rows.iterate_fields(SESSIONS.name, OF_SESSIONS):
            references = [each for each in map(as_bytes, fields) if each is not None]
            about = map(as_bytes, fields[:2])  # the test and the prompt
            if all(each is None or each in shared for each in about):
                chosen.update((id, *references))
            else:
                touched.add(id)
        names = ("evaluation", "evaluator", "sessions")
        for id, *fields, sessions in rows.iterate_fields(EVALUATIONS.name, names):
            told, judge = map(as_bytes, fields)
            is_shared = told in shared and judge not in touched
            if is_shared and sessions.__class__ is not str:
                raise damaged(EVALUATIONS.name, id.hex(), "it belongs to no answer")
            if is_shared and set(map(as_bytes, sessions.strip('[]"').split('","'))) <= chosen:
                chosen.update((id, *filter(None, (told, judge))))
            else:
                touched.add(id)
        below = _find_sound_nodes(rows, shared, touched)
        pending: list[bytes] = []
        wanted = _ids_of(rows if within is None else within, RUNS.name)
        for id, content in rows.iterate_contents(RUNS.name):
            if id not in wanted:
                continue
            is_named = _UNSHARED_SELECTIONS.intersection(content.get("selection", ()))
            if is_named or not touched.isdisjoint(references := [*_references(content)]):
                excluded_runs.add(id)
            else:
                chosen.add(id)
                pending += references
        while pending:
            if (id := pending.pop()) not in chosen:
                chosen.add(id)
                pending += (each for (each,) in iter_unpack(f"{ID_BYTES}s", below.get(id, b"")))
        for table in _REFERRING:
            for id, content in rows.iterate_contents(table, OF_VERSIONS):
                if id in chosen:
                    chosen.update(_references(content))
        for id, data in store.load_files_of(TAG).items():
            if (tag := read_tag(data)) and as_bytes(tag.run) in chosen:
                chosen.add(id)
        by_table = {
            table: chosen & _ids_of(rows, table)
            for table in COPIED_TABLES
            if table != FAILURES.name
        }
    if within is not None:
        for table, ids in by_table.items():
            ids &= _ids_of(within, table)
    return ChosenRows(_join(by_table), _join({RUNS.name: excluded_runs}))


def _find_sound_nodes(
    rows: IdSnapshot, shared: frozenset[bytes], touched: set[bytes]
) -> dict[bytes, bytes]:
    """Return what each node refers to, concatenated; those with something touched are added to it.

    A case that is not shared is such a row.
    """
    nodes = _ids_of(rows, NODES.name)
    below, inner = dict[bytes, bytes](), dict[bytes, set[bytes]]()
    for id, content in rows.iterate_contents(NODES.name):
        references = set(_references(content))
        has_others = content["kind"] == "cases" and not references - nodes <= shared
        if has_others or not references.isdisjoint(touched):
            touched.add(id)
        else:
            below[id], inner[id] = b"".join(references), nodes & references
    while more := [id for id, others in inner.items() if not others.isdisjoint(touched)]:
        touched.update(more)
        for id in more:
            del inner[id], below[id]
    return below


def _ids_of(source: IdSource, table: str) -> set[bytes]:
    return {as_id(id) for (id,) in source.iterate_ids(table)}


def _join(rows: Mapping[str, set[bytes]]) -> ReachedIds:
    return ReachedIds({table: b"".join(sorted(ids)) for table, ids in rows.items() if ids})


def _references(content: Json) -> Iterator[bytes]:
    return map(bytes.fromhex, iterate_references(content["kind"], content))


def find_untagged_rows(
    location: Location,
    tags: Sequence[str],
    usual_tags: Sequence[str] = (),
    within: IdSource | None = None,
    *,
    with_failures: bool = False,
) -> ChosenRows:
    """Return the rows that have nothing to do with cases with these tags.

    With `within`, only rows that it has, and what they refer to. Raises `EvalstoreError`, also for
    test files with errors, whose tags are not known, and for one of `tags` that no case has; of
    `usual_tags`, cases may have none yet.
    """
    from evalstore.planning.participants import require_tag
    from evalstore.planning.planner import require_sound

    if with_failures:
        raise UnsuitedError(
            "'--with-failures' cannot be combined with excluded tags",
            hint="a failed call does not say which test it was about",
        )
    unwanted = {*tags, *usual_tags}
    with open_project(location) as project:
        require_sound(project, SelectionOptions())
        store, known = project.store, set(project.store.find_tags())
        shared = set[str]()
        references, tests = set[str](), set[str]()  # what cases with the tags refer to, or did
        for case in (case for file in project.reading.files.values() for case in file.cases):
            is_tagged = not unwanted.isdisjoint(case.tags)
            known.update(case.tags)
            (references if is_tagged else shared).update(case.references)
            tests.update(case.tests if is_tagged else ())
        for of_case, about in store.find_tagged_cases(sorted(unwanted)):
            tests.update(of_case)
            references.update(of_case, about)
        require_tag(tags, known)
        for tag in sorted(set(usual_tags) - known):
            text = f"no case has the tag '{tag}', which the remote excludes"
            if nearest(tag, known):  # what should stay here would be pushed
                raise EvalstoreError(text, hint=suggest(tag, known, "tags"))
            location.warn(text)
        # Earlier versions of files are not shared: a case may have come from any of them, under
        # another path or in another file, before it got its tag.
        shared -= tests
        return find_shared_rows(store, _as_bytes(shared), _as_bytes(references - shared), within)


def _as_bytes(ids: Iterable[str]) -> frozenset[bytes]:
    return frozenset(map(bytes.fromhex, ids))


# --- what a remote has, and what a push would copy to it


@dataclass(frozen=True, slots=True)
class RemotePush:
    """A push that the remote has."""

    created: str
    """ISO 8601, by the clock of the writer."""
    writer: str
    records: int
    """How many rows no earlier push has brought; of one that is left out, all of its rows."""
    left_out: str | None = None
    """Why nothing of it is pulled: `unsigned` or `untrusted`; else None."""


@dataclass(frozen=True, slots=True)
class RemoteReport:
    """What a remote has, and how it differs from the store."""

    name: str
    address: str
    records: Mapping[str, int]
    """How many runs, answers, judgements and versions the remote has."""
    size: int
    """Bytes of its packs and indexes, as a push and a pull count them; of a database, of its
    tables with their indexes."""
    to_pull: Mapping[str, int]
    to_push: Mapping[str, int]
    """Without failed calls."""
    pushes: Sequence[RemotePush]
    """Oldest first; a database does not know them."""
    uncounted: str | None = None
    """Why `toPush` also counts what excluded tags keep here; None if it does not."""
    excluded_runs: int = 0
    """How many runs a push leaves here that the remote lacks: with tests with an excluded tag, or
    earlier versions of tests."""
    last_excluded_tags: Sequence[str] = field(
        default=(), metadata={"json_name": "lastExcludedTags", "json_optional": True}
    )
    """The tags that the last push from here excluded with an option, which `toPush` does not."""


def show_remote(location: Location, name: str | None) -> RemoteReport:
    """Return what a remote has; raises `EvalstoreError`."""
    with open_files_or_database(location, name) as opened:
        if isinstance(opened, OpenRemote):
            require_remote(opened.files)
            opened.cache.refresh(opened.files)
        with opened.ids() as theirs, opened.store.snapshot_ids() as ours:
            to_pull = find_missing(theirs, ours)
            counts = {table: sum(1 for _ in theirs.iterate_ids(table)) for table in COPIED_TABLES}
        chosen, uncounted = _choose_readable(location, opened)
        to_push = find_missing_rows(opened, chosen)
        noted = read_excluded_tags(open_workspace(location), opened.name)
        pushes: list[RemotePush] = []
        if isinstance(opened, OpenRemote):
            counting = opened.cache.list_pushes()
            names = {push.name for push in counting}
            size = opened.cache.count_bytes()
            size += sum(file.size for file in opened.files.iterate(INDEXES) if file.name in names)
            every = sorted([*counting, *opened.cache.list_refused()], key=attrgetter("created"))
            pushes += (
                RemotePush(iso(it.created), it.writer, it.records, it.reason) for it in every
            )
        else:
            size = inspect_database(read_database(opened.address)).size or 0
        return RemoteReport(
            opened.name,
            opened.address,
            count_kinds(counts),
            size,
            count_kinds(count_by_table(to_pull)),
            count_kinds(count_by_table(to_push)),
            pushes,
            uncounted,
            count_excluded_runs(opened, chosen),
            [tag for tag in noted if tag not in opened.exclude_tags],
        )


def _choose_readable(
    location: Location, opened: OpenRemote | OpenDatabase
) -> tuple[ChosenRows, str | None]:
    """Return the rows that a push copies; all, and why, if the tests do not tell."""
    try:
        return choose_rows(location, opened), None
    except WorkspaceError:
        return ChosenRows(), "the tests have errors"
    except EvalstoreError as error:
        if error.exit_code != USAGE:
            raise
        return ChosenRows(), str(error)
