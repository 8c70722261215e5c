"""What is known of a remote without asking it: the copy of its indexes on this machine."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evalstore.core.errors import EvalstoreError, RevisionError
from evalstore.remotes.acceptance import ACCEPT_ALL, Acceptance, acceptance_of
from evalstore.remotes.index_cache import IndexCache, read_origin
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.settings.remote_names import CACHES, is_database, is_folder, path_of
from evalstore.workspace.settings.remote_urls import read_database, read_url
from evalstore.workspace.settings.remotes import find_remote, folder_of


def cache_path(
    workspace: WorkspaceFolder, name: str, address: str, rules: Acceptance = ACCEPT_ALL
) -> Path:
    """Return the path of the copy of the indexes of a remote; other rules have another one."""
    named = address.encode("utf-8", "surrogateescape") + rules.identity.encode()
    digest = hashlib.sha256(named).hexdigest()[:8]
    return workspace.private / CACHES / f"{name}-{digest}.db"


@contextmanager
def open_known(workspace: WorkspaceFolder, remote: str) -> Iterator[IndexCache | None]:
    """Open what is known of a remote; None when it was never read.

    Raises `EvalstoreError` for a remote that is not set, and for a database.
    """
    name, settings = find_remote(workspace, remote)
    if is_database(settings.address):
        raise EvalstoreError(
            f"the remote '{name}' is a database, of which no copy is kept here",
            hint=f"'evalstore pull {name}' copies its runs",
        )
    address = _absolute(workspace, settings.address)
    rules = acceptance_of(workspace, name, settings)
    path = cache_path(workspace, name, address, rules)
    if not path.is_file():
        yield None
        return
    with IndexCache.open(path, address, rules) as cache:
        yield cache


def iterate_former(workspace: WorkspaceFolder, remote: str) -> Iterator[IndexCache]:
    """Yield what is known of a remote at its former addresses, by its present rules.

    Raises `EvalstoreError` for a remote that is not set.
    """
    name, settings = find_remote(workspace, remote)
    rules = acceptance_of(workspace, name, settings)
    folder = workspace.private / CACHES
    pattern = re.compile(rf"{re.escape(name)}-[0-9a-f]{{8}}\.db")
    paths = folder.iterdir() if folder.is_dir() else ()
    for path in sorted(path for path in paths if pattern.fullmatch(path.name)):
        origin = read_origin(path)
        if (
            origin
            and path == cache_path(workspace, name, origin.address, rules)
            and origin.address != _absolute(workspace, settings.address)
        ):
            with IndexCache.open(path, origin.address, rules) as cache:
                yield cache


def _absolute(workspace: WorkspaceFolder, address: str) -> str:
    if is_folder(address):
        return str(folder_of(workspace.root, path_of(address)))
    return str(read_database(address)) if is_database(address) else read_url(address).address


def find_known_runs(workspace: WorkspaceFolder, remote: str) -> list[str]:
    """Return the ids of the runs that a remote had when it was last read, newest first.

    Raises `RevisionError` when it is not set or was never read.
    """
    try:
        with open_known(workspace, remote) as cache:
            if cache is not None and cache.list_pushes():
                return cache.records.list_runs()
    except EvalstoreError as error:
        raise RevisionError(str(error), hint=error.hint) from error
    raise RevisionError(
        f"the runs of '{remote}' are not known", hint=f"'evalstore pull -n {remote}' reads them"
    )
