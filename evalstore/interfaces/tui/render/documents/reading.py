"""The texts for a page that is being read, and for a problem."""

from __future__ import annotations

from evalstore.core.errors import EvalstoreError, WorkspaceError
from evalstore.store.wanted import Reached

READING = "reading …"
"""A part of the title while the page is being read."""
_LISTED = 5
"""Problems of a workspace that are listed."""


def reading_text(reached: Reached) -> str:
    """Return how far a reading has come: `reading … 250,000 of 1,000,000 cases`."""
    total = f" of {reached.total:,}" if reached.total else ""
    return f"{READING} {reached.done:,}{total} {reached.counted}"


def problem_text(problem: EvalstoreError) -> str:
    """Return a problem as the command line shows it."""
    if isinstance(problem, WorkspaceError):
        problems = sorted(problem.problems, key=lambda item: item.severity != "error")
        lines = [
            f"{entry.severity}: {entry.place}: {entry.message}" for entry in problems[:_LISTED]
        ]
        hints = [f"hint: {entry.hint}" for entry in problems[:1] if entry.hint]
        more = len(problems) - _LISTED
        return "\n".join([*lines, *([f"… {more} more"] if more > 0 else []), *hints])
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    return f"error: {problem}{hint}"
