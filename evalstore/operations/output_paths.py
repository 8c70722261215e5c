"""Refuses places where a command cannot write its file or folder, before it does any work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError

if TYPE_CHECKING:
    from pathlib import Path


def require_writable(path: Path, name: str | Path) -> None:
    """Raise `EvalstoreError` when no file can be made at a path; `name` is the path as given.

    A regular file may be there, or a link to one.
    """
    try:
        target = path.resolve()
        if target.exists() and not target.is_file():
            reason = "it is a folder" if target.is_dir() else "it is not a regular file"
        else:
            reason = "" if target.parent.is_dir() else f"there is no folder '{_folder_of(name)}'"
    except (OSError, RuntimeError) as error:  # Python 3.11 and 3.12 raise the latter for a loop
        reason = _reason_of(error)
    if reason:
        raise EvalstoreError(f"'{name}' cannot be written: {reason}", hint="name another file")


def require_new_folder(path: Path, name: str | Path) -> None:
    """Raise `EvalstoreError` when a folder cannot be made at a path, or is not empty."""
    try:
        target = path.resolve()
        if target.is_dir():
            reason = "the folder is not empty" if any(target.iterdir()) else ""
        elif os.path.lexists(target):
            reason = "it is not a folder"
        else:
            reason = "" if target.parent.is_dir() else f"there is no folder '{_folder_of(name)}'"
    except (OSError, RuntimeError) as error:
        reason = _reason_of(error)
    if reason:
        raise EvalstoreError(
            f"'{name}' cannot be written: {reason}", hint="name a folder that does not exist yet"
        )


def _folder_of(name: str | Path) -> str:
    return os.path.dirname(name)  # noqa: PTH120 - of a name that need not be a `Path`


def _reason_of(error: Exception) -> str:
    if isinstance(error, RuntimeError):
        return "its links go in a circle"
    return getattr(error, "strerror", None) or str(error)
