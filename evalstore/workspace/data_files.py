"""Finds the data file that a test file names, without reading its rows."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from evalstore.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.datasets.spec import read_spec, resolve_path
from evalstore.files.yaml12 import split_frontmatter

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.files.datasets import DatasetSpec
    from evalstore.workspace.folder import WorkspaceFolder


class DataFile(NamedTuple):
    """The data file of a test file."""

    spec: DatasetSpec
    path: Path
    name: str
    """The path relative to the workspace."""


def find_data_file(workspace: WorkspaceFolder, test: str) -> DataFile | None:
    """Return the data file that a test file names now; None if it names none or cannot be read."""
    with suppress(EvalstoreError, FileProblem, OSError, ValueError, KeyError):
        document, *_ = split_frontmatter(normalise(workspace.read_bytes(test, LARGEST_TEXT)))
        if document is None or "dataset" not in document.value:
            return None
        spec = read_spec(document.at("dataset"))
        named = resolve_path(spec, workspace.settings.dataset_roots)
        base = workspace.root if named != spec.path else (workspace.root / test).parent
        path = (base / named).resolve()
        return DataFile(spec, path, workspace.name_of(path))
    return None
