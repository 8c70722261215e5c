"""Finds variables in `.env` that have an effect only in the environment of the user.

A checkout may be somebody else's: its files must not choose options of commands, the store, or the
password that is sent to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from evalstore.core.errors import EvalstoreError, NoWorkspaceError
from evalstore.workspace.settings.env_files import mentions, read_env_files
from evalstore.workspace.settings.settings import find_root

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


def warn_of(root: Path, ignored: Iterable[IgnoredVariable], warn: Callable[[str], None]) -> None:
    """Warn of variables in the files of a workspace, of each once in this process."""
    for each in ignored:
        place = f"{each.file}:{each.line}"
        if (said := (str(root), place)) not in _said:
            _said.add(said)
            warn(f"{place}: {each.words} ({HINT})")


def warn_before_opening(root: Path, warn: Callable[[str], None], *, is_database: bool) -> None:
    """Warn of them before a store is opened, once for a workspace: it may be another one."""
    if (place := (str(root), is_database)) in _looked:
        return
    _looked.add(place)
    with suppress(EvalstoreError):  # others report it
        found = find_in_files(root)
        warn_of(root, (each for each in found if is_database or not each.is_of_database), warn)


def warn_outside(directory: Path, warn: Callable[[str], None], *, is_database: bool) -> None:
    """Warn of them for a command that needs no workspace: of those in this one, or in the folder.

    `directory` is where the command is called.
    """
    with suppress(NoWorkspaceError):
        directory = find_root(directory)
    warn_before_opening(directory, warn, is_database=is_database)
