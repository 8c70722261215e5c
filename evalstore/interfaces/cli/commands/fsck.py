"""`fsck`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from evalstore.core.errors import NO, EvalstoreError
from evalstore.interfaces.cli import completions, options, output
from evalstore.interfaces.cli.app import Globals, app, here
from evalstore.interfaces.cli.options import argument, option
from evalstore.remotes.places.layout import repair_hint

if TYPE_CHECKING:
    from evalstore.remotes.check_remote import RemoteCheck


_LISTED = 10
"""The runs that a bundle presumes that are listed."""


@app.command()
def fsck(
    name: Annotated[
        str | None,
        argument(
            "NAME",
            "With --remote: a remote (default: origin, or the only one), or a bundle.",
            completions.remotes,
        ),
    ] = None,
    remote: Annotated[bool, option("--remote", "Check a remote instead of the store.")] = False,
    repair: Annotated[
        bool, option("--repair", "Remove from the store what can no longer be read.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Verify every id and reference of the store or a remote.

    With --repair, verdicts whose answers are missing, and runs that lack a part or cannot be read,
    are removed from the store first. Run 'evalstore pull' before: others may have what is missing.

    Of a remote or bundle, every byte and row is checked, and nothing is changed. The files to
    remove are listed; a push from a store that has their rows writes them again. For a bundle, no
    workspace is needed.
    """
    if remote:
        if repair:
            raise EvalstoreError(
                "'--repair' cannot be combined with '--remote'",
                hint="'evalstore fsck --remote' says what repairs a remote",
            )
        _fsck_remote(name, json=json)
        return
    if name is not None:
        raise EvalstoreError(
            "'fsck' takes no argument without --remote", hint=f"evalstore fsck --remote {name}"
        )
    from evalstore.exchange.sync.fsck import fsck as operation

    report = operation(here(), repair=repair)
    if json:
        output.document(report)
    else:
        if repair:
            counts = [output.plural(count, kind) for kind, count in report.removed.items()]
            output.line(f"removed {', '.join(counts) or 'nothing'}")
        for damage in report.problems:
            place = f"{damage.kind} {damage.id}".rstrip()
            output.line(output.safe(f"{place}: {damage.message}"))
        output.line(checked_rows(report.checked, len(report.problems)))
    if report.problems:
        raise typer.Exit(NO)


def _fsck_remote(name: str | None, *, json: bool) -> None:
    from evalstore.exchange.sync.fsck import RemoteFsckReport, fsck_remote
    from evalstore.interfaces.cli.copy_progress import CopyProgress

    with CopyProgress("checking", Globals.progress) as listener:
        report = fsck_remote(here(), name, listener)
    if json:
        output.document(report)
    else:
        if not isinstance(report, RemoteFsckReport):
            output.line(f"written  {report.created} by {output.safe(report.writer)}")
            if report.presumes:
                names = ", ".join(output.short(id) for id in report.presumes[:_LISTED])
                more = len(report.presumes) - _LISTED
                runs = f"{names} and {more:,} more" if more > 0 else names
                output.line(f"needs {output.plural(len(report.presumes), 'run')}: {runs}")
        print_check(report.check)
        if isinstance(report, RemoteFsckReport):
            tell_of_repair(report.check)
    if report.check.problems:
        raise typer.Exit(NO)


# --- the result of the check of a store, a remote or a bundle, as text


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
    elif check.problems or check.unused:
        output.talk("hint: push from every store that may have the missing rows")


def checked_rows(checked: int, problems: int) -> str:
    """Return the last line of a check: how many rows were checked, and how many problems found."""
    found = output.paint(output.plural(problems, "problem"), "fail") if problems else "all is well"
    return f"{output.plural(checked, 'row')} checked: {found}"
