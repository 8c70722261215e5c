"""Where rows came from: the remote that has them, and who pushed them there first.

What this workspace notes of its own pushes is in a file beside the store that is never shared: the
names under which it has pushed, which change with git's `user.name` and the name of the machine,
and the tags that the last push to each remote excluded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from evalstore.core.clock import iso
from evalstore.core.display import safe
from evalstore.core.errors import EvalstoreError
from evalstore.files.atomic_write import locked_folder, write_whole
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.store.schema.table_definitions import EVENTS
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


@dataclass(frozen=True, slots=True)
class FirstPush:
    """The first push of a row by somebody else."""

    remote: str
    """The name of the remote."""
    writer: str
    """The signer of the push, else the name that it gives itself."""
    time: str
    """ISO 8601, by the clock of the writer."""


def find_first_pushes(
    location: Location, table: str, ids: Iterable[str]
) -> Mapping[str, FirstPush]:
    """Return who pushed these rows of a table, by id, as far as remotes were last read.

    Rows that no remote has are left out, and those that were pushed from here.
    """
    workspace = open_workspace(location)
    wanted = [bytes.fromhex(id) for id in ids] if workspace.settings.remotes else []
    if not wanted:
        return {}
    from evalstore.remotes.index_cache import open_known

    pushes: dict[str, FirstPush] = {}
    for remote in workspace.settings.remotes:
        with suppress(EvalstoreError), open_known(workspace, remote) as cache:
            for id, push in cache.find_pushes(table, wanted) if cache else ():
                pushes.setdefault(id.hex(), FirstPush(remote, push.writer, iso(push.created)))
    if not pushes:
        return {}
    names = {_own_name(location.directory), *read_own_names(workspace)}
    return {id: push for id, push in pushes.items() if push.writer not in names}


def first_push_of(location: Location, kind: str, id: str) -> FirstPush | None:
    """Return who pushed a stored object; None for one of this machine, or of another kind."""
    columns = EVENTS.get(kind)
    return find_first_pushes(location, columns.name, [id]).get(id) if columns else None


def push_text(push: FirstPush) -> str:
    """Return where a row came from: `from origin, pushed by ci@runner`."""
    return f"from {safe(push.remote)}, pushed by {safe(push.writer)}"


@lru_cache(maxsize=4)
def _own_name(directory: Path) -> str:
    """Return the name under which this machine pushes; asking git for it takes a while."""
    from evalstore.workspace.git.status import name_of_writer

    return name_of_writer(directory)
