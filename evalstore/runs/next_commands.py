"""Suggests the commands that a user types next in a workspace."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

from evalstore.providers.kinds import EXAMPLE

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.workspace.folder import WorkspaceFolder
    from evalstore.workspace.settings.settings import Settings

_NAMES = ("hello", "first", "second", "third")
"""Names for a first test; the first one that is free is used."""


def run_command(settings: Settings, path: str | None = None) -> str:
    """Return the command that runs all tests, or those at a path, with the models of the settings.

    Models that the settings do not name are named on the command line.
    """
    words = ["evalstore", "run"]
    if path is not None:
        words.append(path)
    if not settings.candidates:
        words += ["-m", EXAMPLE]
    if not settings.evaluators:
        words += ["-J", EXAMPLE]
    return shlex.join(words)


def first_commands(
    workspace: WorkspaceFolder, start: Path, *, needs_test: bool = True
) -> list[str]:
    """Return the commands that add a first test if one is needed, run all and show the answers.

    `start` is the folder in which they are typed; when the workspace is another folder, the first
    command changes to it.
    """
    folder = os.path.relpath(workspace.root, start)
    tests = workspace.name_of(workspace.folder("tests"))
    commands = [] if folder == os.curdir else [shlex.join(["cd", folder])]
    if needs_test:
        name = f"{tests}/{_free_name(workspace.folder('tests'))}.md"
        commands.append(shlex.join(["evalstore", "init", name]))
    return [
        *commands,
        run_command(workspace.settings),
        "evalstore view",
    ]


def _free_name(folder: Path) -> str:
    """Return a name without a suffix that no file in a folder has."""
    number = 0
    names = list(_NAMES)
    while os.path.lexists(folder / f"{names[0]}.md"):
        names.pop(0)
        if not names:
            number += 1
            names.append(f"test{number}")
    return names[0]
