"""The files that decide a case: its test file, its data and its prompts.

They are found by what the index says of the test file as it was last read, so that no test is
read again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import NamedTuple

from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_TEXT, normalise
from evalstore.files.datasets import read_spec, resolve_path
from evalstore.files.yaml12 import split_frontmatter
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.workspace.folder import WorkspaceFolder, default_id
from evalstore.workspace.index import read_dependencies
from evalstore.workspace.testfiles.parser import TestFile, parse_prompt, read_test
from evalstore.workspace.testfiles.replacements import name_id, shorten_value


class EditPlace(NamedTuple):
    """What is to be edited: a test file, and the case that it is about."""

    file: str
    line: int | None = None
    """The line of a problem; only this file is meant then."""
    prompt: str | None = None
    """The version id of the system prompt of the case."""


class EditableFile(NamedTuple):
    """A file of the workspace that decides a case."""

    kind: str
    path: str
    line: int | None = None


def find_editable_files(location: Location, place: EditPlace) -> list[EditableFile]:
    """Return the files that decide a case, its test file first."""
    files = [EditableFile("test file", place.file, place.line)]
    if place.line is None:
        workspace = open_workspace(location)
        if data := _find_data_file(workspace, place.file):
            files.append(EditableFile("data file", data))
        files += _prompt_files(workspace, place)
    return list(dict.fromkeys(files))


def _prompt_files(workspace: WorkspaceFolder, place: EditPlace) -> Iterator[EditableFile]:
    """Yield the system prompt of a case, or all those of the test file, and judge prompts."""
    depends = read_dependencies(workspace.private, workspace.boundary, place.file)
    named = [(*key.partition(":")[::2], ids) for key, ids in depends.items()]
    systems = {name: ids for kind, name, ids in named if kind == "prompt"}
    own = [name for name, ids in systems.items() if place.prompt and place.prompt in ids]
    judges = dict.fromkeys(name for kind, name, _ in named if kind == "evaluator")
    judges |= dict.fromkeys(judge.prompt for judge in workspace.settings.evaluators)
    paths = _prompt_paths(workspace) if systems or judges else {}
    for kind, names in (("system prompt", own or systems), ("judge prompt", judges)):
        for name in names:
            if name in paths:
                yield EditableFile(kind, paths[name])


def _prompt_paths(workspace: WorkspaceFolder) -> dict[str, str]:
    """Return the prompt files by their ids; of one with errors its default id."""
    folder = workspace.settings.paths["prompts"]
    paths: dict[str, str] = {}
    for path in workspace.find_files("prompts"):
        id = default_id(path, folder)
        with suppress(FileProblem):
            id = parse_prompt(path, normalise(workspace.read_bytes(path, LARGEST_TEXT)), folder).id
        paths.setdefault(id, path)
    return paths


def _find_data_file(workspace: WorkspaceFolder, test: str) -> str | None:
    """Return the data file that a test file names now; None if it names none or cannot be read."""
    with suppress(EvalstoreError, FileProblem, OSError, ValueError, KeyError):
        document, *_ = split_frontmatter(normalise(workspace.read_bytes(test, LARGEST_TEXT)))
        if document is None or "dataset" not in document.value:
            return None
        spec = read_spec(document.at("dataset"))
        named = resolve_path(spec, workspace.settings.dataset_roots)
        base = workspace.root if named != spec.path else (workspace.root / test).parent
        return workspace.name_of((base / named).resolve())
    return None


# --- finds the line of a test file that a case comes from


class TestLines:
    """The lines of cases in the test files as they are now; reads a file once in a row."""

    def __init__(self, workspace: WorkspaceFolder) -> None:
        self._workspace = workspace
        self._path: str | None = None
        self._first = 1
        self._values: dict[str, int] = {}

    def find(self, path: str, row: str = "") -> int:
        """Return the line of the row's value, else that of the first message.

        1 when the file is gone or cannot be read.
        """
        if path != self._path:
            self._path = path
            self._read(path)
        return self._values.get(row, self._first)

    def _read(self, path: str) -> None:
        self._first, self._values = 1, {}
        try:
            text = normalise(self._workspace.read_bytes(path, LARGEST_TEXT))
            test, _ = read_test(path, text)
        except (FileProblem, EvalstoreError):
            return
        self._first = test.first_line
        self._values = _lines_of_values(test)


def _lines_of_values(test: TestFile) -> dict[str, int]:
    """Return the lines of the values that label a row on their own, such as `city=Oslo`."""
    lines: dict[str, int] = {}
    for item in test.replacements:
        for name, values in item.items():
            shorten = name_id if name == test.row_id else shorten_value
            for value in values:
                lines.setdefault(f"{name}={shorten(value.text)}", value.line)
    return lines
