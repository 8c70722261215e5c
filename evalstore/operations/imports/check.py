"""Keeps an import from writing what `check` refuses, so that it never stops a workspace."""

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
"""What a file was before it was replaced: its content, or what it linked to."""


def read_older(path: Path, place: str) -> Older:
    """What a file is that is about to be replaced; raises `EvalstoreError` if it is unreadable."""
    try:
        return path.readlink() if path.is_symlink() else read_file(path, LARGEST_SOURCE)
    except FileProblem as problem:
        raise EvalstoreError(
            f"{place}: cannot be replaced: {problem.message}", hint=problem.hint
        ) from problem


def take_refused_back(
    workspace: WorkspaceFolder, written: Collection[str], older: Mapping[str, Older]
) -> list[SkippedItem]:
    """Take back those of these files that have errors, and what then has; say why.

    `written` are paths relative to the workspace. A test goes with the prompt that it names.
    What a file has replaced, by path, is put back in its place; any other is removed. Raises
    `EvalstoreError` when that cannot be done.
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
    """Which of these model files have the id of another file of the workspace, and what to say.

    `models` are paths relative to the workspace, with what is to be written there.
    """
    if not models:
        return {}
    files = read_catalogue(workspace, []).model_files
    taken = {}
    for path, content in models.items():
        try:
            document = read_yaml(content.decode()).value
        except (FileProblem, UnicodeDecodeError):
            continue  # it is refused when it is there
        id = document.get("id") if isinstance(document, dict) else None
        if isinstance(id, str) and files.get(id, path) != path:
            reason = f"there is a model '{id}' in '{files[id]}', which stays as it is"
            taken[path] = SkippedItem(path, reason)
    return taken
