"""Names the sources of results: a run or the workspace. This module imports nothing slow."""

from __future__ import annotations

WORKSPACE = "workspace"
"""The name in place of the id of a run."""


def side_name(id: str) -> str:
    """Return `the workspace`, or a run with its short id."""
    return "the workspace" if id == WORKSPACE else f"run {id[:8]}"
