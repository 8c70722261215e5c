"""The names under which this workspace has pushed, so that its pushes stay its own.

They change with git's `user.name` and with the name of the machine. They are in a file beside the
store, which is never shared; without it, only pushes under the present name are known as own.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING

from evalstore.files.atomic_write import write_whole
from evalstore.workspace.index import read_cache

if TYPE_CHECKING:
    from evalstore.workspace.folder import WorkspaceFolder

_FILE = "pushed-as.json"


def read_own_names(workspace: WorkspaceFolder) -> frozenset[str]:
    """Return the noted names; none if they cannot be read."""
    try:
        names = read_cache(workspace.private / _FILE, workspace.boundary)["names"]
        return frozenset(name for name in names if type(name) is str)
    except (ValueError, KeyError, TypeError):
        return frozenset()


def note_own_name(workspace: WorkspaceFolder, name: str) -> None:
    """Note a name, as remotes show it, under which something was pushed."""
    names = read_own_names(workspace)
    if name not in names:
        content = json.dumps({"names": sorted({*names, name})})
        with suppress(OSError):  # what was pushed is pushed
            write_whole(workspace.private / _FILE, content.encode(), durable=False)
