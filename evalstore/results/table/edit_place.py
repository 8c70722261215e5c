"""The place that a person wants to edit: a case, or a line of pending work."""

from __future__ import annotations

from typing import NamedTuple


class EditPlace(NamedTuple):
    """What is to be edited: a test file, and the case or the pending work that it is about."""

    file: str
    line: int | None = None
    """The line of a problem; only this file is meant then."""
    row: str = ""
    prompt: str | None = None
    """The version id of the system prompt of the case."""
    reason: str = ""
    """Why work is pending."""
