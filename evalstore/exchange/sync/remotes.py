"""The command `remote`: the places where results are shared, and how each kind is opened.

What only one kind of remote needs is imported when one is opened, to keep the others quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join, quote

from evalstore.core.display import plural, short
from evalstore.core.errors import (
    EvalstoreError,
    NoWorkspaceError,
    RemoteError,
    StoreMissingError,
    hide_passwords,
)
from evalstore.files.access import normal_path
from evalstore.planning.first_pushes import note_excluded_tags
from evalstore.planning.open_project import open_store, open_workspace, warn_before_opening
from evalstore.planning.options import Location
from evalstore.remotes import layout
from evalstore.remotes.acceptance import SigningKey, acceptance_of, signing_key_of
from evalstore.remotes.collect_garbage import Collected, collect_garbage
from evalstore.remotes.index_cache import IndexCache, absolute_address, cache_path
from evalstore.remotes.layout import FolderFiles, RemoteFiles, require_remote
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, StoreLocation, is_url, read_address
from evalstore.store.records import (
    COPIED_TABLES,
    CopyListener,
    IdSource,
)
from evalstore.store.schema.table_definitions import RUNS
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.settings.remote_names import (
    BUNDLE,
    STORE,
    is_database,
    is_folder,
    is_remote_name,
    path_of,
)
from evalstore.workspace.settings.remotes import (
    BUCKETS,
    RemoteUrl,
    find_remote,
    locate_database,
    locate_folder,
    locate_url,
    read_url,
    write_remote,
)
from evalstore.workspace.settings.settings import AGE_HINT, read_age
from evalstore.workspace.trust import WorkspaceBoundary


@dataclass(frozen=True, slots=True)
class OpenRemote:
    """A remote, and the store of the workspace."""

    name: str
    address: str
    files: RemoteFiles
    cache: IndexCache
    store: Store
    sign: SigningKey | None = None
    """Signs pushes; only where the remote was opened for one."""
    exclude_tags: Sequence[str] = ()
    """The results of cases with these tags are not pushed."""

    def ids(self) -> AbstractContextManager[IdSource]:
        """Return the ids of the rows of the remote, as it was last read."""
        return nullcontext(self.cache)


@contextmanager
def open_remote(
    location: Location, name: str | None, *, create: bool = False, to_push: bool = False
) -> Iterator[OpenRemote]:
    """Open a remote by its name, or the default one; raises `EvalstoreError`.

    With `create`, a store that is missing is created where `--store` names it, too. With
    `to_push`, the key that signs must be there.
    """
    workspace = open_workspace(location)
    name, remote = find_remote(workspace, name)
    warn_before_opening(workspace.root, location.warn)
    files = open_files(workspace, name, remote.address)
    rules = acceptance_of(workspace, name, remote)
    sign = signing_key_of(workspace, name, remote) if to_push else None
    cache = cache_path(workspace, name, files.address, rules)
    with (
        open_store(location, create=create) as store,
        IndexCache.open(cache, files.address, rules) as indexes,
    ):
        yield OpenRemote(name, remote.address, files, indexes, store, sign, remote.exclude_tags)


def locate_remote(location: Location, name: str | None) -> tuple[str, RemoteFiles]:
    """Return the name and the files of a remote without a store; raises `EvalstoreError`."""
    workspace = open_workspace(location)
    name, remote = find_remote(workspace, name)
    return name, open_files(workspace, name, remote.address)


def open_files(workspace: WorkspaceFolder, name: str, address: str) -> RemoteFiles:
    """Return the files of an address; raises `EvalstoreError` for one that cannot be used.

    A place outside the workspace is refused unless the user has allowed it: evalstore.yaml may
    be somebody else's. Nothing is connected to yet.
    """
    if is_database(address):
        raise EvalstoreError(
            f"the remote '{name}' is a database: only 'push', 'pull' and 'remote show' "
            "work with one",
            hint="'--store ADDRESS' makes it the store of any command, such as 'run'",
        )
    if is_folder(address):
        return FolderFiles(locate_folder(workspace, name, path_of(address)))
    return _open_url(locate_url(workspace, name, address))


def open_typed(address: str) -> RemoteFiles:
    """Return the files of an address that the user has typed, and so allowed.

    A folder is an absolute path. Raises `EvalstoreError` for an address that cannot be used.
    """
    return (
        FolderFiles(Path(path_of(address))) if is_folder(address) else _open_url(read_url(address))
    )


def _open_url(url: RemoteUrl) -> RemoteFiles:
    if url.scheme in BUCKETS:
        from evalstore.remotes.buckets import open_bucket

        return open_bucket(url, os.environ)
    from evalstore.remotes.sftp import open_sftp

    return open_sftp(url)


# --- a remote, or a database, a bundle or another store in its place


@dataclass(frozen=True, slots=True)
class OpenDatabase:
    """A database that is a remote, or another store, and the store of the workspace."""

    name: str
    place: StoreLocation
    database: Store | None
    """None where the tables are not made yet."""
    store: Store
    exclude_tags: Sequence[str] = ()
    """The results of cases with these tags are not pushed."""

    @property
    def address(self) -> str:
        """Return its address, without a password."""
        return str(self.place)

    def ids(self) -> AbstractContextManager[IdSource]:
        """Return the ids of the rows of the database as they are now."""
        if self.database is None:
            from evalstore.remotes.upload import ReachedIds

            return nullcontext(ReachedIds({}))
        return self.database.snapshot_ids()


def is_place(location: Location, name: str) -> bool:
    """Return whether a text in the place of a remote is a path or an address, and not its name."""
    is_file = os.path.isfile(location.directory / name)  # noqa: PTH113 - also of impossible names
    if not (is_file or is_url(name) or "/" in name or "." in name):
        return False
    with suppress(NoWorkspaceError):
        return name not in open_workspace(location).settings.remotes
    return True


@contextmanager
def open_other_store(location: Location, name: str, *, create: bool) -> Iterator[OpenDatabase]:
    """Open another store to copy its rows; it is never changed. Raises `EvalstoreError`."""
    from evalstore.store.store import open_unchanged

    if not is_database(name) and (is_url(name) or (location.directory / name).is_dir()):
        raise EvalstoreError(
            f"'{name}' is neither a bundle nor a store",
            hint=f"'evalstore remote add NAME {quote(name)}' makes it a remote with a name",
        )
    place = read_address(name) if is_url(name) else normal_path(location.directory, name)
    with open_store(location, create=create) as store:
        is_same = str(place) == store.path
        if isinstance(place, Path) and not is_url(store.path):
            is_same = place.exists() and place.samefile(store.path)
        if is_same:
            raise EvalstoreError(f"'{place}' is the store of this workspace")
        with open_unchanged(place) as source:
            with source.snapshot_ids() as theirs:
                for table in COPIED_TABLES:  # one that is missing is an error of this store
                    next(theirs.iterate_ids(table), None)
            yield OpenDatabase(STORE, place, source, store)


@contextmanager
def open_files_or_database(
    location: Location,
    name: str | None,
    *,
    create: bool = False,
    to_push: bool = False,
    may_lack: bool = False,
) -> Iterator[OpenRemote | OpenDatabase]:
    """Open a remote as `open_remote` does, or a database.

    With `may_lack`, the tables of the database may be missing. Raises `EvalstoreError`.
    """
    workspace = open_workspace(location)
    name, remote = find_remote(workspace, name)
    if not is_database(remote.address):
        with open_remote(location, name, create=create, to_push=to_push) as opened:
            yield opened
        return
    warn_before_opening(workspace.root, location.warn)
    address = locate_database(workspace, name, remote.address)
    rules = {"sign": remote.sign, "allowedSigners": remote.allowed_signers, "trust": remote.trust}
    if given := [f"'{key}'" for key, value in rules.items() if value]:  # rows have no signatures
        raise EvalstoreError(
            f"the remote '{name}' is a database, so it cannot have {' and '.join(given)}",
            hint="share through a folder or a bucket where signatures are needed",
        )
    with open_store(location, create=create) as store:
        if store.path == str(address):
            raise EvalstoreError(
                f"the remote '{name}' is the store of this workspace",
                hint="there is nothing to copy: everyone who uses the store has its rows",
            )
        with open_typed_database(
            name, address, store, location, exclude_tags=remote.exclude_tags, may_lack=may_lack
        ) as database:
            yield database


@contextmanager
def open_typed_database(
    name: str,
    address: DatabaseAddress,
    store: Store,
    location: Location,
    *,
    exclude_tags: Sequence[str] = (),
    may_lack: bool = False,
) -> Iterator[OpenDatabase]:
    """Open a database that may be used, to copy rows between it and a store.

    Raises `EvalstoreError`.
    """
    database = None
    try:
        database = Store.open(address, may_migrate=False)
    except StoreMissingError as error:
        if not may_lack:
            push = "'evalstore push' makes them"
            raise RemoteError(
                f"'{address}' is not a remote of evalstore: it has no tables",
                hint=f"{push}; {error.others}" if error.others else push,
            ) from error
    with closing(database) if database else nullcontext():
        for extra in database.foreign if database else ():
            location.warn(
                f"{extra.words} in the remote '{address}'; "
                f"'evalstore fsck --store {quote(str(address))}' lists what is wrong"
            )
        yield OpenDatabase(name, address, database, store, exclude_tags)


# --- bundles: results as one file, which `push` and `pull` take in the place of a remote


_LISTED = 5
"""Missing runs that an error lists."""


def is_meant_as_bundle(location: Location, name: str) -> bool:
    """Return whether a path is meant as a bundle: by its name, or as it begins like one."""
    from evalstore.remotes.bundle_files import begins_like_bundle

    if is_url(name):
        return False
    path = location.directory / name
    return path.suffix.lower() == ".bundle" or (path.is_file() and begins_like_bundle(path))


@contextmanager
def open_bundle(location: Location, file: str, *, create: bool = False) -> Iterator[OpenRemote]:
    """Open a bundle as a remote, which cannot be written to.

    Raises `EvalstoreError`, also when the store does not have the runs that the bundle presumes.
    """
    from evalstore.remotes.bundle_files import BundleFiles

    try:
        open_workspace(location)
    except NoWorkspaceError as error:
        command = join(["evalstore", "clone", file])
        raise NoWorkspaceError(
            str(error), hint=f"'{command} DIR' makes a workspace with these results"
        ) from error
    with (
        BundleFiles.open(normal_path(location.directory, file)) as files,
        open_store(location, create=create) as store,
        IndexCache.open(None, files.address) as cache,
    ):
        presumed = files.description.presumes
        present = store.load_sizes(RUNS.name, presumed)
        if missing := [id for id in presumed if id not in present]:
            names = ", ".join(short(id) for id in missing[:_LISTED])
            more = f" and {len(missing) - _LISTED:,} more" if len(missing) > _LISTED else ""
            raise RemoteError(
                f"the bundle '{file}' needs {plural(len(missing), 'earlier run')}: {names}{more}",
                hint="pull these runs first, or make the bundle without --since",
            )
        yield OpenRemote(BUNDLE, file, files, cache, store)


def open_source(
    location: Location, name: str | None, *, dry_run: bool
) -> AbstractContextManager[OpenRemote | OpenDatabase]:
    """Open what a pull reads: a remote, a bundle or another store; raises `EvalstoreError`."""
    if name is None or not is_place(location, name):
        return open_files_or_database(location, name, create=True)
    if is_meant_as_bundle(location, name):
        return open_bundle(location, name, create=not dry_run)
    return open_other_store(location, name, create=not dry_run)


@dataclass(frozen=True, slots=True)
class Remote:
    """A remote of the settings."""

    name: str
    address: str


def list_remotes(location: Location) -> list[Remote]:
    """Return the remotes of the settings."""
    remotes = open_workspace(location).settings.remotes
    return [Remote(name, hide_passwords(remote.address)) for name, remote in remotes.items()]


def add_remote(location: Location, name: str, address: str) -> Remote:
    """Add a remote to the settings; the workspace may use its place from then on.

    A relative address is one of the current folder, and is written relative to the workspace.
    Raises `EvalstoreError`.
    """
    workspace = open_workspace(location)
    if not is_remote_name(name):
        raise EvalstoreError(
            f"'{name}' cannot be the name of a remote",
            hint="it is made of letters, digits, '.', '_' and '-', such as 'origin'",
        )
    known = workspace.settings.remotes.get(name)
    if known is not None:
        raise EvalstoreError(
            f"there is a remote '{name}' already: {known.address}",
            hint=f"'evalstore remote remove {name}' removes it from the settings",
        )
    absolute = typed_address(location, address)
    allow_address(location, workspace.root, name, absolute)
    if not is_folder(address):
        address = absolute
    else:
        address = path_of(address)
        if not Path(address).expanduser().is_absolute():
            address = os.path.relpath(absolute, workspace.root).replace(os.sep, "/")
    write_remote(workspace, name, address)
    return Remote(name, address)


def typed_address(location: Location, address: str) -> str:
    """Return an address that was typed in the current folder; raises `EvalstoreError`."""
    if is_folder(address) and not path_of(address).strip():
        raise EvalstoreError("the address is empty", hint="name a folder, as in ../team")
    return absolute_address(location.directory, address)


def allow_address(location: Location, root: Path, name: str, address: str) -> None:
    """Let a workspace use an absolute address from then on; raises `EvalstoreError`.

    Who types the address allows it; a file of settings alone does not.
    """
    boundary = WorkspaceBoundary(root, allow_all=True, tell=location.warn)
    if is_folder(address):
        boundary.require(Path(address), f"the remote '{name}'")
    else:
        boundary.require_address(address, f"the remote '{name}'", whole=is_database(address))


def remove_remote(location: Location, name: str) -> Remote:
    """Remove a remote from the settings; what it has stays. Raises `EvalstoreError`."""
    workspace = open_workspace(location)
    name, remote = find_remote(workspace, name)
    write_remote(workspace, name, None)
    note_excluded_tags(workspace, name, ())
    return Remote(name, hide_passwords(remote.address))


def read_remote(location: Location, name: str) -> None:
    """Read which results a remote has; raises `EvalstoreError`."""
    with open_remote(location, name, create=True) as opened:
        require_remote(opened.files)
        opened.cache.refresh(opened.files)


# --- the command `remote gc`


GRACE, LEAST_GRACE = "14d", "1d"
"""How long unneeded files are kept: longer than any push or pull takes. The minimum is that of
packs which no index lists yet."""
_SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class GarbageReport:
    """What a clean-up has done, or would do."""

    remote: str
    address: str
    grace: str
    """How long files stay that are no longer needed."""
    dry_run: bool
    collected: Collected = field(metadata={"json_inline": True})


def collect_remote_garbage(
    location: Location,
    remote: str | None = None,
    *,
    grace: str | None = None,
    dry_run: bool = False,
    listener: CopyListener | None = None,
) -> GarbageReport:
    """Compact the small pushes of a remote, and delete what has been unneeded for so long.

    `grace` is a text such as `30d`; None: `GRACE`. One below `LEAST_GRACE` counts as that, as a
    push may use packs of the last hours. All rows stay. Raises `EvalstoreError`; the next clean-up
    completes what this one has begun.
    """
    grace = GRACE if grace is None else grace
    seconds = read_age(grace)
    if seconds is None:
        raise EvalstoreError(f"'--grace {grace}' is not valid", hint=AGE_HINT)
    if seconds < layout.GRACE:
        grace, seconds = LEAST_GRACE, layout.GRACE
    with open_remote(location, remote, to_push=True) as opened:
        collected = collect_garbage(
            opened.files,
            opened.cache,
            grace=int(seconds * _SECOND),
            sign=opened.sign,
            listener=listener or CopyListener(),
            dry_run=dry_run,
        )
        return GarbageReport(opened.name, opened.address, grace.strip(), dry_run, collected)
