"""The result of the check of a store, a remote or a bundle, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.cli import output

if TYPE_CHECKING:
    from evalstore.sharing.check_remote import RemoteCheck


def print_check(check: RemoteCheck) -> None:
    """Print all problems with their files, and what was checked."""
    for problem in check.problems:
        output.line(output.safe(f"{problem.file}: {problem.message}"))
    for name in check.unused:
        output.line(output.safe(f"{name}: unused, no index lists it"))
    if check.newer:
        rows = output.plural(check.newer, "row")
        output.line(f"{rows} of a newer version of evalstore not checked")
    output.line(checked_rows(check.checked, len(check.problems)))


def checked_rows(checked: int, problems: int) -> str:
    """Return the last line of a check: how many rows were checked, and how many problems found."""
    found = output.paint(output.plural(problems, "problem"), "fail") if problems else "all is well"
    return f"{output.plural(checked, 'row')} checked: {found}"
