"""Opens what a command needs: the workspace, its store alone, or a project with both.

Modules that only a project needs are imported when one is opened, to keep other commands quick.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from evalstore.core.errors import EvalstoreError, NoWorkspaceError, StoreError
from evalstore.files.access import normal_path
from evalstore.planning.options import Location
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, StoreLocation, is_url, read_address
from evalstore.workspace.folder import WorkspaceFolder, mentions, read_env_files
from evalstore.workspace.settings import remote_names
from evalstore.workspace.settings.settings import find_root

if TYPE_CHECKING:
    from evalstore.planning.project import Project

HINT = "set it in your environment: the files of a checkout may be someone else's"
_OF_DATABASE = re.compile(
    r"PG(APPNAME|CHANNELBINDING|CONNECT_TIMEOUT|DATABASE|HOST|HOSTADDR|OPTIONS|PASSFILE|PASSWORD"
    r"|PORT|SERVICE|SERVICEFILE|SSL\w+|TARGETSESSIONATTRS|USER)"
)
"""The variables of libpq; they count only where the store or a remote is in PostgreSQL."""
_OURS = "EVALSTORE_"
"""How the variables of this program begin."""
_said: set[tuple[str, str]] = set()
"""The folders and places of which this process has warned."""
_looked: set[tuple[str, bool]] = set()
"""The folders whose files this process has looked into when it opened a store."""


class IgnoredVariable(NamedTuple):
    """A variable of a `.env` file that is not read."""

    file: str
    line: int
    name: str

    @property
    def words(self) -> str:
        """Return what is said of it, without its place."""
        return f"{self.name} has no effect in this file: it is read from the environment only"

    @property
    def is_of_database(self) -> bool:
        """Return whether it is a variable of libpq."""
        return _OF_DATABASE.fullmatch(self.name) is not None


def find_in_files(root: Path) -> Iterator[IgnoredVariable]:
    """Yield the variables in the `.env` files of a workspace that are read elsewhere only.

    Those that are set in the environment, too, are left out. Raises `EvalstoreError` for a file
    that cannot be read.
    """
    if not mentions(root, (_OURS, "PG")):  # which is quicker than to parse them
        return
    for file, read in read_env_files(root).items():
        for name, line in read.lines.items():
            ignored = IgnoredVariable(file, line, name)
            is_meant = name.startswith(_OURS) or ignored.is_of_database
            if is_meant and not os.environ.get(name):
                yield ignored


def warn_before_opening(root: Path, warn: Callable[[str], None], *, is_database: bool) -> None:
    """Warn of them before a store or a remote is opened, of each once in this process.

    It may be another one than is meant.
    """
    if (str(root), is_database) in _looked:
        return
    _looked.add((str(root), is_database))
    with suppress(EvalstoreError):  # others report it
        for each in find_in_files(root):
            place = str(root), f"{each.file}:{each.line}"
            if place not in _said and (is_database or not each.is_of_database):
                _said.add(place)
                warn(f"{place[1]}: {each.words} ({HINT})")


def warn_outside(directory: Path, warn: Callable[[str], None], *, is_database: bool) -> None:
    """Warn of them for a command that needs no workspace: of those in this one, or in the folder.

    `directory` is where the command is called.
    """
    with suppress(NoWorkspaceError):
        directory = find_root(directory)
    warn_before_opening(directory, warn, is_database=is_database)


@contextmanager
def open_project(
    location: Location,
    *,
    create: bool = False,
    keep: bool = False,
    workspace: WorkspaceFolder | None = None,
) -> Iterator[Project]:
    """Find and read the workspace, and open its store.

    With `keep`, it is an error if the versions that are read cannot be stored.
    """
    from evalstore.planning.project import Project, VersionBuffer
    from evalstore.workspace.reader import read_workspace

    workspace = workspace or open_workspace(location)
    with closing(_open(workspace, location, create=create)) as store:
        buffer = VersionBuffer(store, strict=keep)
        reading = read_workspace(workspace, store.find_case_files, buffer.take)
        buffer.finish(workspace, reading)
        yield Project(location, workspace, store, reading)


@contextmanager
def open_catalogue(location: Location) -> Iterator[Project]:
    """Open a project without reading the tests: for names, prices and currencies."""
    from evalstore.planning.project import Project
    from evalstore.workspace.reader import read_workspace

    workspace = open_workspace(location)
    with closing(_open(workspace, location)) as store:
        reading = read_workspace(workspace, store.find_case_files, tests=False)
        yield Project(location, workspace, store, reading)


@contextmanager
def open_store(
    location: Location, *, create: bool = False, inspect: bool = False
) -> Iterator[Store]:
    """Open the store alone, for commands that do not need the files.

    With `inspect`, a store that only `fsck` may read is opened, too.
    """
    workspace = open_workspace(location)
    with closing(_open(workspace, location, create=create, inspect=inspect)) as store:
        yield store


def _open(
    workspace: WorkspaceFolder, location: Location, *, create: bool = False, inspect: bool = False
) -> Store:
    path = locate_store(workspace, location)
    require_store(path, location)
    is_database = isinstance(path, DatabaseAddress)
    warn_before_opening(workspace.root, location.warn, is_database=is_database)
    may_create = create or not location.store
    if is_database and not location.store:
        # A misspelt address must not begin an empty store, in which all is asked and paid again.
        may_create = False
    store = Store.open(path, create=may_create, inspect=inspect)
    store.find_remote_runs = partial(_find_remote_runs, workspace)
    if not inspect:
        for extra in store.foreign:
            location.warn(
                f"{extra.words} in the store '{path}'; 'evalstore fsck' lists what is wrong"
            )
    return store


def _find_remote_runs(workspace: WorkspaceFolder, remote: str) -> list[str]:
    from evalstore.remotes.index_cache import find_known_runs

    return find_known_runs(workspace, remote)


def require_store(path: StoreLocation, location: Location) -> None:
    """Raise `StoreError` when the file of a store that was open before is gone or empty."""
    if not location.was_seen or not isinstance(path, Path):
        return
    try:
        size = path.stat().st_size
    except OSError:
        size = None
    if not size:
        raise StoreError(
            f"the store '{path}' is {'gone' if size is None else 'empty'}",
            hint="it is read again when it is back",
        )


def open_workspace(location: Location) -> WorkspaceFolder:
    """Find the workspace and read its settings."""
    root = find_root(location.directory)
    return WorkspaceFolder(
        root,
        location.config,
        allow_outside=location.allow_outside,
        overrides=location.overrides,
        tell=location.warn,
    )


def locate_store(workspace: WorkspaceFolder, location: Location) -> StoreLocation:
    """Return where the store is; raises `OutsideError` when the workspace may not use it."""
    if not location.store:
        return workspace.locate_store()
    if is_url(location.store):
        return read_address(location.store)
    return normal_path(location.directory, location.store)


# --- variables in `.env` that have no effect there, for the store and remotes in use


def find_ignored_variables(
    location: Location, workspace: WorkspaceFolder
) -> Iterator[IgnoredVariable]:
    """Yield the variables of the files that this program reads from the environment only.

    Those of databases count where the store or a remote is one. Files that cannot be read are left
    out, as others report them.
    """
    with suppress(EvalstoreError):
        found = [*find_in_files(workspace.root)]
        has_database = bool(found) and (
            any(
                remote_names.is_database(each.address)
                for each in workspace.settings.remotes.values()
            )
            or isinstance(locate_store(workspace, location), DatabaseAddress)
        )
        yield from (each for each in found if has_database or not each.is_of_database)
