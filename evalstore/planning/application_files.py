"""Finds the applications of model files that a command line names."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evalstore.checks.types.python import CodeFile
from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.files.fields import suggest_file
from evalstore.planning.open_project import open_workspace
from evalstore.workspace.reader import read_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.files.processes.application import Application
    from evalstore.planning.options import Location
    from evalstore.workspace.folder import WorkspaceFolder


def refuse_programs(location: Location, names: Iterable[str]) -> None:
    """Raise `EvalstoreError` for a file that runs only as a part of an application.

    Trust in an application is given by its model file, so trust in its program has no effect.
    """
    try:
        workspace = open_workspace(location)
    except EvalstoreError:
        return  # files can be trusted anywhere
    reading = read_workspace(workspace, tests=False)
    models = {
        (workspace.root / path).resolve(): reading.model_files[id]
        for id, model in reading.models.items()
        for path in (model.application.files if model.application else ())
    }
    own = [name for name in names if (location.directory / name).resolve() in models]
    checks = _files_of_checks(workspace) if own else set()
    for name in own:
        if (place := (location.directory / name).resolve()) not in checks:
            raise EvalstoreError(
                f"'{name}' is part of the application '{models[place]}', trusted as a whole",
                hint=f"evalstore trust {models[place]}",
            )


def _files_of_checks(workspace: WorkspaceFolder) -> set[Path]:
    """Return the Python files that checks run."""
    reading = read_workspace(workspace)
    return {
        (workspace.root / reading.references.locate(name.partition(":")[2], test)).resolve()
        for test, file in reading.files.items()
        for ids in [{CodeFile.read(text).id for text in file.runs}]
        for name, id in reading.depends.get(test, {}).items()
        if id in ids
    }


def find_applications(
    location: Location, names: Sequence[str]
) -> dict[str, tuple[Path, Application]]:
    """Return model files and their applications by name; raises `EvalstoreError`."""
    workspace = open_workspace(location)
    reading = read_workspace(workspace, tests=False)
    places = {
        (workspace.root / path).resolve(): reading.models[id]
        for id, path in reading.model_files.items()
    }
    applications: dict[str, tuple[Path, Application]] = {}
    for name in names:
        place = (location.directory / name).resolve()
        model = places.get(place)
        if model is None:
            errors = [
                error
                for error in reading.errors
                if (workspace.root / error.file).resolve() == place
            ]
            if errors:
                raise WorkspaceError(errors)
            if not place.is_file():
                hint = suggest_file(name, reading.model_files.values(), "model files")
                raise EvalstoreError(f"there is no file '{name}'", hint=hint)
            raise EvalstoreError(
                f"'{name}' is not a model file of this workspace, so nothing would run it",
                hint="'evalstore status' names the files that wait for trust",
            )
        if model.application is None:
            raise EvalstoreError(
                f"'{name}' is not the model file of an application, so nothing would run",
                hint="that is a model with 'provider: python' or 'provider: command'",
            )
        applications[name] = place, model.application
    return applications
