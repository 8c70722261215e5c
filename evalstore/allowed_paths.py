"""Which paths outside of a workspace its user lets it use: in a list of the user, not of it.

The list lies beside that of trusted files. Each entry is a workspace and a folder or file, both
by their paths without links.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from evalstore.file_access import Boundary
from evalstore.trust import default_place, read_list, write_list

if TYPE_CHECKING:
    from pathlib import Path

_NAME = "allowed paths"


@dataclass(frozen=True, slots=True)
class AllowedPath:
    """A folder or file outside that one workspace may use."""

    workspace: str
    path: str


class AllowedPaths:
    """What all workspaces of this user may use outside of themselves; read once."""

    def __init__(self, file: Path | None = None) -> None:
        """Raises `EvalstoreError` when the list is damaged, or when others can write to it."""
        self.file = file or list_file()
        self._entries = dict.fromkeys(read_list(self.file, _NAME, _entry))

    @property
    def entries(self) -> list[AllowedPath]:
        """All of them, in the order in which they were allowed."""
        return list(self._entries)

    def of(self, workspace: str) -> list[str]:
        """What a workspace, by its path without links, may use."""
        return [one.path for one in self._entries if one.workspace == workspace]

    def add(self, workspace: str, paths: Iterable[str]) -> None:
        """Allow more paths."""
        self._entries.update(dict.fromkeys(AllowedPath(workspace, path) for path in paths))
        self._write()

    def remove(self, entries: Iterable[AllowedPath]) -> None:
        """Allow some no longer."""
        for one in entries:
            self._entries.pop(one, None)
        self._write()

    def _write(self) -> None:
        write_list(self.file, _NAME, map(asdict, self._entries))


def list_file() -> Path:
    """Where the list of this user is."""
    trusted = default_place()
    return trusted.with_name(f"{trusted.name}-paths")


def workspace_boundary(root: Path, *, allow_all: bool = False) -> Boundary:
    """What may be read of a workspace; with `allow_all` everything, until `record_added`."""
    real = os.path.realpath(root)
    return Boundary([real], "workspace", lambda: AllowedPaths().of(real), allow_all=allow_all)


def record_added(root: Path, boundary: Boundary) -> None:
    """Remember for this user what a workspace was allowed to use; raises `EvalstoreError`."""
    if boundary.added:
        AllowedPaths().add(os.path.realpath(root), boundary.added)
        boundary.added.clear()


def _entry(value: Mapping[str, object]) -> AllowedPath:
    workspace, path = value["workspace"], value["path"]
    if not (isinstance(workspace, str) and isinstance(path, str)):
        raise TypeError("an entry of another shape")
    return AllowedPath(workspace, path)
