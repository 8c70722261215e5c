"""The ids that files have when they give none."""

from __future__ import annotations


def default_id(path: str, folder: str | None = None) -> str:
    """A file's id when it gives none: its path below its folder, without the suffix.

    Without `folder` the first part of the path is taken for it.
    """
    if folder is None:
        below = path.partition("/")[2] or path
    else:
        below = path if folder in ("", ".") else path.removeprefix(folder + "/")
    return below.rpartition(".")[0] or below
