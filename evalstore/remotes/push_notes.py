"""What this workspace notes of its own pushes, in a file beside the store that is never shared.

It has the names under which it has pushed, so that its pushes stay its own: they change with git's
`user.name` and with the name of the machine. Without the file, only pushes under the present name
are known as own. And it has the tags that the last push to each remote excluded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import NamedTuple

from evalstore.files.atomic_write import locked_folder, write_whole
from evalstore.workspace.folder import WorkspaceFolder
from evalstore.workspace.index import read_cache

_FILE = "pushed-as.json"


class _Notes(NamedTuple):
    names: frozenset[str] = frozenset()
    excluded: Mapping[str, Collection[str]] = {}
    """Remote -> tags; only of remotes whose last push has excluded some."""


def read_own_names(workspace: WorkspaceFolder) -> frozenset[str]:
    """Return the noted names; none if they cannot be read."""
    return _read(workspace).names


def read_excluded_tags(workspace: WorkspaceFolder, remote: str) -> list[str]:
    """Return the tags that the last push to a remote excluded, sorted."""
    return sorted(_read(workspace).excluded.get(remote, ()))


def note_own_name(workspace: WorkspaceFolder, name: str) -> None:
    """Note a name, as remotes show it, under which something is about to be pushed."""
    if name not in read_own_names(workspace):
        _change(workspace, lambda notes: notes._replace(names=notes.names | {name}))


def note_excluded_tags(workspace: WorkspaceFolder, remote: str, tags: Collection[str]) -> None:
    """Note the tags that a push to a remote has excluded, in place of those of the one before."""
    if sorted(set(tags)) != read_excluded_tags(workspace, remote):
        _change(workspace, lambda notes: notes._replace(excluded={**notes.excluded, remote: tags}))


def _change(workspace: WorkspaceFolder, change: Callable[[_Notes], _Notes]) -> None:
    """Change the notes; two pushes at the same time lose nothing."""
    with suppress(OSError), locked_folder(workspace.private):  # a push does not depend on it
        names, tags = change(_read(workspace))
        listed = {key: sorted(set(tags[key])) for key in sorted(tags) if tags[key]}
        content = {"names": sorted(names), **({"excludedTags": listed} if listed else {})}
        write_whole(workspace.private / _FILE, json.dumps(content).encode(), durable=False)


def _read(workspace: WorkspaceFolder) -> _Notes:
    """Return the notes; what cannot be read is as if it were not there."""
    try:
        content = read_cache(workspace.private / _FILE, workspace.boundary)
        names = frozenset(name for name in content.get("names", ()) if type(name) is str)
        excluded = {
            remote: [tag for tag in tags if type(tag) is str]
            for remote, tags in content.get("excludedTags", {}).items()
        }
        return _Notes(names, excluded)
    except (ValueError, KeyError, TypeError, AttributeError):
        return _Notes()
