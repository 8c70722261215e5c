"""Bundles: results as one file, which `push` and `pull` take in the place of a remote."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from evalstore.core.clock import iso
from evalstore.core.display import plural, short
from evalstore.core.errors import NoWorkspaceError, RemoteError
from evalstore.exchange.sync.open_remote import (
    OpenDatabase,
    OpenRemote,
    is_place,
    open_files_or_database,
    open_other_store,
)
from evalstore.files.access import normal_path
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.options import Location
from evalstore.remotes.bundle_files import BundleFiles, begins_like_bundle
from evalstore.remotes.check_remote import RemoteCheck, check_remote
from evalstore.remotes.indexes.index_cache import IndexCache
from evalstore.remotes.progress import CopyListener
from evalstore.store import Store
from evalstore.store.location import is_url
from evalstore.store.schema.table_definitions import RUNS
from evalstore.workspace.settings.remote_names import BUNDLE

SUFFIX = ".bundle"
_LISTED = 5
"""Missing runs that an error lists."""


@dataclass(frozen=True, slots=True)
class BundleCheck:
    """The result of `fsck --remote` of a bundle."""

    file: str
    writer: str
    """Who has written it; not verified."""
    created: str
    """ISO 8601, by the clock of the writer."""
    presumes: Sequence[str]
    check: RemoteCheck = field(metadata={"json_inline": True})


def is_meant_as_bundle(location: Location, name: str) -> bool:
    """Return whether a path is meant as a bundle: by its name, or as it begins like one."""
    if is_url(name):
        return False
    path = location.directory / name
    return path.suffix.lower() == SUFFIX or (path.is_file() and begins_like_bundle(path))


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


@contextmanager
def open_bundle(location: Location, file: str, *, create: bool = False) -> Iterator[OpenRemote]:
    """Open a bundle as a remote, which cannot be written to.

    Raises `EvalstoreError`, also when the store does not have the runs that the bundle presumes.
    """
    try:
        open_workspace(location)
    except NoWorkspaceError as error:
        command = shlex.join(["evalstore", "clone", file])
        raise NoWorkspaceError(
            str(error), hint=f"'{command} DIR' makes a workspace with these results"
        ) from error
    with (
        BundleFiles.open(normal_path(location.directory, file)) as files,
        open_store(location, create=create) as store,
        IndexCache.open(None, files.address) as cache,
    ):
        _require_runs(store, file, files.description.presumes)
        yield OpenRemote(BUNDLE, file, files, cache, store)


def _require_runs(store: Store, file: str, ids: Sequence[str]) -> None:
    present = store.load_sizes(RUNS.name, ids)
    missing = [id for id in ids if id not in present]
    if missing:
        names = ", ".join(short(id) for id in missing[:_LISTED])
        more = f" and {len(missing) - _LISTED:,} more" if len(missing) > _LISTED else ""
        raise RemoteError(
            f"the bundle '{file}' needs {plural(len(missing), 'earlier run')}: {names}{more}",
            hint="get these runs first, or make the bundle without --since",
        )


def open_source(
    location: Location, name: str | None, *, dry_run: bool
) -> AbstractContextManager[OpenRemote | OpenDatabase]:
    """Open what a pull reads: a remote, a bundle or another store; raises `EvalstoreError`."""
    if name is None or not is_place(location, name):
        return open_files_or_database(location, name, create=True)
    if is_meant_as_bundle(location, name):
        return open_bundle(location, name, create=not dry_run)
    return open_other_store(location, name, create=not dry_run)
