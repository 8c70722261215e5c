"""Finds test files in which an edited row counts as a new one, because no field names the rows."""

from __future__ import annotations

from evalstore.comparison.comparison import Comparison
from evalstore.comparison.pair_groups import PairGroup
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.yaml12 import split_frontmatter
from evalstore.workspace.folder import WorkspaceFolder


def has_edited_rows(workspace: WorkspaceFolder, comparison: Comparison) -> bool:
    """Return whether some rows of a file are new, others are gone, and no field names its rows."""
    new, gone = comparison.new, comparison.gone
    files = _files_besides(new, gone) & _files_besides(gone, new)
    return any(lacks_row_id(workspace, file) for file in sorted(files))


def _files_besides(pairs: PairGroup, others: PairGroup) -> set[str]:
    """Return the test files of those of the pairs whose rows are not those of the others."""
    known = {digest for _, digest in others.rows()}
    return {file for file, digest in pairs.rows() if digest not in known}


def lacks_row_id(workspace: WorkspaceFolder, file: str) -> bool:
    """Return whether a test file of the workspace can be read and has no field `rowId`."""
    try:
        text = normalise(workspace.read_bytes(file, LARGEST_TEXT))
        document, *_ = split_frontmatter(text)
        return document is None or document.at("rowId").written() is None
    except (EvalstoreError, FileProblem, OSError):
        return False
