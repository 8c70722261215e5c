"""`init FILE.md`: writes a commented test file that can be run at once."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path

from evalstore.core.errors import EvalstoreError
from evalstore.files.atomic_write import write_whole
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.runs.next_commands import run_command
from evalstore.workspace.folder import WorkspaceFolder

TEMPLATE = """\
---
description: Does it know the capital of France?
# Every field is optional. Remove the '#' in front of a field to use it.
# tags: [geography]            # 'evalstore run -t geography' runs the tests with this tag
# attempts: 3                  # answers of each model
# threshold: 0.8               # the share of results that must pass; 1 if it is not given
# options: {temperature: 0.5, maxOutputTokens: 200}
# replacements: {country: [France, Japan]}   # a case for each value of {{country}} in the text
---

<!-- What the model is shown; comments up here are not sent. '# 👤' can be written for '# User'.
Below the line '---' is how the answer is judged: instructions for a model that judges, and checks,
which need no model. Either can be left out. 'evalstore ls checks' lists the checks. -->

# User

What is the capital of France? Answer in one sentence.

---

The answer must name the capital of France and say nothing else about the country.

~~~checks
- contains: Paris
- length: {max: 200}
~~~
"""
_IGNORED = "README.md"


@dataclass(frozen=True, slots=True)
class NewTest:
    """A test file that was written, and the command that runs it."""

    written: str
    """The path, relative to the workspace."""
    next: str
    """The command that runs it from the current folder."""


def new_test(location: Location, name: str) -> NewTest:
    """Write a commented test file; a file that exists is never overwritten.

    `name` is relative to the current folder, and must be inside the folder of tests. Raises
    `EvalstoreError`.
    """
    workspace = open_workspace(location)
    file = Path(os.path.normpath(location.directory / name))
    _require_place(workspace, file, name)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, TEMPLATE.encode(), exclusive=True)
    except FileExistsError as error:
        if not os.path.lexists(file):
            raise EvalstoreError(f"'{name}' cannot be written: {error.strerror}") from error
        raise EvalstoreError(
            f"'{name}' exists already", hint="choose another name; files are never overwritten"
        ) from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise EvalstoreError(f"'{name}' cannot be written: {reason}") from error
    return NewTest(workspace.name_of(file), run_command(workspace.settings, name))


def _require_place(workspace: WorkspaceFolder, file: Path, name: str) -> None:
    """Raise `EvalstoreError` unless a file at this place would be read as a test."""
    folder = workspace.folder("tests")
    prefix = workspace.name_of(folder)
    workspace.boundary.require(folder, prefix)
    try:
        inner = file.relative_to(folder)
    except ValueError as error:
        raise EvalstoreError(
            f"'{name}' is not in the folder of tests, '{prefix}'",
            hint=f"write 'evalstore init {shlex.quote(workspace.name_of(folder / file.name))}'",
        ) from error
    if any(part.startswith(".") for part in inner.parts) or file.name == _IGNORED:
        raise EvalstoreError(
            f"'{name}' would not be read as a test",
            hint=f"hidden files and files called {_IGNORED} are ignored; choose another name",
        )
    if "::" in name:
        raise EvalstoreError(
            f"'{name}' cannot be the name of a test file: '::' separates a file from its row"
        )
    if os.path.realpath(file.parent) != str(Path(os.path.realpath(folder), *inner.parts[:-1])):
        raise EvalstoreError(
            f"'{name}' is in a linked folder, which is not searched for tests",
            hint=f"write it into another folder of '{prefix}'",
        )
