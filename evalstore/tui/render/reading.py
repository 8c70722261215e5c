"""The state of what a page reads: being read, or a problem."""

from __future__ import annotations

from evalstore.errors import EvalstoreError, WorkspaceError

READING = "reading …"
"""A part of the title while the page is being read."""
_LISTED = 5
"""Problems of a workspace that are listed."""


def problem_text(problem: EvalstoreError) -> str:
    """A problem as the command line shows it."""
    if isinstance(problem, WorkspaceError):
        problems = sorted(problem.problems, key=lambda found: found.severity != "error")
        lines = [f"{one.severity}: {one.place}: {one.message}" for one in problems[:_LISTED]]
        hints = [f"hint: {one.hint}" for one in problems[:1] if one.hint]
        more = len(problems) - _LISTED
        return "\n".join([*lines, *([f"… {more} more"] if more > 0 else []), *hints])
    hint = f"\nhint: {problem.hint}" if problem.hint else ""
    return f"error: {problem}{hint}"
