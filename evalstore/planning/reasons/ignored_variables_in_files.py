"""Finds the variables in `.env` that have no effect there, for the store and remotes in use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress

from evalstore.core.errors import EvalstoreError
from evalstore.planning.open_project import locate_store, open_workspace
from evalstore.planning.options import Location
from evalstore.planning.reasons.ignored_variables import (
    HINT,
    IgnoredVariable,
    find_in_files,
    warn_of,
)
from evalstore.store.location import DatabaseAddress
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.settings.remote_names import is_database
from evalstore.workspace.settings.settings import RemoteSettings

__all__ = ["HINT", "find_ignored_variables", "warn_of_ignored_variables"]


def find_ignored_variables(
    location: Location, workspace: WorkspaceFolder, remotes: Iterable[RemoteSettings] | None = None
) -> Iterator[IgnoredVariable]:
    """Yield the variables of the files that this program reads from the environment only.

    Those of databases count where the store is one, or one of these remotes; without `remotes`, of
    all that are set. Files that cannot be read are left out, as others report them.
    """
    with suppress(EvalstoreError):
        if remotes is None:
            remotes = workspace.settings.remotes.values()
        found = [*find_in_files(workspace.root)]
        has_database = bool(found) and (
            any(is_database(remote.address) for remote in remotes)
            or isinstance(locate_store(workspace, location), DatabaseAddress)
        )
        yield from (each for each in found if has_database or not each.is_of_database)


def warn_of_ignored_variables(location: Location, *remotes: RemoteSettings) -> None:
    """Warn of them, of each once in this process; `remotes` are those that are used."""
    with suppress(EvalstoreError):
        workspace = open_workspace(location)
        found = find_ignored_variables(location, workspace, remotes)
        warn_of(workspace.root, found, location.warn)
