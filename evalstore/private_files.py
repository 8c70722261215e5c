"""Which files of a workspace are private: never shown to a model, and never read as anything else.

These are files of keys, by their names and by what they are, and what is below `.git` and
`.evalstore`.
"""

# Paths are texts here: thousands of mentions are looked up when nothing has changed.
# ruff: noqa: PTH118, PTH206, PTH208

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

_FOLDERS = frozenset({".git", ".evalstore"})
_KEYS = ".env"


def is_private_name(path: str) -> bool:
    """Whether a relative path is private by its names, in upper or lower case.

    `.env`, `.env.production`, `.envrc` and `production.env` are, in any folder.
    """
    *folders, name = path.casefold().split(os.sep)
    return any(
        one in _FOLDERS or one.startswith(_KEYS) for one in (*folders, name)
    ) or name.endswith(_KEYS)


class PrivateFiles:
    """Knows the private files of one workspace, also under other names."""

    def __init__(self, root: str) -> None:
        """`root` is a real path."""
        self._root = root
        self._listed: dict[str, frozenset[tuple[int, int]]] = {}
        self._all: frozenset[tuple[int, int]] | None = None

    def holds(self, path: str, status: os.stat_result) -> bool:
        """Whether a file is private; its real path and what `os.stat` says of it.

        It is by its name, and when a private name of its folders, or another private name in the
        workspace that is a hard link, leads to the same file.
        """
        inside = os.path.relpath(path, self._root)
        if is_private_name(inside):
            return True
        file = (status.st_dev, status.st_ino)
        if any(file in self._list(folder) for folder in self._above(inside)):
            return True
        return status.st_nlink > 1 and file in self._list_all()

    def _above(self, inside: str) -> Iterator[str]:
        """The folders of a path, from the workspace's on."""
        folder = self._root
        yield folder
        for name in inside.split(os.sep)[:-1]:
            folder = os.path.join(folder, name)
            yield folder

    def _list(self, folder: str) -> frozenset[tuple[int, int]]:
        if folder not in self._listed:
            names: list[str] = []
            with suppress(OSError):
                names = os.listdir(folder)
            self._listed[folder] = frozenset(_identities(folder, names))
        return self._listed[folder]

    def _list_all(self) -> frozenset[tuple[int, int]]:
        if self._all is None:
            found: set[tuple[int, int]] = set()
            for folder, folders, names in os.walk(self._root):
                folders[:] = [one for one in folders if one not in _FOLDERS]
                found.update(_identities(folder, names))
            self._all = frozenset(found)
        return self._all


def _identities(folder: str, names: Iterable[str]) -> Iterator[tuple[int, int]]:
    """What the private names of a folder lead to."""
    for name in names:
        if is_private_name(name):
            with suppress(OSError, ValueError):
                status = os.stat(os.path.join(folder, name))  # noqa: PTH116
                yield status.st_dev, status.st_ino
