"""The files that decide a case: its test file, its data, its prompts and other texts.

They are found by what the index says of the test file as it was last read, so that no test is
read again; a data file is read until its row is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from evalstore.core.display import ROW_NUMBER, as_text
from evalstore.core.errors import EvalstoreError, FileProblem
from evalstore.files.access import LARGEST_DATASET, LARGEST_TEXT, normalise
from evalstore.files.datasets import DatasetSpec, read_dataset, read_spec, resolve_path
from evalstore.files.yaml12 import split_frontmatter
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.workspace.folder import WorkspaceFolder, default_id
from evalstore.workspace.index import read_dependencies
from evalstore.workspace.testfiles.parser import TestFile, parse_prompt, read_test
from evalstore.workspace.testfiles.replacements import name_id, shorten_value

TEST, DATA, PROMPT, JUDGE, TEXT = (
    "test file",
    "data file",
    "system prompt",
    "judge prompt",
    "text file",
)
_TEXTS = (".md", ".txt", ".py", ".json", ".yaml", ".yml")
"""The suffixes of files that an editor can show."""
_MOST_ROWS = 20_000
"""The most rows of a data file in which a row is searched."""


class EditableFile(NamedTuple):
    """A file of the workspace that decides a case."""

    kind: str
    path: str
    line: int | None = None


def find_editable_files(location: Location, place: EditPlace) -> list[EditableFile]:
    """Return the files that decide a case, the one that explains it first.

    For pending work that is the file which the reason names, else the data of a row.
    """
    files = [EditableFile(TEST, place.file, place.line)]
    if place.line is None:
        workspace = open_workspace(location)
        depends = read_dependencies(workspace.private, workspace.boundary, place.file)
        files += _data_files(workspace, place)
        files += _prompt_files(workspace, place, depends)
        files += _text_files(workspace, place, depends)
    unique = list(dict.fromkeys(files))
    return sorted(unique, key=lambda file: not _explains(file, place))


def _explains(file: EditableFile, place: EditPlace) -> bool:
    """Return whether a file is what the reason of a place is about; without a reason, its row."""
    reason = place.reason
    if not reason or reason == "new row":
        return file.kind == DATA and file.line is not None
    if file.kind in (PROMPT, JUDGE):
        return file.kind in reason
    return file.kind == TEXT and f"file '{file.path}'" in reason


def _data_files(workspace: WorkspaceFolder, place: EditPlace) -> Iterator[EditableFile]:
    """Yield the data file of a test file, with the line of the row when it is found."""
    data = find_data_file(workspace, place.file)
    if data is None:
        return
    line = None
    if place.row:
        with suppress(EvalstoreError, FileProblem, OSError):
            read = partial(workspace.boundary.open, data.path, LARGEST_DATASET)
            line = _find_row(read_dataset(data.spec, read, data.name), place.row)
    yield EditableFile(DATA, data.name, line)


def _find_row(rows: Any, label: str) -> int | None:
    """Return the line of the row with a label; the first one of several that are alike."""
    names = "|".join(sorted(map(re.escape, rows.columns), key=len, reverse=True))
    parts = re.split(rf"(?:^|, )({names})=", ROW_NUMBER.sub("", label)) if names else ()
    values = dict(zip(parts[1::2], parts[2::2], strict=True))
    if not values:
        return None
    for row in islice(rows, _MOST_ROWS):
        if all(_has_value(row.item, name, value) for name, value in values.items()):
            return row.line if isinstance(row.line, int) else None
    return None


def _has_value(item: Mapping[str, Any], name: str, shown: str) -> bool:
    text = as_text(item.get(name, ""))
    return shown in (shorten_value(text), name_id(text))


def _prompt_files(
    workspace: WorkspaceFolder, place: EditPlace, depends: Mapping[str, Any]
) -> Iterator[EditableFile]:
    """Yield the system prompt of a case, or all those of the test file, and judge prompts."""
    named = [(*key.partition(":")[::2], ids) for key, ids in depends.items()]
    systems = {name: ids for kind, name, ids in named if kind == "prompt"}
    own = [name for name, ids in systems.items() if place.prompt and place.prompt in ids]
    judges = dict.fromkeys(name for kind, name, _ in named if kind == "evaluator")
    judges |= dict.fromkeys(judge.prompt for judge in workspace.settings.evaluators)
    paths = _prompt_paths(workspace) if systems or judges else {}
    for kind, names in ((PROMPT, own or systems), (JUDGE, judges)):
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


def _text_files(
    workspace: WorkspaceFolder, place: EditPlace, depends: Mapping[str, Any]
) -> Iterator[EditableFile]:
    """Yield the mentioned files that an editor can show."""
    bases = (workspace.folder("tests"), (workspace.root / place.file).parent)
    for key in depends:
        kind, _, name = key.partition(":")
        if kind == "file" and name.lower().endswith(_TEXTS):
            found = (base / name for base in bases if (base / name).is_file())
            if path := next(found, None):
                yield EditableFile(TEXT, workspace.name_of(path))


# --- finds the data file that a test file names, without reading its rows


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


# --- the place that a person wants to edit: a case, or a line of pending work


class EditPlace(NamedTuple):
    """What is to be edited: a test file, and the case or the pending work that it is about."""

    file: str
    line: int | None = None
    """The line of a problem; only this file is meant then."""
    row: str = ""
    prompt: str | None = None
    """The version id of the system prompt of the case."""
    reason: str = ""
    """Why work is pending."""


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
