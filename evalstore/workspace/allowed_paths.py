"""The paths outside workspaces that the user allows them to use.

The list is in the user's configuration, beside that of trusted files. Each entry is a workspace
and a folder or file, both by their real paths, or the URL of a remote.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from evalstore.core.errors import EvalstoreError, FileProblem, OutsideError
from evalstore.files.access import Boundary, OutsideProblem
from evalstore.files.user_lists import default_place, read_user_list, write_list

_NAME = "allowed paths"


class AllowedPath(NamedTuple):
    """A folder, a file or a remote outside a workspace that this workspace may use."""

    workspace: str
    path: str
    """A real path, or the URL of a remote."""


class AllowedPaths:
    """The allowed paths of all workspaces of this user; read once."""

    def __init__(self, file: Path | None = None) -> None:
        """Read the list; raises `EvalstoreError` if it is damaged or others can write to it."""
        self.file = file or list_file()
        self._entries = dict.fromkeys(read_user_list(self.file, _NAME, _entry))

    @property
    def entries(self) -> list[AllowedPath]:
        """Return all entries, in the order in which they were allowed."""
        return list(self._entries)

    def of(self, workspace: str) -> list[str]:
        """Return the paths that a workspace, named by its real path, may use."""
        return [entry.path for entry in self._entries if entry.workspace == workspace]

    def add(self, workspace: str, paths: Iterable[str]) -> None:
        """Allow more paths."""
        self._entries.update(dict.fromkeys(AllowedPath(workspace, path) for path in paths))
        self._write()

    def remove(self, entries: Iterable[AllowedPath]) -> None:
        """Remove entries."""
        for entry in entries:
            self._entries.pop(entry, None)
        self._write()

    def _write(self) -> None:
        write_list(self.file, _NAME, [entry._asdict() for entry in self._entries])


def list_file() -> Path:
    """Return the path of the list of this user."""
    trusted = default_place()
    return trusted.with_name(f"{trusted.name}-paths")


class WorkspaceBoundary(Boundary):
    """The paths that one workspace may use, inside and outside it."""

    def __init__(
        self,
        root: Path,
        *,
        allow_all: bool = False,
        tell: Callable[[str], None] = lambda _message: None,
    ) -> None:
        """Allow every path if `allow_all`; `tell` reports those that are added."""
        self.root = os.path.realpath(root)
        self._tell = tell
        super().__init__(
            [self.root], "workspace", lambda: AllowedPaths().of(self.root), allow_all=allow_all
        )

    def require(self, path: Path, place: str) -> None:
        """Raise `OutsideError` unless a path may be used; `place` is its name in the message."""
        try:
            self.resolve(path)
        except OutsideProblem as problem:
            raise OutsideError(f"{place}: {problem.message}", hint=problem.hint) from problem
        except FileProblem as problem:
            raise EvalstoreError(f"{place}: {problem.message}") from problem
        self.record()

    def require_address(self, address: str, place: str) -> None:
        """Raise `OutsideError` unless the URL of a remote, or one above it, may be used."""
        self._require_address(address, self.contains(address), place)

    def require_server(self, address: str, place: str) -> None:
        """Raise `OutsideError` unless the address of a database may be used, with these options."""
        self._require_address(address, self.allows(address), place)

    def _require_address(self, address: str, is_allowed: bool, place: str) -> None:
        if not is_allowed:
            raise OutsideError(f"{place}: leads to '{address}', which is outside the workspace")
        self.record()

    def require_database(self, path: Path, place: str) -> None:
        """Do the same for a database and the files that SQLite keeps beside it.

        Their names begin with that of the database.
        """
        self.require(path, place)
        real = Path(os.path.realpath(path))
        links: list[Path] = []
        with suppress(OSError), os.scandir(real.parent) as beside:
            links += [
                Path(entry.path)
                for entry in beside
                if entry.name.startswith(real.name) and entry.is_symlink()
            ]
        for link in links:
            self.require(link, os.path.relpath(link, self.root))

    def record(self) -> None:
        """Add the paths allowed so far to the user's list; raises `EvalstoreError`."""
        if self.added:
            AllowedPaths().add(self.root, self.added)
            for path in self.added:
                self._tell(
                    f"this workspace may use '{path}' from now on; "
                    f"'evalstore trust --revoke {path}' takes it back"
                )
            self.added.clear()


def _entry(value: Mapping[str, object]) -> AllowedPath:
    workspace, path = value["workspace"], value["path"]
    if not (isinstance(workspace, str) and isinstance(path, str)):
        raise TypeError("an entry with the wrong fields")
    return AllowedPath(workspace, path)
