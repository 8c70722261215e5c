"""The result of the check of a store, a remote or a bundle, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalstore.interfaces.cli import output
from evalstore.remotes.places.layout import repair_hint

if TYPE_CHECKING:
    from evalstore.remotes.check_remote import RemoteCheck


def print_check(check: RemoteCheck) -> None:
    """Print all problems with their files, and what was checked."""
    shown = set[str]()
    for problem in check.problems:
        listed = problem.indexes if problem.file not in shown else ()
        shown.add(problem.file)
        by = f"; listed by {' and '.join(listed)}" if listed else ""
        output.line(output.safe(f"{problem.file}: {problem.message}{by}"))
    for name in check.unused:
        output.line(output.safe(f"{name}: unused, no index lists it"))
    if check.newer:
        rows = output.plural(check.newer, "row")
        output.line(f"{rows} of a newer version of evalstore not checked")
    unused = f", {output.plural(len(check.unused), 'unused pack')}" if check.unused else ""
    output.line(checked_rows(check.checked, len(check.problems)) + unused)


def tell_of_repair(check: RemoteCheck) -> None:
    """Say how to repair a remote that is damaged, or what is needed to check all of it."""
    from evalstore.remotes.check_remote import NewerRow

    if check.remove:
        output.talk(output.safe(f"hint: {repair_hint(check.remove)}", lines=True))
    elif any(isinstance(problem, NewerRow) for problem in check.problems):
        output.talk("hint: upgrade evalstore")
    elif check.problems:
        output.talk("hint: push from every store that may have the missing rows")
    elif check.unused:
        output.talk(
            "hint: a push was interrupted, or an index was deleted; push from every store that may "
            "have the rows of unused packs"
        )


def checked_rows(checked: int, problems: int) -> str:
    """Return the last line of a check: how many rows were checked, and how many problems found."""
    found = output.paint(output.plural(problems, "problem"), "fail") if problems else "all is well"
    return f"{output.plural(checked, 'row')} checked: {found}"
