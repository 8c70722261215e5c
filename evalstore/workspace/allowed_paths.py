"""The paths outside workspaces that the user allows them to use.

The list is in the user's configuration, beside that of trusted files. Each entry is a workspace
and a folder or file, both by their real paths, or the URL of a remote.
"""

from __future__ import annotations

import os

# Paths are texts here for speed: thousands of mentions are checked even if nothing has changed.
# ruff: noqa: PTH118, PTH206, PTH208
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from evalstore.core.errors import EvalstoreError, FileProblem, OutsideError
from evalstore.files.access import Boundary, OutsideProblem
from evalstore.files.atomic_write import default_place, read_user_list, write_list

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
        trusted = default_place()
        self.file = file or trusted.with_name(f"{trusted.name}-paths")
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


_FOLDERS = frozenset({".git", ".evalstore"})
_KEYS = ".env"
_Identity = tuple[int, int]
"""Device and inode of a file."""


def is_private_name(path: str) -> bool:
    """Return whether a relative path is private by its names, regardless of case.

    `.env`, `.env.production`, `.envrc` and `production.env` are, in any folder.
    """
    folder, _, name = path.rpartition(os.sep)
    return _is_private_file(name) or _is_private_folder(folder)


def _is_private_file(name: str) -> bool:
    name = name.casefold()
    return name.startswith(_KEYS) or name.endswith(_KEYS) or name in _FOLDERS


def _is_private_folder(folder: str) -> bool:
    names = folder.casefold().split(os.sep)
    return any(name in _FOLDERS or name.startswith(_KEYS) for name in names)


class PrivateFiles:
    """The private files of one workspace, including hard links to them."""

    def __init__(self, root: str) -> None:
        """`root` is a real path."""
        self._root = root
        self._near: dict[str, frozenset[_Identity] | None] = {}
        self._all: frozenset[_Identity] | None = None

    def holds(self, path: str, status: os.stat_result) -> bool:
        """Return whether a file, named by its real path and its status, is private.

        It is private by its name, or when a file with a private name in one of its folders, or a
        hard link anywhere in the workspace, is the same file.
        """
        folder, _, name = path.rpartition(os.sep)
        if folder not in self._near:
            self._near[folder] = self._find_near(folder)
        near = self._near[folder]
        if near is None or _is_private_file(name):
            return True
        file = (status.st_dev, status.st_ino)
        return file in near or (status.st_nlink > 1 and file in self._find_all())

    def _find_near(self, folder: str) -> frozenset[_Identity] | None:
        """Find the private files of a folder and of those above it; None for a private folder."""
        inside = os.path.relpath(folder, self._root)
        if _is_private_folder(inside):
            return None
        identities = set(_identities(self._root))
        place = self._root
        for name in inside.split(os.sep):
            place = os.path.join(place, name)
            identities.update(_identities(place))
        return frozenset(identities)

    def _find_all(self) -> frozenset[_Identity]:
        if self._all is None:
            identities: set[_Identity] = set()
            for folder, folders, _ in os.walk(self._root):
                folders[:] = [name for name in folders if name not in _FOLDERS]
                identities.update(_identities(folder))
            self._all = frozenset(identities)
        return self._all


def _identities(folder: str) -> Iterator[_Identity]:
    """Yield the files with private names in a folder."""
    names: list[str] = []
    with suppress(OSError):
        names = os.listdir(folder)
    for name in names:
        if _KEYS in name.casefold() and _is_private_file(name):
            with suppress(OSError, ValueError):
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116
                yield status.st_dev, status.st_ino
