"""Resolves `PATH` and `PATH::row` of a command line in the workspace."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from unicodedata import normalize

from evalstore.core.errors import EvalstoreError, NoTestFileError, NothingSelectedError
from evalstore.core.values import CaseFile
from evalstore.files.fields import suggest, suggest_file
from evalstore.planning.options import Location
from evalstore.planning.selection import Target, label_matcher
from evalstore.store.trees.case_files import StoredCases
from evalstore.workspace.folder import WorkspaceFolder

_LISTED = 4
"""Rows that a hint names."""
_KINDS = {
    "prompts": "a prompt",
    "tools": "a tool",
    "schemas": "a schema",
    **dict.fromkeys(("models", "providers", "currencies"), None),
}
"""The folders of other files than tests, and what a file there is, if tests use it."""
_DATA = (".csv", ".tsv", ".json", ".jsonl")
_PRINTED = re.compile(r"(?P<path>.+?) \[(?P<row>.*)\]", re.DOTALL)
"""Matches a row as commands print it."""
_WITH_PROMPT = re.compile(r"(?P<case>.+\.md(?: \[.*\])?) \([^()]*\)", re.DOTALL)
"""Matches a case with the name of its system prompt, as commands print it."""
_CASE = re.compile(r"(?P<file>.*?\.md)::(?P<row>.*)", re.DOTALL)
"""Matches a test file and a row of it."""


_Users = Callable[[str], Collection[str]]
"""From the name of a prompt to the test files that use it."""


def find_targets(
    location: Location,
    workspace: WorkspaceFolder,
    tests: Collection[str],
    files: Mapping[str, CaseFile],
    paths: tuple[str, ...],
    prompts: Mapping[str, Collection[str]] = MappingProxyType({}),
) -> tuple[Target, ...]:
    """Return the targets of paths relative to the current folder, the workspace or its tests.

    The path of a prompt stands for the test files that use it. `tests` are all test files; `files`
    has the cases of those without errors, and `prompts` the versions of each prompt by its name.
    Raises `NoTestFileError`, and `NothingSelectedError` for an unknown row.
    """

    def users(prompt: str) -> list[str]:
        ids = {*prompts.get(prompt, ())}
        return [
            path
            for path, file in files.items()
            if any(ids & {*case.prompts, *case.judge_prompts} for case in file.cases)
        ]

    found = (_find(location, workspace, tests, files, path, users) for path in paths)
    return tuple(target for targets in found for target in targets)


def split_case(text: str) -> tuple[str, str | None]:
    """Return the file and the row of `FILE::ROW`; the row is None if only the file is named.

    Both may contain `::`: the file ends with the first `.md` that is followed by it.
    """
    match = _CASE.fullmatch(text)
    if match:
        return match["file"], match["row"]
    if text.endswith(".md") or ".md [" in text:
        return text, None
    file, separator, row = text.partition("::")
    return file, row if separator else None


def place_paths(
    location: Location,
    workspace: WorkspaceFolder,
    tests: Collection[str],
    paths: tuple[str, ...],
) -> tuple[str, ...]:
    """Return the same paths relative to the workspace, each with its row as it was written."""

    def place(text: str) -> str:
        target = _named_in(location, workspace, tests, text)
        if target is None:
            return name_file(location, workspace, text)
        return target.path if target.row is None else f"{target.path}::{target.row}"

    return tuple(map(place, paths))


def _find(
    location: Location,
    workspace: WorkspaceFolder,
    tests: Collection[str],
    files: Mapping[str, CaseFile],
    text: str,
    users: _Users,
) -> list[Target]:
    target = _named_in(location, workspace, tests, text)
    if target is not None:
        return [_with_row(target, tests, files, text)]
    path, _ = split_case(text)
    file = name_file(location, workspace, path)
    prompt = name_prompt_file(workspace, file)
    if prompt and (used := sorted(users(prompt))):
        return [Target(name) for name in used]
    hint = _file_hint(workspace, file, tests)
    raise NoTestFileError(f"test file '{path}' not found", hint=hint)


def name_prompt_file(workspace: WorkspaceFolder, file: str) -> str | None:
    """Return the name of the prompt in a file, relative to the workspace; None if it has none."""
    path, folder = workspace.root / file, workspace.folder("prompts")
    if not path.is_file() or not path.is_relative_to(folder):
        return None
    return path.relative_to(folder).with_suffix("").as_posix()


def _file_hint(workspace: WorkspaceFolder, file: str, tests: Collection[str]) -> str:
    """Return a hint about a file that is none of `tests`: what it is, or which one is meant."""
    path = workspace.root / file
    kind = _kind_of(workspace, path) if path.is_file() and file not in tests else None
    if kind:
        return f"'{file}' is {kind}: name a test file that uses it; its edits are shown there"
    if (named := _WITH_PROMPT.fullmatch(file)) and split_row(named["case"])[0] in tests:
        return f"leave out the system prompt: '{named['case']}'"
    return suggest_file(file, tests)


def _kind_of(workspace: WorkspaceFolder, path: Path) -> str | None:
    """Return what a file is that tests may use, such as `a prompt`; None for settings."""
    for folder, kind in _KINDS.items():
        if path.is_relative_to(workspace.folder(folder)):
            return kind
    if path == workspace.config or not path.is_relative_to(workspace.root):
        return None
    return "a data file" if path.suffix.lower() in _DATA else "not a test file"


def _named_in(
    location: Location, workspace: WorkspaceFolder, tests: Collection[str], text: str
) -> Target | None:
    """Return the target of `PATH`, `PATH::row` or `PATH [row]`; None without test files there."""
    path, row = split_case(text)
    target = _named(location, workspace, tests, path, row)
    if target is None and row is None and (printed := _PRINTED.fullmatch(text)):
        target = _named(location, workspace, tests, printed["path"], printed["row"])
    return target


def _named(
    location: Location,
    workspace: WorkspaceFolder,
    tests: Collection[str],
    path: str,
    row: str | None,
) -> Target | None:
    # A name with accents may be typed in one form of Unicode and be stored in the other.
    for written in dict.fromkeys((path, normalize("NFC", path), normalize("NFD", path))):
        for base in (location.directory, workspace.root, workspace.folder("tests")):
            target = Target(workspace.name_of((base / written).absolute()), row)
            if any(target.covers(file) for file in tests):
                return target
    return None


def _with_row(
    target: Target, tests: Collection[str], files: Mapping[str, CaseFile], text: str
) -> Target:
    """Return the target with the label of its row.

    A unique part of the label is enough, and so is the full value of one that the label cuts.
    """
    if target.row is None:
        return target
    file = files.get(target.path)
    rows = _labels_of(file) if file else []
    if target.row in rows:
        return target
    near, is_full = _nearest(target.row, rows)
    if len(near) == 1:
        return replace(target, row=near[0])
    if near:
        raise NothingSelectedError(
            f"'{text}' {'fits' if is_full else 'is a part of'} {len(near)} rows",
            hint=f"name one of them: {_listed(near)}",
        )
    if rows == [""]:
        hint = f"'{target.path}' has one row: leave out '::{target.row}'"
    elif file is not None:
        hint = suggest(target.row, rows, "rows")
    elif target.path in tests:
        hint = f"'{target.path}' has errors: 'evalstore check' lists them"
    else:
        hint = "a row is a part of one test file: 'evalstore ls cases' lists them"
    raise NothingSelectedError(f"no row is called '{text}'", hint=hint)


def _labels_of(file: CaseFile) -> list[str]:
    """Return the labels of the rows of a file."""
    if isinstance(file.cases, StoredCases):
        return [*file.cases.labels()]
    return [case.row for case in file.cases]


def _nearest(text: str, rows: Sequence[str]) -> tuple[list[str], bool]:
    """Return the rows whose labels a text fits, or else is a part of, and whether it fits them."""
    full = [*filter(label_matcher(text), rows)]
    part = text.casefold()
    return full or [row for row in rows if part in row.casefold()], bool(full)


def split_row(text: str) -> tuple[str, str | None]:
    """Return the file and the row of `FILE::ROW`, or of a row as commands print it."""
    path, row = split_case(text)
    if row is not None:
        return path, row
    printed = _PRINTED.fullmatch(text)
    return (printed["path"], printed["row"]) if printed else (text, None)


def find_row_in(path: str, row: str, versions: Sequence[CaseFile]) -> tuple[str, int]:
    """Return the label of a row in the versions of a file, newest first, and the number of one.

    It is the newest version with this label, else the newest one that the text names a row of.
    Raises `NothingSelectedError`.
    """
    for number, file in enumerate(versions):
        if row in _labels_of(file):
            return row, number
    rows = (_nearest(row, _labels_of(file))[0] for file in versions)
    number = next((number for number, near in enumerate(rows) if near), 0)
    target = _with_row(Target(path, row), (path,), {path: versions[number]}, f"{path}::{row}")
    return target.row or "", number


def _listed(rows: Sequence[str]) -> str:
    """Return the first of these rows in quotation marks, and the number of the others."""
    more = f" … ({len(rows)} in all)" if len(rows) > _LISTED else ""
    return ", ".join(f"'{row}'" for row in rows[:_LISTED]) + more


def no_run_has(workspace: WorkspaceFolder, file: str, known: Collection[str]) -> EvalstoreError:
    """Return the error for a test file that no run has; `known` are the test files of runs."""
    none = "no runs yet: 'evalstore run' makes one"
    hint = _file_hint(workspace, file, known) if known else none
    return EvalstoreError(f"no run has a test file '{file}'", hint=hint)


def name_file(location: Location, workspace: WorkspaceFolder, file: str) -> str:
    """Return the name in the workspace of a path to a test file; a missing file keeps its name."""
    for base in (location.directory, workspace.root, workspace.folder("tests")):
        if (base / file).is_file():
            return workspace.name_of((base / file).absolute())
    return file
