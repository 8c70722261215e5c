"""Finds scripted models whose entries changed after they answered, while their answers count.

The entries of a script are not part of its version. Which ones have answered is noted in a file
beside the store that is never shared; without the file, no edit is known.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress

from evalstore.core import hashing
from evalstore.core.display import clip
from evalstore.files.atomic_write import locked_folder, write_whole
from evalstore.planning.options import SelectionOptions
from evalstore.planning.project import Project
from evalstore.providers.base import SCRIPTED
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.index import read_cache
from evalstore.workspace.model_files import Model

_FILE = "scripts.json"
_NAMED = 2
"""The most entries that a warning names."""
_SHOWN = 30
"""Columns of the condition of an entry."""
Noted = dict[str, str]
"""The entries that have answered: a hash -> the condition, empty if there is none."""


def warn_of_edited_scripts(project: Project, selection: SelectionOptions) -> None:
    """Warn of the models in use with edited entries that answered, unless all are asked again."""
    if selection.refresh:
        return
    noted: Mapping[str, Noted] | None = None
    for version, _, model in _scripted(project, selection):
        noted = _read(project.workspace) if noted is None else noted
        present = {entry for entry, _, _ in _entries(model)}
        edited = [when for entry, when in noted.get(version, {}).items() if entry not in present]
        if edited:
            project.warn(
                f"{_name(edited)} of '{model.id}' {'has' if len(edited) == 1 else 'have'} changed; "
                f"'extraIdentifier: {_next_identifier(model)}' asks again"
            )


def _next_identifier(model: Model) -> str:
    """Return an identifier that makes another version of a model: `v2`, or what follows `v2`."""
    now = str(model.options.get("extraIdentifier") or "v1")
    start, digits = re.fullmatch(r"(.*?)(\d{0,9})", now, re.DOTALL).groups()  # type: ignore[union-attr]
    return clip(f"{start}{int(digits) + 1}" if digits else f"{now}-2", _SHOWN)


def _name(conditions: Sequence[str]) -> str:
    """Return the entries with these conditions in words: `entry 'Oslo'`."""
    names = [f"'{clip(when, _SHOWN)}'" if when else "without 'when'" for when in conditions]
    if len(names) == 1:
        return f"entry {names[0]}"
    shown = names if len(names) <= _NAMED + 1 else names[:_NAMED]
    more = len(names) - len(shown)
    *first, last = [*shown, *([f"{more:,} more"] if more else [])]
    return f"entries {', '.join(first)} and {last}"


def note_scripts(
    project: Project, selection: SelectionOptions, called: Mapping[str, Collection[int] | None]
) -> None:
    """Note the entries of the scripted models that have answered in a run.

    `called` has the numbers of these entries by the name of a candidate or an evaluator; None where
    any may have answered. They are added to those of earlier runs.
    """
    scripts = {
        version: {
            entry: when
            for entry, number, when in _entries(model)
            if (numbers := called[id]) is None or number in numbers
        }
        for version, id, model in _scripted(project, selection)
        if id in called
    }
    if not scripts:
        return
    before = _read(project.workspace)
    if all(
        entries.keys() <= before.get(version, {}).keys() for version, entries in scripts.items()
    ):
        return
    with suppress(OSError), locked_folder(project.workspace.private):  # a run does not depend on it
        content = _read(project.workspace)
        for version, entries in scripts.items():
            content[version] = content.get(version, {}) | entries
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


def _entries(model: Model) -> Iterator[tuple[str, int, str]]:
    """Yield a hash of each entry that answers, its number and its condition.

    Errors are not stored.
    """
    for number, entry in enumerate(model.responses):
        if "error" not in entry:
            text = json.dumps(entry, sort_keys=True, default=str)
            yield hashing.hash_bytes(text.encode()), number, str(entry.get("when") or "")


def _read(workspace: WorkspaceFolder) -> dict[str, Noted]:
    """Return the noted entries by model version; what cannot be read is as if it were not there."""
    try:
        content = read_cache(workspace.private / _FILE, workspace.boundary)
        return {
            str(version): {str(entry): str(when) for entry, when in entries.items()}
            for version, entries in content.items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
