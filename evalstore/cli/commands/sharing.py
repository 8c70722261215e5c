"""`push`, `pull`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from evalstore.cli import completions, options, output
from evalstore.cli.app import Globals, app, here
from evalstore.cli.render.copied_rows import (
    print_sentence,
    pull_line,
    push_line,
    tell_of_excluded,
    warn_of_left_out,
)
from evalstore.cli.unsuited_variables import Values, unsuited
from evalstore.errors import EvalstoreError

if TYPE_CHECKING:
    from evalstore.cli.copy_progress import CopyProgress
    from evalstore.operations.pull import PullReport

Remote = Annotated[
    str | None,
    typer.Argument(
        metavar="REMOTE",
        help="The name of a remote (default: origin, or the only one).",
        autocompletion=completions.remotes,
    ),
]

Since = Annotated[
    str | None,
    typer.Option(
        metavar="REV",
        help="Only the runs after this one, with all that belongs to them.",
        autocompletion=completions.runs,
    ),
]

ExcludeTags = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude-tag",
        metavar="T",
        help="Nothing of cases with this tag (repeatable).",
        autocompletion=completions.tags,
    ),
]


@unsuited("push", "with_failures")
def _is_to_excluding_remote(values: Values) -> bool:
    """Return whether the settings of the remote exclude tags."""
    from evalstore.planning.open_project import open_workspace
    from evalstore.workspace.remotes import find_remote

    with suppress(EvalstoreError):  # the command says what is wrong
        return bool(find_remote(open_workspace(here()), values["remote"])[1].exclude_tags)
    return False


@app.command()
def push(
    remote: Remote = None,
    since: Since = None,
    exclude_tag: ExcludeTags = None,
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Only say what would be pushed.")
    ] = False,
    with_failures: Annotated[
        bool, typer.Option("--with-failures", help="Also push failed calls, with their messages.")
    ] = False,
    allow_keys: Annotated[
        bool, typer.Option("--allow-keys", help="Also push what seems to contain a key.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Copy results to a remote that lacks them.

    Any number of people and machines may push at once: nothing is replaced, and nobody sees a run
    before everything that belongs to it is there. An interrupted push is completed by the next one.
    A folder that is empty, or does not exist yet, becomes a remote, and a database without tables
    gets them. Rows with an API key are refused.

    With --exclude-tag, or 'excludeTags' of the remote, nothing of tests with this tag is copied,
    and of other tests only what belongs to their present versions: a private test may have been a
    part of an earlier one. Runs with any of these stay here, and so do runs that were selected by
    name.

    Exit code 6: the remote or the store cannot be used.
    """
    from evalstore.operations.push import push as operation

    with progress("pushing") as listener:
        report = operation(
            here(),
            remote,
            since=since,
            exclude_tags=exclude_tag or (),
            dry_run=dry_run,
            with_failures=with_failures,
            allow_keys=allow_keys,
            listener=listener,
        )
    if json:
        output.document(report)
        return
    print_sentence(push_line(report))
    tell_of_excluded(report.excluded_runs)


@app.command()
def pull(
    remote: Remote = None,
    dry_run: Annotated[
        bool, typer.Option("-n", "--dry-run", help="Only say what would be pulled.")
    ] = False,
    for_plan: Annotated[
        bool,
        typer.Option(
            "--for-plan", help="Only answers and judgements that a run would ask for now."
        ),
    ] = False,
    baseline: Annotated[
        str | None,
        typer.Option(
            metavar="REV",
            help="With --for-plan: also this run, for the same option of run.",
            autocompletion=completions.runs,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Copy results that the store lacks from a remote.

    Every row is checked before it is stored: its id is computed again from its content. An
    interrupted pull is completed by the next one. With --for-plan, all runs but the newest and the
    results of other cases stay in the remote: enough for CI, which begins with an empty store.
    It also copies older runs until each case has passed in one, at most 100.

    Exit code 6: the remote is damaged, or it or the store cannot be used.
    """
    if not for_plan:
        if baseline is not None:
            raise EvalstoreError("'--baseline' needs '--for-plan'")
        from evalstore.operations.pull import pull as operation

        with progress("pulling") as listener:
            report = operation(here(), remote, dry_run=dry_run, listener=listener)
        _print_pulled(report, json=json)
        return
    if dry_run:
        raise EvalstoreError(
            "'--for-plan' cannot be combined with '--dry-run'",
            hint="'evalstore status' says what is missing here",
        )
    from evalstore.operations.pull_for_plan import pull_for_plan

    with progress("pulling") as listener:
        report = pull_for_plan(here(), remote, baseline=baseline, listener=listener)
    _print_pulled(report, json=json)


def _print_pulled(report: PullReport, *, json: bool) -> None:
    if json:
        output.document(report)
        return
    print_sentence(pull_line(report))
    warn_of_left_out(report)


def progress(verb: str) -> CopyProgress:
    """Return the progress of a command that copies or checks rows."""
    from evalstore.cli.copy_progress import CopyProgress

    return CopyProgress(verb, Globals.progress)
