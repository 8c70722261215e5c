"""`push`, `pull`, `clone`, `remote`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from evalstore.core.display import bytes_text
from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import completions, options, output
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.option_values import Values, unsuited
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
from evalstore.interfaces.cli.render.list_formats import print_data
from evalstore.interfaces.cli.render.table import Table, print_table
from evalstore.workspace.settings.remote_names import BUNDLE

if TYPE_CHECKING:
    from evalstore.exchange.sync.pull import PullReport
    from evalstore.exchange.sync.remotes import GarbageReport, Remote, RemoteReport
    from evalstore.interfaces.cli.copy_progress import CopyProgress
    from evalstore.remotes.collect_garbage import FileCounts


RemoteName = Annotated[
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
    remote: RemoteName = None,
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

    with show_progress("pushing") as listener:
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
    remote: RemoteName = None,
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

        with show_progress("pulling") as listener:
            report = operation(here(), remote, dry_run=dry_run, listener=listener)
        _print_pulled(report, json=json)
        return
    if dry_run:
        raise EvalstoreError(
            "'--for-plan' cannot be combined with '--dry-run'",
            hint="'evalstore status' says what is missing here",
        )
    from evalstore.exchange.sync.pull_for_plan import pull_for_plan

    with show_progress("pulling") as listener:
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

    with show_progress("pulling") as listener:
        report = operation(here(), address, directory, listener=listener)
    if json:
        output.document(report)
        return
    pulled = report.pulled
    source, name = output.safe(pulled.address), output.safe(report.workspace)
    size = bytes_text(pulled.bytes_received)
    print_sentence(f"cloned {counts_text(pulled.records)} from {source} into {name}: {size}")
    place = "bundle" if pulled.remote == BUNDLE else "remote"
    output.talk(f"the tests are not in a {place}: they come from your repository, with git")
    warn_of_rows_left(pulled)


def show_progress(verb: str, noun: str = "rows") -> CopyProgress:
    """Return the progress of a command that copies, checks or indexes rows."""
    from evalstore.interfaces.cli.copy_progress import CopyProgress

    return CopyProgress(verb, noun)


# --- `remote`


_PUSHES = 10
"""The newest pushes that `remote show` lists."""


class _Action(NamedTuple):
    """An action of `remote`."""

    usage: str
    least: int
    """Arguments."""
    most: int
    options: Sequence[str] = ()


_ACTIONS = {
    "list": _Action("", 0, 0),
    "add": _Action("NAME ADDRESS", 2, 2),
    "remove": _Action("NAME", 1, 1),
    "show": _Action("[NAME]", 0, 1),
    "gc": _Action("[NAME]", 0, 1, ("--dry-run", "--grace")),
}


_LISTS = {"list": (["remotes"], "remote"), "show": (["pushes"], "remote show")}
"""The lists of actions, and the kind of each, for `-o`."""


@completions.completes
def _complete(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete the actions, and after one the name of a remote."""
    action, *others = ctx.params.get("words") or [None]
    if action is None:
        return _ACTIONS
    takes_name = action in ("remove", "show", "gc") and not others
    return completions.remotes(ctx, "") if takes_name else []


@app.command()
def remote(
    words: Annotated[
        list[str] | None,
        argument(
            "[ACTION] [NAME] [ADDRESS]",
            "list (the default), add NAME ADDRESS, remove NAME, show [NAME], or gc [NAME].",
            _complete,
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("-n, --dry-run", "With gc: only say what would be done.")
    ] = False,
    grace: Annotated[
        str | None,
        option(
            "--grace AGE", "With gc: delete what has not been needed for this long (default: 14d)."
        ),
    ] = None,
    output_format: options.Output = "table",
    json: options.Json = False,
) -> None:
    """List, add, remove, show or clean up remotes.

    An address is a folder, or a URL: s3://bucket/path, gs://bucket/path, az://container/path,
    sftp://user@host/path or postgresql://user@host/database. 'add' writes it into evalstore.yaml
    and allows this workspace to use it. 'remove' removes it there, and keeps the contents of the
    remote. 'show' compares the remote with the store.

    'gc' compacts many small pushes, and deletes files that were not needed for 14 days. No results
    are lost, others may push and pull meanwhile, and the next 'gc' completes an interrupted one. It
    does not apply to a database.

    Exit code 6: the remote is damaged, or it or the store cannot be used.
    """
    from evalstore.exchange.sync import remotes

    given = {"--dry-run": dry_run, "--grace": grace is not None}
    action, arguments = _read_action(
        words or ["list"], [option for option, is_given in given.items() if is_given]
    )
    name = arguments[0] if arguments else None
    lists, kind = _LISTS.get(action, ([], ""))
    if not lists and output_format in ("jsonl", "csv", "md"):
        raise EvalstoreError(
            f"'remote {action}' has no list to print as {output_format}",
            hint="'-o json' prints its result",
        )
    if action == "show":
        report = remotes.show_remote(here(), name)
        if not print_data(report, lists, output_format, kind=kind, json=json):
            _print_report(report)
    elif action == "gc":
        with show_progress("compacting") as listener:
            collected = remotes.collect_remote_garbage(
                here(), name, grace=grace, dry_run=dry_run, listener=listener
            )
        if not print_data(collected, lists, output_format, kind=kind, json=json):
            print_collected(collected)
    elif action == "list":
        listed = remotes.list_remotes(here())
        if not print_data({"remotes": listed}, lists, output_format, kind=kind, json=json):
            _print_remotes(listed)
    else:
        change = remotes.add_remote if action == "add" else remotes.remove_remote
        changed = change(here(), *arguments)
        if not print_data(changed, lists, output_format, kind=kind, json=json):
            verb = "added" if action == "add" else "removed"
            output.line(f"{verb} the remote {changed.name}: {output.safe(changed.address)}")


def _read_action(words: Sequence[str], given: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the action and its arguments; raises `EvalstoreError`, also for a wrong option."""
    from evalstore.files.fields import suggest

    name, arguments = words[0], words[1:]
    if name not in _ACTIONS:
        raise EvalstoreError(
            f"'remote' has no action '{name}'", hint=suggest(name, _ACTIONS, "actions")
        )
    action = _ACTIONS[name]
    if not action.least <= len(arguments) <= action.most:
        raise EvalstoreError(
            f"'remote {name}' takes {action.usage or 'no arguments'}",
            hint=f"evalstore remote {name} {action.usage}".rstrip(),
        )
    for each in given:
        if each not in action.options:
            raise EvalstoreError(
                f"'remote {name}' has no option '{each}'", hint="'evalstore remote gc' has it"
            )
    return name, arguments


def _print_remotes(listed: Sequence[Remote]) -> None:
    if listed:
        print_table(Table(("remote", "address"), [(item.name, item.address) for item in listed]))
    else:
        output.talk("no remote is set; 'evalstore remote add origin ADDRESS' sets one")


def _print_report(report: RemoteReport) -> None:
    from evalstore.interfaces.cli.render.copied_rows import (
        print_pushes,
        tell_of_excluded,
        tell_of_last_excluded,
    )

    print_sentence(f"{report.name}: {output.safe(report.address)}", "remote   ")
    print_sentence(f"{counts_text(report.records)}, {bytes_text(report.size)}", "has      ")
    print_sentence(counts_text(report.to_pull), "to pull  ")
    to_push = counts_text(report.to_push)
    if report.uncounted:
        to_push = f"at most {to_push}, with excluded tests: {output.safe(report.uncounted)}"
    print_sentence(to_push, "to push  ")
    if report.uncounted:
        output.talk('("evalstore push -n" says what to do)')
    tell_of_excluded(report.excluded_runs)
    if report.last_excluded_tags and any(report.to_push.values()):
        tell_of_last_excluded(report.last_excluded_tags)
    if report.pushes:
        output.line()
        print_pushes(list(reversed(report.pushes[-_PUSHES:])))
        if len(report.pushes) > _PUSHES:
            output.line(f"and {len(report.pushes) - _PUSHES:,} older pushes")


# --- prints what a clean-up of a remote has done


def print_collected(report: GarbageReport) -> None:
    """Print what was compacted and deleted, and what is deleted later."""
    collected, is_planned = report.collected, report.dry_run
    place = f"{report.remote} ({output.safe(report.address)})"
    if collected.replaced.indexes:
        verb = "would compact" if is_planned else "compacted"
        pushes = output.plural(collected.replaced.indexes, "push")
        size = bytes_text(collected.replaced.size)
        text = f"{verb} {pushes} with {_packs(collected.replaced)} in {place}: {size}"
        if collected.written.indexes:
            size = bytes_text(collected.written.size) if collected.written.size else "there already"
            text += f" -> {_packs(collected.written)}, {size}"
        print_sentence(text)
    if collected.deleted:
        verb = "would delete" if is_planned else "deleted"
        print_sentence(f"{verb} {_counts(collected.deleted)} in {place}")
    if not collected.replaced and not collected.deleted:
        print_sentence(f"nothing to compact or delete in {place}")
    if collected.waiting:
        is_one = collected.waiting.indexes + collected.waiting.packs == 1
        verb, them, were = ("is", "it", "it was") if is_one else ("are", "them", "they were")
        print_sentence(
            f"{_counts(collected.waiting)} {verb} no longer needed; 'evalstore remote gc' deletes "
            f"{them} {report.grace} after {were} marked"
        )
    if collected.others:
        pushes = output.plural(collected.others, "push")
        output.talk(f"{pushes} can be compacted only by those who have signed them")


def _packs(counts: FileCounts) -> str:
    return output.plural(counts.packs, "pack")


def _counts(counts: FileCounts) -> str:
    words = [(counts.indexes, "index file"), (counts.packs, "pack")]
    files = " and ".join(output.plural(count, word) for count, word in words if count)
    return f"{files} ({bytes_text(counts.size)})"
