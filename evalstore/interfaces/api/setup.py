"""Creates a workspace, and imports the tests of another system."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.interfaces.api import options
from evalstore.interfaces.api.calls import system_errors
from evalstore.interfaces.api.workspace import Workspace

if TYPE_CHECKING:
    from evalstore.core.values import Json
    from evalstore.exchange.import_tests import ImportReport
    from evalstore.interfaces.api.options import StrPath


def init(
    path: StrPath = ".",
    *,
    example: bool = False,
    store: StrPath | None = None,
    allow_outside: bool = False,
) -> Workspace:
    """Create a workspace and its store, and open it; existing files are not changed.

    With `example` it has tests, models and prompts that run offline.
    """
    from evalstore.exchange.init import init as operation

    text = None if store is None else os.fspath(store)
    with system_errors():
        operation(Path(path).absolute(), example=example, store=text, allow_outside=allow_outside)
    return Workspace(path, store=store, allow_outside=allow_outside)


def import_tests(
    format: str,
    paths: Iterable[StrPath],
    *,
    into: Workspace | StrPath = ".",
    folder: str | None = None,
    sessions: bool = False,
    force: bool = False,
    dry_run: bool = False,
) -> ImportReport:
    """Write test files for the tests of another system, without running its code.

    `folder` is a folder below that of the tests, by default named after the source; `sessions`
    imports recorded answers and verdicts too; `force` overwrites files that were edited;
    `dry_run` writes nothing. Raises `EvalstoreError` for an unknown format or missing files.
    """
    from evalstore.exchange.import_tests import import_files

    workspace = into if isinstance(into, Workspace) else Workspace(into)
    sources = [Path(path).absolute() for path in options.texts("paths", paths)]
    location = workspace.location
    with system_errors():
        return import_files(
            location, format, sources, into=folder, sessions=sessions, force=force, dry_run=dry_run
        )


# --- converts what methods return to the JSON that their commands print


def to_json(value: object) -> Json:
    """Return the JSON that the command of a method prints with `--json`.

    Its lists are in memory, also those that a command prints while they are read.
    """
    from evalstore.files import json_output

    document = json_output.to_json(value)
    if isinstance(document, dict):
        return {
            name: list(inner) if isinstance(inner, Iterator) else inner
            for name, inner in document.items()
        }
    return document
