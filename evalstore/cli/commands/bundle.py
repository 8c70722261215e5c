"""`bundle`, `merge`, `clone`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Annotated, Literal

import typer

from evalstore.cli import options, output
from evalstore.cli.app import Globals, app, here
from evalstore.cli.commands.sharing import ExcludeTags, Since, progress
from evalstore.cli.render.copied_rows import (
    copied_line,
    counts_text,
    print_sentence,
    tell_of_excluded,
    warn_of_missing,
    warn_of_newer,
    warn_of_waiting,
)
from evalstore.cli.render.remote_check import print_check
from evalstore.errors import NO, EvalstoreError

_VERBS = ("copy", "copied")
_LISTED = 10
"""The presumed runs that `bundle verify` lists."""


@app.command()
def bundle(
    action: Annotated[
        Literal["create", "verify", "unbundle"],
        typer.Argument(metavar="create|verify|unbundle", help="What to do."),
    ],
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The bundle.")],
    since: Since = None,
    exclude_tag: ExcludeTags = None,
    with_failures: Annotated[
        bool,
        typer.Option(
            "--with-failures", help="With create: also failed calls, with their messages."
        ),
    ] = False,
    allow_keys: Annotated[
        bool,
        typer.Option("--allow-keys", help="With create: also what seems to contain a key."),
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="With unbundle: only say what would be copied.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Share results as one file.

    For machines without a shared folder: 'create' writes all results to a file, or with --since
    only what is new since a run. 'unbundle' copies from it what the store does not have, and checks
    every row. A bundle that was made with --since presumes the earlier runs, and is refused by a
    store that does not have them. 'verify' checks every byte and every row of a bundle; it needs
    neither a workspace nor a store.

    Exit code 1: 'verify' found a problem. 6: the file is not a bundle, is damaged, or presumes
    runs that the store does not have.
    """
    given = {
        "--since": since is not None,
        "--exclude-tag": bool(exclude_tag),
        "--with-failures": with_failures,
        "--allow-keys": allow_keys,
        "--dry-run": dry_run,
    }
    allowed = {"create": tuple(given)[:4], "unbundle": ("--dry-run",)}.get(action, ())
    for option, is_given in given.items():
        if is_given and option not in allowed:
            raise EvalstoreError(f"'bundle {action}' has no option '{option}'")
    if action == "create":
        _create(
            file,
            since,
            exclude_tag or (),
            with_failures=with_failures,
            allow_keys=allow_keys,
            json=json,
        )
    elif action == "verify":
        _verify(file, json=json)
    else:
        _unbundle(file, dry_run=dry_run, json=json)


def _create(
    file: Path,
    since: str | None,
    exclude_tags: Sequence[str],
    *,
    with_failures: bool,
    allow_keys: bool,
    json: bool,
) -> None:
    from evalstore.display import bytes_text
    from evalstore.operations.bundle import create_bundle

    with progress("writing") as listener:
        report = create_bundle(
            here(),
            file,
            since=since,
            exclude_tags=exclude_tags,
            with_failures=with_failures,
            allow_keys=allow_keys,
            listener=listener,
        )
    if json:
        output.document(report)
        return
    name = output.safe(report.file)
    print_sentence(f"wrote {counts_text(report.records)} to {name}: {bytes_text(report.size)}")
    if report.presumes:
        runs = output.plural(len(report.presumes), "earlier run")
        print_sentence(f"it presumes {runs}, which the store that unbundles it must have")
    tell_of_excluded(report.excluded_runs)


def _verify(file: Path, *, json: bool) -> None:
    from evalstore.operations.bundle import verify_bundle

    with progress("checking") as listener:
        report = verify_bundle(Globals.directory, file, listener=listener)
    if json:
        output.document(report)
    else:
        output.line(f"written  {report.created} by {output.safe(report.writer)}")
        if report.presumes:
            names = ", ".join(output.short(id) for id in report.presumes[:_LISTED])
            more = len(report.presumes) - _LISTED
            runs = f"{names} and {more:,} more" if more > 0 else names
            output.line(f"presumes {output.plural(len(report.presumes), 'run')}: {runs}")
        print_check(report.check)
    if report.check.problems:
        raise typer.Exit(NO)


def _unbundle(file: Path, *, dry_run: bool, json: bool) -> None:
    from evalstore.operations.bundle import unbundle

    with progress("copying") as listener:
        report = unbundle(here(), file, dry_run=dry_run, listener=listener)
    if json:
        output.document(report)
        return
    size = report.bytes_received
    print_sentence(
        copied_line(_VERBS, report.records, "from", str(file), size=size, dry_run=dry_run)
    )
    warn_of_newer(report.newer)
    warn_of_waiting(report.waiting, report.waiting_rows, "bundle")


@app.command()
def merge(
    other: Annotated[
        str,
        typer.Argument(
            metavar="OTHER", help="The other store: its file, or its address in PostgreSQL."
        ),
    ],
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Only say what would be copied.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Copy the results of another store.

    What the store already has is left out, and every row is checked before it is stored. The other
    store is never changed: if it is a file of an older version, a copy of it is migrated.

    Exit code 6: one of the stores is damaged or cannot be used.
    """
    from evalstore.operations.merge import merge as operation

    with progress("merging") as listener:
        report = operation(here(), other, dry_run=dry_run, listener=listener)
    if json:
        output.document(report)
        return
    print_sentence(copied_line(_VERBS, report.records, "from", report.store, dry_run=dry_run))
    then = f"'evalstore fsck --store {quote(report.store)}' lists what is missing"
    warn_of_waiting(report.waiting, report.waiting_rows, "other store", then)


@app.command()
def clone(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="The remote, or the file of a bundle.")
    ],
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR", help="The folder to make (default: the last name of the address)."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Make a workspace with results of a remote or bundle.

    The workspace is for looking at them. It has no tests: these come from your repository, which
    has a workspace of its own. There, 'evalstore remote add' and 'evalstore pull', or 'evalstore
    bundle unbundle', get the same results.

    Exit code 6: the remote or the bundle is damaged or cannot be used.
    """
    from evalstore.display import bytes_text
    from evalstore.operations.clone import clone as operation

    with progress("pulling") as listener:
        report = operation(here(), address, directory, listener=listener)
    if json:
        output.document(report)
        return
    source, name = output.safe(report.address), output.safe(report.workspace)
    size = bytes_text(report.bytes_received)
    print_sentence(f"cloned {counts_text(report.records)} from {source} into {name}: {size}")
    warn_of_newer(report.newer)
    place = "bundle" if report.remote == "bundle" else "remote"
    output.talk(f"the tests are not in a {place}: they come from your repository, with git")
    warn_of_waiting(report.waiting, report.waiting_rows, place)
    warn_of_missing(report.missing_packs, report.missing_rows)
