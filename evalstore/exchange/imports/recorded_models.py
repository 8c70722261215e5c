"""Writes model files for models of recorded answers that cannot be called."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evalstore.core import hashing
from evalstore.core.errors import FileProblem
from evalstore.core.values import RECORDED
from evalstore.exchange.importers.template_writer import safe_file_name, unique
from evalstore.exchange.importers.yaml_writer import block
from evalstore.files.access import LARGEST_TEXT
from evalstore.planning.open_project import locate_store, open_store
from evalstore.workspace.catalogue import is_known_kind, is_listed_model, read_catalogue
from evalstore.workspace.model_files import Model, bare_model

if TYPE_CHECKING:
    from evalstore.exchange.importers.base import JudgedAnswer
    from evalstore.planning.options import Location
    from evalstore.workspace.folder import WorkspaceFolder

_WORDS = (
    "# Its answers were recorded elsewhere, and it is never called. Name another provider to call\n"
    "# it: that makes it another model, and the recorded answers stay with this one.\n"
)


def write_models(
    location: Location,
    workspace: WorkspaceFolder,
    recorded: Iterable[JudgedAnswer],
    place_of: Callable[[str], str],
) -> dict[str, bytes]:
    """Return the model files for models of recorded answers that have no other model file.

    A file that an earlier import wrote is one of them. `place_of` returns the path of a file in
    the workspace.
    """
    ids = [
        id for id in dict.fromkeys(answer.model for answer in recorded) if id not in ("", RECORDED)
    ]
    known = read_catalogue(workspace, []).model_files
    bare = {id: model for id in ids if (model := bare_model(id, is_known_kind))}
    unlisted = {id: model for id, model in bare.items() if not is_listed_model(model)}
    called = (bare.keys() - unlisted.keys()) | _stored_as_called(location, workspace, unlisted)
    names: list[str] = []
    files: dict[str, bytes] = {}
    for id in ids:
        if id in called:
            continue
        name = unique(f"models/{safe_file_name(id.replace('/', '--'))}", names)
        content = (_WORDS + block({"id": id, "provider": RECORDED})).encode()
        file = known.get(id)
        if file is None or (file == place_of(f"{name}.yaml") and _has(workspace, file, content)):
            names.append(name)
            files[f"{name}.yaml"] = content
    return files


def _stored_as_called(
    location: Location, workspace: WorkspaceFolder, models: dict[str, Model]
) -> set[str]:
    """Return the models that the store has as models to be called; they are not changed."""
    place = locate_store(workspace, location)
    if not models or (isinstance(place, Path) and not place.is_file()):
        return set()
    versions = {
        id: hashing.identify(hashing.describe_model(model.version("candidate")))[0]
        for id, model in models.items()
    }
    with open_store(location) as store:
        stored = store.load_contents("model", versions.values())
    return {id for id, version in versions.items() if version in stored}


def _has(workspace: WorkspaceFolder, file: str, content: bytes) -> bool:
    try:
        return workspace.read_bytes(file, LARGEST_TEXT) == content
    except FileProblem:
        return False
