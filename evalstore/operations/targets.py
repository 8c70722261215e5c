"""`PATH` and `PATH::row` on a command line to what they name in the workspace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError, NothingSelectedError
from evalstore.fields import suggest
from evalstore.selection import Target

if TYPE_CHECKING:
    from evalstore.operations.orders import Where
    from evalstore.workspace import Reading, Workspace


def find_targets(
    where: Where, workspace: Workspace, reading: Reading, paths: tuple[str, ...]
) -> tuple[Target, ...]:
    """What the paths name: relative to the current folder, the workspace, or its tests folder.

    Raises `EvalstoreError` for a path that names no test file, and `NothingSelectedError`
    for a row that is not there.
    """
    return tuple(_find(where, workspace, reading, path) for path in paths)


def _find(where: Where, workspace: Workspace, reading: Reading, text: str) -> Target:
    path, separator, row = text.partition("::")
    for base in (where.directory, workspace.root, workspace.folder("tests")):
        target = Target(workspace.name_of((base / path).absolute()), row if separator else None)
        if any(target.covers(file) for file in reading.tests):
            return _with_row(target, reading, text)
    name = workspace.name_of((where.directory / path).absolute())
    raise EvalstoreError(
        f"there is no test file '{path}'", hint=suggest(name, reading.tests, "test files")
    )


def _with_row(target: Target, reading: Reading, text: str) -> Target:
    """The target with its row as the file labels it; a part of a label will do if it is unique."""
    if target.row is None:
        return target
    file = reading.files.get(target.path)
    rows = [case.row for case in file.cases] if file else []
    if target.row in rows:
        return target
    near = [row for row in rows if target.row.casefold() in row.casefold()]
    if len(near) == 1:
        return replace(target, row=near[0])
    raise NothingSelectedError(f"no row is called '{text}'", hint=suggest(target.row, rows, "rows"))


def name_file(where: Where, workspace: Workspace, file: str) -> str:
    """The name in the workspace of a test file as a person writes it; one that is gone stays."""
    for base in (where.directory, workspace.root, workspace.folder("tests")):
        if (base / file).is_file():
            return workspace.name_of((base / file).absolute())
    return file
