"""The names of what results belong to: a run, or the workspace. Imports nothing slow."""

from __future__ import annotations

WORKSPACE = "workspace"
"""In place of the id of a run."""


def side_name(id: str) -> str:
    """`the workspace`, or a run with its short id."""
    return "the workspace" if id == WORKSPACE else f"run {id[:8]}"
