"""The command `bundle`: results as one file, for places without a shared folder."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from evalstore.clock import iso, now
from evalstore.display import plural, short
from evalstore.errors import EvalstoreError, NoWorkspaceError, RemoteError
from evalstore.files.normal_path import normal_path
from evalstore.operations.open_remote import OpenRemote
from evalstore.operations.output_paths import require_writable
from evalstore.operations.pull import PullReport, pull_missing
from evalstore.operations.push import count_kinds, write_missing
from evalstore.operations.pushed_rows import pushed_tables
from evalstore.operations.since import choose_since
from evalstore.operations.untagged_rows import find_untagged_rows
from evalstore.operations.user_name import name_of_writer
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.sharing.bundle_files import BundleDescription, BundleFiles, is_bundle
from evalstore.sharing.bundle_writer import BundleWriter
from evalstore.sharing.check_remote import RemoteCheck, check_remote
from evalstore.sharing.differences import count_by_table, find_missing
from evalstore.sharing.index_cache import IndexCache
from evalstore.sharing.layout import make_remote
from evalstore.sharing.progress import CopyListener
from evalstore.store.table_columns import RUNS

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.planning.options import Location
    from evalstore.sharing.differences import MissingIds
    from evalstore.store import Store

NAME = "bundle"
"""What reports have in the place of the name of a remote."""
_LISTED = 5
"""Missing runs that an error lists."""


@dataclass(frozen=True, slots=True)
class BundleReport:
    """A bundle that was written."""

    file: str
    records: Mapping[str, int]
    """How many runs, answers, judgements and versions are in it."""
    size: int
    """Bytes."""
    presumes: Sequence[str]
    """The ids of the runs that a store must have already."""
    excluded_runs: int = field(default=0, metadata={"json_name": "excludedRuns"})
    """How many runs are left out: with tests with excluded tags, or earlier versions of tests."""


@dataclass(frozen=True, slots=True)
class BundleCheck:
    """The result of `bundle verify`."""

    file: str
    writer: str
    """Who has written it; not verified."""
    created: str
    """ISO 8601, by the clock of the writer."""
    presumes: Sequence[str]
    check: RemoteCheck = field(metadata={"json_inline": True})


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
    path = location.directory / file
    require_writable(path, file)
    _require_bundle_or_nothing(path, file)
    with open_store(location) as store:
        presumes: list[str] = []
        excluded_runs = 0
        if exclude_tags:
            if since is not None:
                raise EvalstoreError(
                    "'--since' cannot be combined with '--exclude-tag' in a bundle",
                    hint="the earlier runs, which the bundle would presume, may have such cases",
                )
            shared = find_untagged_rows(location, exclude_tags, with_failures=with_failures)
            rows: MissingIds = shared.ids.joined()
            excluded_runs = shared.excluded_runs.count(RUNS.name)
        elif since is None:
            with store.snapshot_ids() as ids, IndexCache.open(None, "") as nothing:
                rows = find_missing(
                    ids, nothing.records, pushed_tables(with_failures=with_failures)
                )
        else:
            chosen = choose_since(store, since, with_failures=with_failures)
            if not chosen.later:
                raise RemoteError(
                    f"there is no run after '{since}', so the bundle would be empty",
                    hint="'evalstore log' lists the runs",
                )
            presumes = sorted(id.hex() for id in chosen.earlier)
            rows = chosen.reach_beyond().joined()
        created = max(now(), 0)  # a clock may be wrong
        description = BundleDescription(name_of_writer(location.directory), created, presumes)
        with (
            BundleWriter.open(path, description) as files,
            IndexCache.open(None, str(path)) as cache,
        ):
            make_remote(files)
            opened = OpenRemote(NAME, str(path), files, cache, store)
            write_missing(location, opened, rows, listener, allow_keys=allow_keys, verb="written")
    counts = count_kinds(count_by_table(rows))
    return BundleReport(str(file), counts, path.stat().st_size, presumes, excluded_runs)


def _require_bundle_or_nothing(path: Path, file: Path) -> None:
    """Raise `RemoteError` if another file, such as a store, would be replaced."""
    if path.exists() and path.stat().st_size and not is_bundle(path):
        raise RemoteError(
            f"'{file}' is another file, not a bundle, so it is not replaced",
            hint="name a file that does not exist yet, such as results.bundle",
        )


def verify_bundle(
    directory: Path, file: Path, *, listener: CopyListener | None = None
) -> BundleCheck:
    """Check a bundle without a workspace and a store; raises `RemoteError` if it cannot be read.

    Rows may refer to rows of the runs that it presumes, which are not looked for.
    """
    with BundleFiles.open(normal_path(directory, file)) as files:
        description = files.description
        check = check_remote(
            files, listener or CopyListener(), is_partial=bool(description.presumes)
        )
    return BundleCheck(
        str(file), description.writer, iso(description.created), description.presumes, check
    )


def unbundle(
    location: Location,
    file: Path,
    *,
    dry_run: bool = False,
    listener: CopyListener | None = None,
) -> PullReport:
    """Copy all rows of a bundle that the store does not have; each is checked before.

    Raises `EvalstoreError`, also when the store does not have the runs that the bundle presumes.
    """
    path = normal_path(location.directory, file)
    _require_workspace(location, file)
    with (
        BundleFiles.open(path) as files,
        open_store(location, create=not dry_run) as store,
        IndexCache.open(None, files.address) as cache,
    ):
        _require_runs(store, file, files.description.presumes)
        opened = OpenRemote(NAME, str(file), files, cache, store)
        return pull_missing(opened, dry_run=dry_run, listener=listener)


def _require_workspace(location: Location, file: Path) -> None:
    try:
        open_workspace(location)
    except NoWorkspaceError as error:
        command = shlex.join(["evalstore", "clone", str(file)])
        raise NoWorkspaceError(
            str(error), hint=f"'{command} DIR' makes a workspace with these results"
        ) from error


def _require_runs(store: Store, file: Path, ids: Sequence[str]) -> None:
    present = store.load_sizes(RUNS.name, ids)
    missing = [id for id in ids if id not in present]
    if missing:
        names = ", ".join(short(id) for id in missing[:_LISTED])
        more = f" and {len(missing) - _LISTED:,} more" if len(missing) > _LISTED else ""
        raise RemoteError(
            f"the bundle '{file}' presumes {plural(len(missing), 'run')} that the store does not "
            f"have: {names}{more}",
            hint="get these first, or have the bundle made without --since",
        )
