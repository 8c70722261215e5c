"""The command `push`: copies to a remote what it does not have, or writes a bundle."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from evalstore.core.clock import now
from evalstore.core.display import plural, short
from evalstore.core.errors import EvalstoreError, RemoteError, StoreError
from evalstore.exchange.sync.open_remote import (
    OpenDatabase,
    OpenRemote,
    is_meant_as_bundle,
    is_place,
    open_files_or_database,
)
from evalstore.exchange.sync.pushed_rows import (
    ChosenRows,
    choose_rows,
    choose_since,
    count_excluded_runs,
    find_missing_rows,
)
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.remotes.differences import CopyListener, MissingIds, count_by_table
from evalstore.remotes.index_cache import IndexCache
from evalstore.remotes.indexes import IndexHeader
from evalstore.remotes.places.layout import is_remote, make_remote
from evalstore.remotes.push import Announce, IndexWriter, SecretsError, push_records, refuse_secrets
from evalstore.remotes.push_notes import note_excluded_tags, note_own_name
from evalstore.remotes.secret_scan import FoundSecret, SecretScan
from evalstore.workspace.output_paths import require_writable
from evalstore.workspace.settings.env_files import variables_of
from evalstore.workspace.settings.remote_names import BUNDLE
from evalstore.workspace.user_name import name_of_writer

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

    @property
    def file(self) -> str:
        """Return the path of the bundle."""
        return self.address

    @property
    def size(self) -> int:
        """Return the bytes of the bundle."""
        return self.bytes_sent


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
                chosen = ChosenRows(runs.reach_beyond())
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
        raise _refusal(error.secrets, verb) from error


def _write_to_database(
    opened: OpenDatabase, missing: MissingIds, listener: CopyListener, scan: SecretScan | None
) -> int:
    from evalstore.remotes.pull import copy_records
    from evalstore.store import Store

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


def _refusal(secrets: Sequence[FoundSecret], verb: str) -> EvalstoreError:
    lines = [
        f"  {secret.name} in {short(secret.id)} ({secret.table})" for secret in secrets[:_LISTED]
    ]
    if len(secrets) > _LISTED:
        lines.append(f"  and {len(secrets) - _LISTED:,} more")
    rows = plural(len(secrets), "row")
    return EvalstoreError(
        "\n".join(
            [
                f"nothing was {verb}: {rows} would reveal a key:",
                *lines,
            ]
        ),
        hint=f"'evalstore show {short(secrets[0].id)}' prints it; revoke it, then add --allow-keys",
    )
