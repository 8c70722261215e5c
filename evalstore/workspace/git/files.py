"""Locates the files of a repository, and reads them without blocking."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

LARGEST = 64 * 2**20
"""Bytes of one file of the repository that is read as a whole, such as its index."""


class GitError(Exception):
    """A repository cannot be read, or is not supported."""


@dataclass(frozen=True, slots=True)
class Repository:
    """The folders of one checkout."""

    top: Path
    """The working tree."""
    folder: Path
    """The folder with HEAD and the index of this working tree."""
    common: Path
    """The folder with refs and objects, which linked working trees share."""


def find_repository(start: Path) -> Repository | None:
    """Find the checkout that a folder is in; raises `GitError` when it cannot be read."""
    for top in (start, *start.parents):
        marker = top / ".git"
        if (marker / "HEAD").is_file():
            return Repository(top, marker, _common(marker))
        if marker.is_file():
            text = read_text(marker)
            if not text.startswith("gitdir: "):
                raise GitError(".git is not a link to a repository")
            folder = top / text.removeprefix("gitdir: ").strip()
            return Repository(top, folder, _common(folder))
    return None


def _common(folder: Path) -> Path:
    path = folder / "commondir"
    return folder / read_text(path).strip() if path.is_file() else folder


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file; raises `GitError` for a pipe or a device, and never blocks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise GitError(f"{path.name} cannot be read") from error
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise GitError(f"{path.name} is not a regular file")
    return file


def read_bytes(path: Path, largest: int = LARGEST) -> bytes:
    """Read a regular file; raises `GitError`."""
    with open_regular(path) as file:
        if os.fstat(file.fileno()).st_size > largest:
            raise GitError(f"{path.name} is too large")
        try:
            return file.read(largest)
        except OSError as error:
            raise GitError(f"{path.name} cannot be read") from error


def read_text(path: Path) -> str:
    """Read the text of a small file; raises `GitError`."""
    return read_bytes(path, 2**20).decode("utf-8", "surrogateescape")
