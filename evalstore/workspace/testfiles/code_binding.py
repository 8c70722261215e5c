"""Adds the file and the values of the row to a check that runs a Python file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from evalstore.checks.types.python import require_defined
from evalstore.errors import FileProblem
from evalstore.files.templates import FileMention
from evalstore.values import Json
from evalstore.workspace.testfiles.rendering import clean_path

if TYPE_CHECKING:
    from evalstore.workspace.testfiles.context import FillContext
    from evalstore.workspace.testfiles.messages import AnswerNames
    from evalstore.workspace.testfiles.rendering import RowValues


def find_check_file(project: FillContext, check: Mapping[str, Json], line: int) -> dict[str, str]:
    """Find the file of a check; returns its id and its stored path, raises `FileProblem`.

    The file must define the name in the check; it is not run.
    """
    written = clean_path(FileMention(check["file"], line))
    try:
        version, id = project.read_file(written)
    except FileProblem as problem:
        raise FileProblem(problem.message, line, hint=problem.hint) from problem
    require_defined(check, version.data, line)
    return {"id": id, "path": written}


def bind_code(
    check: Mapping[str, Json],
    scope: str,
    row: RowValues,
    columns: Collection[str],
    shapes: Sequence[AnswerNames],
) -> dict[str, Json]:
    """Bind the file to the values of the row and the names of the answers.

    Only the columns of the data that the test file uses are included.
    """
    bound: dict[str, Json] = {"file": check["file"]}
    if check.get("network"):
        bound["network"] = True
    if scope == "group":
        return bound
    data = row.item if row.item is not None else {}
    item = {name: data[name] for name in columns if name in data}
    for name in row.values:
        if not any(isinstance(piece, FileMention) for piece in row.lookup(name)):
            item[name] = row.typed(name)
    if item:
        bound["item"] = item
    named: list[Json] = [{"run": shape.run, "turns": list(shape.turns)} for shape in shapes]
    if scope == "answer":
        turns = {shape.turns for shape in shapes}
        named = [{"turns": list(*turns)}] if len(turns) == 1 else []
    named = [
        {name: value for name, value in conversation.items() if value not in (None, [])}
        for conversation in named
    ]
    if named and named != [{"turns": ["response"]}]:
        bound["conversations"] = named
    return bound
