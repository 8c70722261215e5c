"""Finds scripted models whose entries changed after they answered, while their answers count.

The entries of a script are not part of its version. Which ones it had when it first answered is
noted in a file beside the store that is never shared; without the file, no edit is known.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore import hashing
from evalstore.display import plural
from evalstore.files.atomic_write import locked_folder, write_whole
from evalstore.providers.kinds import SCRIPTED
from evalstore.workspace.index import read_cache

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from evalstore.planning.options import SelectionOptions
    from evalstore.planning.project import Project
    from evalstore.workspace.folder import WorkspaceFolder
    from evalstore.workspace.model_files import Model

_FILE = "scripts.json"


def warn_of_edited_scripts(project: Project, selection: SelectionOptions) -> None:
    """Warn of the models in use whose noted entries changed, unless all are asked again."""
    if selection.refresh:
        return
    noted: Mapping[str, Collection[str]] | None = None
    for version, _, model in _scripted(project, selection):
        noted = _read(project.workspace) if noted is None else noted
        count = len({*noted.get(version, ())} - {*_entries(model)})
        if count:
            project.warn(
                f"{plural(count, 'entry')} of 'responses' of '{model.id}' "
                f"{'has' if count == 1 else 'have'} changed since it answered, but its stored "
                "answers count; 'extraIdentifier: v2' in its file makes a new version, which is "
                "asked, and 'run --refresh' asks again for one run"
            )


def note_scripts(project: Project, selection: SelectionOptions, called: Collection[str]) -> None:
    """Note the entries of the scripted models that a run has called.

    `called` are names of candidates and evaluators. Entries are added to those of earlier runs
    as long as none of these has changed.
    """
    scripts = {
        version: [*_entries(model)]
        for version, id, model in _scripted(project, selection)
        if id in called
    }
    if not scripts:
        return
    before = _read(project.workspace)
    new = {
        version: entries
        for version, entries in scripts.items()
        if {*before.get(version, ())} < {*entries}
    }
    if not new:
        return
    with suppress(OSError), locked_folder(project.workspace.private):  # a run does not depend on it
        content = {**_read(project.workspace), **new}
        path = project.workspace.private / _FILE
        write_whole(path, json.dumps(content).encode(), durable=False)


def _scripted(project: Project, selection: SelectionOptions) -> Iterator[tuple[str, str, Model]]:
    """Yield the version of each scripted candidate and evaluator, its name, and the model."""
    participants = {each.model: each.id for each in project.candidates(selection)}
    participants |= {each.model: each.id for each in project.judges(selection)}
    for version, id in participants.items():
        model = project.find_model(id, "models")
        if model.provider.type == SCRIPTED:
            yield version, id, model


def _entries(model: Model) -> Iterator[str]:
    """Yield a hash of each entry that answers; errors are not stored."""
    for entry in model.responses:
        if "error" not in entry:
            yield hashing.hash_bytes(json.dumps(entry, sort_keys=True, default=str).encode())


def _read(workspace: WorkspaceFolder) -> Mapping[str, Collection[str]]:
    """Return the noted entries by model version; what cannot be read is as if it were not there."""
    try:
        content = read_cache(workspace.private / _FILE, workspace.boundary)
        return {
            str(version): [str(entry) for entry in entries] for version, entries in content.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
