"""Opens a remote together with the store of the workspace."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError
from evalstore.operations.label import name_of_person
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.sharing.folder import FolderFiles
from evalstore.sharing.index_cache import IndexCache
from evalstore.workspace.remote_names import scheme_of
from evalstore.workspace.remotes import find_remote, locate_folder

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.sharing.remote_files import RemoteFiles
    from evalstore.store import Store
    from evalstore.workspace.folder import WorkspaceFolder

CACHES = "remotes"
"""The folder in `.evalstore` with copies of the indexes of remotes."""


@dataclass(frozen=True, slots=True)
class OpenRemote:
    """A remote, and the store of the workspace."""

    name: str
    address: str
    files: RemoteFiles
    cache: IndexCache
    store: Store


@contextmanager
def open_remote(
    location: Location, name: str | None, *, create: bool = False
) -> Iterator[OpenRemote]:
    """Open a remote by its name, or the default one; raises `EvalstoreError`.

    With `create`, a store that is missing is created where `--store` names it, too.
    """
    workspace = open_workspace(location)
    name, address = find_remote(workspace, name)
    files = open_files(workspace, name, address)
    cache = cache_path(workspace, name, files)
    with (
        open_store(location, create=create) as store,
        IndexCache.open(cache, files.address) as indexes,
    ):
        yield OpenRemote(name, address, files, indexes, store)


def locate_remote(location: Location, name: str | None) -> tuple[str, RemoteFiles]:
    """Return the name and the files of a remote without a store; raises `EvalstoreError`."""
    workspace = open_workspace(location)
    name, address = find_remote(workspace, name)
    return name, open_files(workspace, name, address)


def cache_path(workspace: WorkspaceFolder, name: str, files: RemoteFiles) -> Path:
    """Return the path of the copy of the indexes of a remote."""
    digest = hashlib.sha256(files.address.encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return workspace.private / CACHES / f"{name}-{digest}.db"


def open_files(workspace: WorkspaceFolder, name: str, address: str) -> RemoteFiles:
    """Return the files of an address of the settings; raises `EvalstoreError`.

    A folder must be one that the workspace may use.
    """
    path = local_path(address)
    if path is not None:
        return FolderFiles(locate_folder(workspace, name, path))
    return connect(name, address)


def connect(name: str, address: str) -> RemoteFiles:
    """Return the files of an address that its user has typed; raises `EvalstoreError`.

    A folder is an absolute path.
    """
    path = local_path(address)
    if path is not None:
        return FolderFiles(Path(path))
    raise EvalstoreError(
        f"the remote '{name}' ({address}) has an address that this version cannot use",
        hint="a remote is a folder, such as /mnt/team/results",
    )


def local_path(address: str) -> str | None:
    """Return the path of an address that is a folder; None for another URL."""
    scheme = scheme_of(address)
    if scheme == "file":
        return address.partition("://")[2]
    return address if scheme is None else None


def name_of_writer(location: Location) -> str:
    """Return who writes to a remote: the user and the machine."""
    return f"{name_of_person(location.directory)}@{platform.node() or 'unknown'}"
