"""The default ids of files."""

from __future__ import annotations


def default_id(path: str, folder: str | None = None) -> str:
    """Return the default id of a file: its path below its folder, without the suffix.

    Without `folder` the first part of the path is the folder.
    """
    if folder is None:
        below = path.partition("/")[2] or path
    else:
        below = path if folder in ("", ".") else path.removeprefix(folder + "/")
    return below.rpartition(".")[0] or below
