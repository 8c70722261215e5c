"""Opens what a command needs: the workspace, its store alone, or a project with both.

Modules that only a project needs are imported when one is opened, to keep other commands quick.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError, NoWorkspaceError, Problem, StoreError
from evalstore.files.access import normal_path
from evalstore.planning.options import Location
from evalstore.store import Store
from evalstore.store.location import DatabaseAddress, StoreLocation, is_url, read_address
from evalstore.workspace.folder import WorkspaceFolder, mentions, read_env_files
from evalstore.workspace.settings.settings import find_root

if TYPE_CHECKING:
    from evalstore.planning.project import Project

_HINT = "set it in your environment: the files of a checkout may be someone else's"
_OURS = "EVALSTORE_"
"""How the variables of this program begin."""
_looked: set[Path] = set()
"""The folders whose files this process has looked into when it opened a store."""


def find_ignored_variables(root: Path) -> Iterator[Problem]:
    """Yield warnings of variables in `.env` files that are read from the environment only.

    Those that are set in the environment, too, are left out, and files that cannot be read, as
    others report them.
    """
    with suppress(EvalstoreError):
        if not mentions(root, _OURS):  # which is quicker than to parse them
            return
        for file, read in read_env_files(root).items():
            for name, line in read.lines.items():
                if name.startswith(_OURS) and not os.environ.get(name):
                    words = "has no effect in this file: it is read from the environment only"
                    yield Problem(file, f"{name} {words}", line, severity="warning", hint=_HINT)


def warn_before_opening(directory: Path, warn: Callable[[str], None]) -> None:
    """Warn of them before a store or a remote is opened, once in this process.

    It may be another one than is meant. `directory` is in the workspace, or in none.
    """
    with suppress(NoWorkspaceError):
        directory = find_root(directory)
    if directory not in _looked:
        _looked.add(directory)
        for each in find_ignored_variables(directory):
            warn(f"{each.file}:{each.line}: {each.message} ({each.hint})")


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
    warn_before_opening(workspace.root, location.warn)
    may_create = create or not location.store
    if isinstance(path, DatabaseAddress) and not location.store:
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
