"""The private files of a workspace, which are never sent to a model.

These are files of keys, by their names or by hard links to them, and everything below `.git`
and `.evalstore`.
"""

# Paths are texts here for speed: thousands of mentions are checked even if nothing has changed.
# ruff: noqa: PTH118, PTH206, PTH208

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

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
