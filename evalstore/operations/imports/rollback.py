"""Removes imported files that `check` refuses, so that an import never breaks a workspace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_SOURCE, read_file
from evalstore.files.atomic_write import write_whole
from evalstore.files.yaml12 import read_yaml
from evalstore.importers.base import SkippedItem
from evalstore.workspace.catalogue import read_catalogue
from evalstore.workspace.reader import read_workspace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from evalstore.workspace.folder import WorkspaceFolder


Older = bytes | Path
"""A file before it was replaced: its content, or the target of its link."""


def read_older(path: Path, place: str) -> Older:
    """Return the content of a file to be replaced; raises `EvalstoreError` if unreadable."""
    try:
        return path.readlink() if path.is_symlink() else read_file(path, LARGEST_SOURCE)
    except FileProblem as problem:
        raise EvalstoreError(
            f"{place}: cannot be replaced: {problem.message}", hint=problem.hint
        ) from problem


def take_refused_back(
    workspace: WorkspaceFolder, written: Collection[str], older: Mapping[str, Older]
) -> list[SkippedItem]:
    """Remove written files that have errors, until none has; returns them with the reasons.

    `written` are paths relative to the workspace. A test is removed with the prompt that it
    names. A file that replaced another, of `older` by path, is restored. Raises
    `EvalstoreError` when that is not possible.
    """
    removed: list[SkippedItem] = []
    remaining = set(written)
    while remaining:
        refused = [error for error in read_workspace(workspace).errors if error.file in remaining]
        if not refused:
            break
        for problem in refused:
            reason = f"it is not written, as 'check' would refuse it: {problem.message}"
            removed.append(SkippedItem(problem.file, reason, problem.line, problem.column))
            if problem.file in remaining:
                _take_back(workspace.root / problem.file, problem.file, older.get(problem.file))
                remaining.discard(problem.file)
    return removed


def _take_back(path: Path, place: str, older: Older | None) -> None:
    try:
        if isinstance(older, bytes):
            write_whole(path, older)
        else:
            path.unlink(missing_ok=True)
        if isinstance(older, Path):
            path.symlink_to(older)
    except OSError as error:
        raise EvalstoreError(f"{place}: cannot be written: {error.strerror}") from error


def find_taken(workspace: WorkspaceFolder, models: Mapping[str, bytes]) -> dict[str, SkippedItem]:
    """Return the model files whose id another file of the workspace has, with the reason.

    `models` are paths relative to the workspace, with their new contents.
    """
    if not models:
        return {}
    files = read_catalogue(workspace, []).model_files
    taken = {}
    for path, content in models.items():
        try:
            document = read_yaml(content.decode()).value
        except (FileProblem, UnicodeDecodeError):
            continue  # refused when it exists
        id = document.get("id") if isinstance(document, dict) else None
        if isinstance(id, str) and files.get(id, path) != path:
            reason = f"there is a model '{id}' in '{files[id]}', which stays as it is"
            taken[path] = SkippedItem(path, reason)
    return taken
