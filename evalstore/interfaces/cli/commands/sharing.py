"""`push`, `pull`, `clone`."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from evalstore.core.display import bytes_text
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import completions, options, output
from evalstore.interfaces.cli.app import Globals, app, here
from evalstore.interfaces.cli.options import argument, option
from evalstore.interfaces.cli.render.copied_rows import (
    counts_text,
    print_sentence,
    pull_line,
    push_line,
    tell_of_excluded,
    warn_of_left_out,
    warn_of_rows_left,
)
from evalstore.interfaces.cli.unsuited_variables import Values, unsuited
from evalstore.workspace.settings.remote_names import BUNDLE

if TYPE_CHECKING:
    from evalstore.exchange.sync.pull import PullReport
    from evalstore.interfaces.cli.copy_progress import CopyProgress

Remote = Annotated[
    str | None,
    argument(
        "REMOTE",
        "The name of a remote (default: origin, or the only one), or a file.",
        completions.remotes,
    ),
]


@unsuited("push", "with_failures")
def _is_to_excluding_remote(values: Values) -> bool:
    """Return whether the settings of the remote exclude tags."""
    from evalstore.planning.open_project import open_workspace
    from evalstore.workspace.settings.remotes import find_remote

    with suppress(EvalstoreError):  # the command says what is wrong
        return bool(find_remote(open_workspace(here()), values["remote"])[1].exclude_tags)
    return False


@app.command()
def push(
    remote: Remote = None,
    since: Annotated[
        str | None,
        option(
            "--since REV",
            "Only runs after this one, with all they refer to.",
            completions.runs,
        ),
    ] = None,
    exclude_tag: Annotated[
        list[str] | None,
        option("--exclude-tag T", "Exclude cases with this tag (repeatable).", completions.tags),
    ] = None,
    dry_run: Annotated[bool, option("-n, --dry-run", "Only say what would be pushed.")] = False,
    with_failures: Annotated[
        bool, option("--with-failures", "Also push failed calls, with their messages.")
    ] = False,
    allow_keys: Annotated[
        bool, option("--allow-keys", "Also push what seems to contain a key.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Copy new results to a remote or a file.

    Any number of people and machines may push at once. Nothing is replaced, nobody sees half a run,
    and the next push completes an interrupted one. An empty folder or database becomes a remote.
    Rows with an API key are refused.

    A FILE.bundle is for machines without a shared folder. It has all results, or with --since those
    after a run, for a store that has the earlier ones.

    With --exclude-tag, or 'excludeTags' of the remote, tests with this tag are not copied, and
    other tests only in their current versions, as earlier ones may contain a private test. Runs
    with any of these stay here, as do runs selected by name.

    Exit code 6: the remote or the store cannot be used.
    """
    from evalstore.exchange.sync.push import push as operation

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
    if presumes := getattr(report, "presumes", ()):  # of a bundle
        runs = output.plural(len(presumes), "earlier run")
        print_sentence(f"it needs {runs} in the store that pulls it")
    tell_of_excluded(report.excluded_runs)


@app.command()
def pull(
    remote: Remote = None,
    dry_run: Annotated[bool, option("-n, --dry-run", "Only say what would be pulled.")] = False,
    for_plan: Annotated[
        bool, option("--for-plan", "Only answers and verdicts that a run would ask for now.")
    ] = False,
    baseline: Annotated[
        str | None,
        option(
            "--baseline REV",
            "With --for-plan: also this run, for 'run --baseline'.",
            completions.runs,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Copy new results from a remote or a file.

    The id of every row is computed again before it is stored. The next pull completes an
    interrupted one. A file is a bundle or another store, which is never changed.

    With --for-plan, only the newest run is copied, with the results of the cases that a run would
    ask for: enough for CI, which begins with an empty store. Older runs are added until each case
    has passed in one, at most 100.

    Exit code 6: the remote or the file is damaged, or it or the store cannot be used.
    """
    if not for_plan:
        if baseline is not None:
            raise EvalstoreError("'--baseline' needs '--for-plan'")
        from evalstore.exchange.sync.pull import pull as operation

        with progress("pulling") as listener:
            report = operation(here(), remote, dry_run=dry_run, listener=listener)
        _print_pulled(report, json=json)
        return
    if dry_run:
        raise EvalstoreError(
            "'--for-plan' cannot be combined with '--dry-run'",
            hint="'evalstore status' says what is missing here",
        )
    from evalstore.exchange.sync.pull_for_plan import pull_for_plan

    with progress("pulling") as listener:
        report = pull_for_plan(here(), remote, baseline=baseline, listener=listener)
    _print_pulled(report, json=json)


def _print_pulled(report: PullReport, *, json: bool) -> None:
    if json:
        output.document(report)
        return
    print_sentence(pull_line(report))
    warn_of_left_out(report)


@app.command()
def clone(
    address: Annotated[str, argument("ADDRESS", "The remote, or the file of a bundle.")],
    directory: Annotated[
        Path | None, argument("DIR", "The folder to make (default: the last name of the address).")
    ] = None,
    json: options.Json = False,
) -> None:
    """Make a workspace with results of a remote or bundle.

    The workspace is for reading them and has no tests: these come from your repository, whose
    workspace gets the same results with 'evalstore pull'.

    Exit code 6: the remote or the bundle is damaged or cannot be used.
    """
    from evalstore.exchange.sync.clone import clone as operation

    with progress("pulling") as listener:
        report = operation(here(), address, directory, listener=listener)
    if json:
        output.document(report)
        return
    source, name = output.safe(report.address), output.safe(report.workspace)
    size = bytes_text(report.bytes_received)
    print_sentence(f"cloned {counts_text(report.records)} from {source} into {name}: {size}")
    place = "bundle" if report.remote == BUNDLE else "remote"
    output.talk(f"the tests are not in a {place}: they come from your repository, with git")
    warn_of_rows_left(report)


def progress(verb: str) -> CopyProgress:
    """Return the progress of a command that copies or checks rows."""
    from evalstore.interfaces.cli.copy_progress import CopyProgress

    return CopyProgress(verb, Globals.progress)
