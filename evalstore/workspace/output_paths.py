"""Refuses places where a command cannot write its file or folder, before it does any work."""

from __future__ import annotations

from pathlib import Path
from stat import S_ISDIR, S_ISREG

from evalstore.core.errors import EvalstoreError


def require_writable(path: Path, name: Path) -> None:
    """Raise `EvalstoreError` when no file can be made at a path, which was given as `name`.

    A regular file may be there, or a link to one.
    """
    try:
        mode = _mode_of(path)
        if mode is None:
            reason = _missing_folder(path, name)
        elif S_ISREG(mode):
            reason = ""
        else:
            reason = "it is a folder" if S_ISDIR(mode) else "it is not a regular file"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise EvalstoreError(f"'{name}' cannot be written: {reason}", hint="name another file")


def require_report(path: Path, name: Path, mark: bytes) -> None:
    """Raise `EvalstoreError` when no file can be made at a path, or one there is no report.

    Reports begin with `mark`. A file that is empty may be replaced, too.
    """
    require_writable(path, name)
    try:
        with path.open("rb") as file:
            start = file.read(len(mark))
    except FileNotFoundError:
        return
    except OSError as error:
        raise EvalstoreError(f"'{name}' cannot be read: {error.strerror}") from error
    if start not in (b"", mark):
        raise EvalstoreError(
            f"'{name}' exists and is not a report",
            hint="name another file; only a report is replaced by a report",
        )


def require_new_folder(path: Path, name: Path) -> None:
    """Raise `EvalstoreError` when a folder cannot be made at a path, or is not empty."""
    try:
        mode = _mode_of(path)
        if mode is None:
            reason = _missing_folder(path, name)
        elif S_ISDIR(mode):
            reason = "the folder is not empty" if any(path.iterdir()) else ""
        else:
            reason = "it is not a folder"
    except OSError as error:
        reason = error.strerror or str(error)
    if reason:
        raise EvalstoreError(
            f"'{name}' cannot be written: {reason}", hint="name a folder that does not exist yet"
        )


def _mode_of(path: Path) -> int | None:
    """Return what is at a path, links followed; None if nothing is."""
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None


def _missing_folder(path: Path, name: Path) -> str:
    return "" if path.resolve().parent.is_dir() else f"folder '{name.parent}' not found"
