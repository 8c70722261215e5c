"""Builds the files and workspaces of tests, and reads single texts as test files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import TYPE_CHECKING, Any

from evalstore.core import hashing
from evalstore.core.values import FileVersion
from evalstore.files.datasets import Dataset, DatasetSpec, read_dataset
from evalstore.planning.cells import Cell, SkippedPair, cells_with, place_cases, take_first
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.testfiles.context import Definitions, ExpandedFile
from evalstore.workspace.testfiles.expansion import expand_test
from evalstore.workspace.testfiles.parser import parse_test

if TYPE_CHECKING:
    from pathlib import Path

Files = Mapping[str, str | bytes]

HELLO = "# 👤\n\nHello\n\n---\n\nExpect a greeting.\n"
"""The shortest test file."""


def tree(path: Path, files: Files) -> Path:
    """Write files, with the folders they need."""
    for name, content in files.items():
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(content, encoding="utf-8", newline="")
    return path


def workspace_of(path: Path, files: Files) -> WorkspaceFolder:
    """A workspace with these files; its settings are empty unless given."""
    return WorkspaceFolder(tree(path, {"evalstore.yaml": "", **files}))


def test_file(  # it builds a file and is not a test itself
    *frontmatter: str,
    shown: str = "Hello",  # noqa: PT028
    evaluation: str = "Expect a greeting.",  # noqa: PT028
) -> str:
    """The text of a test file with one user message."""
    head = "\n".join(("---", *frontmatter, "---", "")) if frontmatter else ""
    return f"{head}# 👤\n\n{shown}\n\n---\n\n{evaluation}\n"


test_file.__test__ = False  # type: ignore[attr-defined]


def library(
    files: Mapping[str, bytes] | None = None,
    *,
    prompts: Mapping[str, tuple[str, ...]] | None = None,
    tools: Mapping[str, str] | None = None,
    schemas: Mapping[str, str] | None = None,
    data: Mapping[str, str] | None = None,
) -> Definitions:
    """What test files refer to; mentioned files are of the type `text/plain` or `image/png`.

    `data` are the data files by the paths that test files give.
    """

    def read_file(mentioned: str, _test: str) -> tuple[FileVersion, str]:
        kind = "image/png" if mentioned.endswith(".png") else "text/plain"
        version = FileVersion(kind, (files or {})[mentioned])
        return version, hashing.identify(hashing.describe_file(version))[0]

    def open_data(spec: DatasetSpec, _test: str) -> tuple[Dataset, str]:
        content = (data or {})[spec.path].encode()
        return read_dataset(spec, lambda: BytesIO(content)), hashing.hash_bytes(content)

    return Definitions(prompts or {}, {}, tools or {}, schemas or {}, read_file, open_data)


def expanded(text: str, library_: Definitions | None = None) -> ExpandedFile:
    """What a test file comes to."""
    return expand_test(parse_test("tests/t.md", text), library_ or library())


def ids(text: str, library_: Definitions | None = None) -> list[tuple[tuple[str, ...], str | None]]:
    """The ids of test and judging versions, case by case."""
    expansion = expanded(text, library_)
    assert expansion.file is not None, expansion.problems
    return [(case.tests, case.evaluation) for case in expansion.file.cases]


def shown(expansion: ExpandedFile) -> list[list[tuple[str, Any]]]:
    """The messages of each case: role and content."""
    assert expansion.file is not None, expansion.problems
    contents = {id: json for id, (_, json) in expansion.contents.items()}
    return [
        [
            (message["role"], message.get("content", ""))
            for message in json.loads(contents[case.tests[0]])["messages"]
        ]
        for case in expansion.file.cases
    ]


def instructions_of(expansion: ExpandedFile) -> list[Any]:
    """The instructions of each case; None for a case without an evaluation."""
    assert expansion.file is not None, expansion.problems
    return [
        None
        if case.evaluation is None
        else json.loads(expansion.contents[case.evaluation][1]).get("instructions", "")
        for case in expansion.file.cases
    ]


def build_cells(
    *made_of: Any, attempts: int | None = None, most: int | None = None
) -> tuple[list[Cell], list[SkippedPair]]:
    """The cells and skipped pairs of files, candidates and judges, without a stream."""
    cells: list[Cell] = []
    skipped: list[SkippedPair] = []
    for placed in take_first(place_cases(*made_of), most):
        for candidate, lacks in placed.candidates:
            if lacks:
                pair = SkippedPair(placed.file, placed.case.row, candidate.id, ", ".join(lacks))
                skipped.append(pair)
            else:
                cells += cells_with(placed, candidate, attempts)
    return cells, skipped
