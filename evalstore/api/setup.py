"""Makes a workspace, and takes over the tests of another system."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.api import options
from evalstore.api.calls import system_errors
from evalstore.api.workspace import Workspace

if TYPE_CHECKING:
    from evalstore.api.options import StrPath
    from evalstore.operations.import_tests import ImportReport


def init(
    path: StrPath = ".",
    *,
    example: bool = False,
    store: StrPath | None = None,
    allow_outside: bool = False,
) -> Workspace:
    """Make a workspace and its store, and open it; files that exist stay as they are.

    With `example` it has tests, models and prompts to try that need no network.
    """
    from evalstore.operations.init import init as operation

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
    """Write test files for the tests of another system, and run none of its code.

    `folder` is the one below that of the tests, else named after the source; `sessions` brings
    recorded answers and verdicts along; `force` writes over files that were edited; `dry_run`
    writes nothing. Raises `EvalstoreError` for a format or files that there are not.
    """
    from evalstore.operations.import_tests import import_files

    workspace = into if isinstance(into, Workspace) else Workspace(into)
    sources = [Path(one).absolute() for one in options.texts("paths", paths)]
    where = workspace.location
    with system_errors():
        return import_files(
            where, format, sources, into=folder, sessions=sessions, force=force, dry_run=dry_run
        )
