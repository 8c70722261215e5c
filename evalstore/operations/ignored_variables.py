"""Finds variables in `.env` that have an effect only in the environment of the user.

A checkout may be somebody else's: its files must not choose options of commands, the store, or the
password that is sent to it.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import EvalstoreError
from evalstore.planning.open_project import locate_store, open_workspace
from evalstore.store.location import DatabaseAddress
from evalstore.workspace.env_files import read_env_files
from evalstore.workspace.remote_names import is_database

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from evalstore.planning.options import Location
    from evalstore.workspace.folder import WorkspaceFolder
    from evalstore.workspace.settings import RemoteSettings

HINT = "set it in your environment: a checkout, with its files, may be somebody else's"
_OF_DATABASE = re.compile(
    r"PG(APPNAME|CHANNELBINDING|CONNECT_TIMEOUT|DATABASE|HOST|HOSTADDR|OPTIONS|PASSFILE|PASSWORD"
    r"|PORT|SERVICE|SERVICEFILE|SSL\w+|TARGETSESSIONATTRS|USER)"
)
"""The variables of libpq; they count only where the store or a remote is in PostgreSQL."""
_said: set[tuple[str, str]] = set()
"""The folders and places of which this process has warned."""


class IgnoredVariable(NamedTuple):
    """A variable of a `.env` file that is not read."""

    file: str
    line: int
    name: str

    @property
    def words(self) -> str:
        """Return what is said of it, without its place."""
        return f"{self.name} has no effect in this file: it is read from the environment only"


def find_ignored_variables(
    location: Location, workspace: WorkspaceFolder, remotes: Iterable[RemoteSettings] | None = None
) -> Iterator[IgnoredVariable]:
    """Yield the variables of the files that this program reads from the environment only.

    Those of databases count where the store is one, or one of these remotes; without `remotes`, of
    all that are set. Those that are set in the environment, too, are left out, and files that
    cannot be read, which others report.
    """
    with suppress(EvalstoreError):
        if remotes is None:
            remotes = workspace.settings.remotes.values()
        has_database = any(is_database(remote.address) for remote in remotes)
        yield from _find(location, workspace, has_database=has_database)


def _find(
    location: Location, workspace: WorkspaceFolder, *, has_database: bool
) -> Iterator[IgnoredVariable]:
    store = None
    for file, read in read_env_files(workspace.root).items():
        for name, line in read.lines.items():
            is_of_database = _OF_DATABASE.fullmatch(name) is not None
            if os.environ.get(name) or not (is_of_database or name.startswith("EVALSTORE_")):
                continue
            store = store or locate_store(workspace, location)
            if has_database or isinstance(store, DatabaseAddress) or not is_of_database:
                yield IgnoredVariable(file, line, name)


def warn_of_ignored_variables(location: Location, *remotes: RemoteSettings) -> None:
    """Warn of them, of each once in this process; `remotes` are those that are used."""
    with suppress(EvalstoreError):
        workspace = open_workspace(location)
        for ignored in find_ignored_variables(location, workspace, remotes):
            place = f"{ignored.file}:{ignored.line}"
            if (said := (str(workspace.root), place)) not in _said:
                _said.add(said)
                location.warn(f"{place}: {ignored.words} ({HINT})")
