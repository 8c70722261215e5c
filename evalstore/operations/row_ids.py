"""Finds test files in which an edited row counts as a new one, because no field names the rows."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.yaml12 import split_frontmatter

if TYPE_CHECKING:
    from evalstore.reports.comparison import Comparison
    from evalstore.workspace.folder import WorkspaceFolder


def has_edited_rows(workspace: WorkspaceFolder, comparison: Comparison) -> bool:
    """Return whether as many rows of a file are new as are gone, and no field names its rows."""
    new, gone = (
        Counter(file for file, _ in {(pair.either.file, pair.either.row) for pair in pairs})
        for pairs in (comparison.new, comparison.gone)
    )
    return any(new[file] == count and lacks_row_id(workspace, file) for file, count in gone.items())


def lacks_row_id(workspace: WorkspaceFolder, file: str) -> bool:
    """Return whether a test file of the workspace can be read and has no field `rowId`."""
    try:
        text = normalise(workspace.read_bytes(file, LARGEST_TEXT))
        document, *_ = split_frontmatter(text)
        return document is None or document.at("rowId").written() is None
    except (EvalstoreError, FileProblem, OSError):
        return False
