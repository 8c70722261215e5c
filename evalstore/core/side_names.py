"""Names the sources of results: a run or the workspace. This module imports nothing slow."""

from __future__ import annotations

from collections.abc import Sequence

WORKSPACE = "workspace"
"""The name in place of the id of a run."""


def side_name(id: str, names: Sequence[str] = ()) -> str:
    """Return `the workspace`, or a run with its short id and its names: `run a201ccab (v2)`."""
    listed = f" ({', '.join(names)})" if names else ""
    return "the workspace" if id == WORKSPACE else f"run {id[:8]}{listed}"
