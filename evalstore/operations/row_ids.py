"""Finds test files in which an edited row counts as a new one, because no field names the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.yaml12 import split_frontmatter

if TYPE_CHECKING:
    from evalstore.reports.comparison import Comparison
    from evalstore.workspace.folder import WorkspaceFolder


def has_edited_rows(workspace: WorkspaceFolder, comparison: Comparison) -> bool:
    """Return whether some rows of a file are new, others are gone, and no field names its rows."""
    new, gone = (
        {(pair.either.file, pair.either.row) for pair in pairs}
        for pairs in (comparison.new, comparison.gone)
    )
    files = {file for file, _ in new - gone} & {file for file, _ in gone - new}
    return any(lacks_row_id(workspace, file) for file in sorted(files))


def lacks_row_id(workspace: WorkspaceFolder, file: str) -> bool:
    """Return whether a test file of the workspace can be read and has no field `rowId`."""
    try:
        text = normalise(workspace.read_bytes(file, LARGEST_TEXT))
        document, *_ = split_frontmatter(text)
        return document is None or document.at("rowId").written() is None
    except (EvalstoreError, FileProblem, OSError):
        return False
