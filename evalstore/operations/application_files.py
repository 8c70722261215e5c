"""Finds the applications of model files that a command line names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalstore.errors import EvalstoreError, WorkspaceError
from evalstore.files.fields import suggest_file
from evalstore.planning.open_project import open_workspace
from evalstore.workspace.reader import read_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from evalstore.planning.options import Location
    from evalstore.processes.application import Application


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
