"""The workspace of calls that name none, if a program has set one; else the current folder's.

It is a module of its own, so that the plug-in for pytest sets it without importing the library.
"""

from __future__ import annotations

from pathlib import Path

_paths: list[Path] = []


def set_default_workspace(path: Path | None) -> None:
    """Set the folder of the workspace; None: the current folder again."""
    _paths[:] = [] if path is None else [path]


def find_default_workspace() -> Path:
    """Return the folder of the workspace, or the current folder."""
    return _paths[0] if _paths else Path()
