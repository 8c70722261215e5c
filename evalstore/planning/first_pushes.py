"""Where rows came from: the remote that has them, and who pushed them there first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from evalstore.core.clock import iso
from evalstore.core.display import safe
from evalstore.core.errors import EvalstoreError
from evalstore.planning.open_project import open_workspace
from evalstore.planning.options import Location
from evalstore.remotes.push_notes import read_own_names
from evalstore.store.schema.table_definitions import EVENTS


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
