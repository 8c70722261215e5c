"""Keeps an import from writing what `check` refuses, so that it never stops a workspace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.errors import FileProblem
from evalstore.formats.base import Left
from evalstore.yaml_core import read_yaml

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from evalstore.workspace import Workspace


def remove_refused(workspace: Workspace, written: Collection[str]) -> list[Left]:
    """Remove those of these files that have errors, and what then has; say why.

    `written` are paths relative to the workspace. A test goes with the prompt that it names.
    """
    left: list[Left] = []
    there = set(written)
    while there:
        refused = [one for one in workspace.read().errors if one.file in there]
        if not refused:
            break
        for problem in refused:
            reason = f"it is not written, as 'check' would refuse it: {problem.message}"
            left.append(Left(problem.file, reason, problem.line, problem.column))
            if problem.file in there:
                (workspace.root / problem.file).unlink(missing_ok=True)
                there.discard(problem.file)
    return left


def find_taken(workspace: Workspace, models: Mapping[str, bytes]) -> dict[str, Left]:
    """Which of these model files have the id of another file of the workspace, and what to say.

    `models` are paths relative to the workspace, with what is to be written there.
    """
    if not models:
        return {}
    files = workspace.read(tests=False).model_files
    found = {}
    for path, content in models.items():
        try:
            given = read_yaml(content.decode()).value
        except (FileProblem, UnicodeDecodeError):
            continue  # it is refused when it is there
        id = given.get("id") if isinstance(given, dict) else None
        if isinstance(id, str) and files.get(id, path) != path:
            reason = f"there is a model '{id}' in '{files[id]}', which stays as it is"
            found[path] = Left(path, reason)
    return found
