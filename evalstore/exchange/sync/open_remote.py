"""Opens a remote together with the store of the workspace.

What only one kind of remote needs is imported when one is opened, to keep the others quick.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core.errors import EvalstoreError
from evalstore.planning.open_project import open_store, open_workspace
from evalstore.planning.reasons.ignored_variables_in_files import warn_of_ignored_variables
from evalstore.remotes.acceptance import acceptance_of, signing_key_of
from evalstore.remotes.indexes.index_cache import IndexCache
from evalstore.remotes.known_runs import cache_path
from evalstore.remotes.places.folder import FolderFiles
from evalstore.workspace.settings.remote_names import is_database, is_folder, path_of
from evalstore.workspace.settings.remote_urls import BUCKETS, RemoteUrl, read_url
from evalstore.workspace.settings.remotes import find_remote, locate_folder, locate_url

if TYPE_CHECKING:
    from evalstore.planning.options import Location
    from evalstore.remotes.differences import IdSource
    from evalstore.remotes.packs.signatures import SigningKey
    from evalstore.remotes.places.remote_files import RemoteFiles
    from evalstore.store import Store
    from evalstore.workspace.folder import WorkspaceFolder


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
        return nullcontext(self.cache.records)


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
    warn_of_ignored_variables(location, remote)
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

    A place outside of the workspace is refused unless the user has allowed it: evalstore.yaml may
    be somebody else's. Nothing is connected to yet.
    """
    if is_database(address):
        raise EvalstoreError(
            f"the remote '{name}' is a database: only 'push', 'pull' and 'remote show' "
            "work with one",
            hint="all commands use it as their store with '--store ADDRESS', also 'run' and 'fsck'",
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
        from evalstore.remotes.places.buckets import open_bucket

        return open_bucket(url, os.environ)
    from evalstore.remotes.places.sftp import open_sftp

    return open_sftp(url)
