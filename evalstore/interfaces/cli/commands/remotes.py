"""`push`, `pull`, `clone`, `remote`, `import`."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from evalstore.core.display import bytes_text
from evalstore.core.errors import NO, OK, EvalstoreError, UnsuitedError
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.options import app, argument, here, option
from evalstore.interfaces.cli.render.layout import CommandOutput, Lists, Table, print_table
from evalstore.workspace.settings.remote_names import BUNDLE, STORE

if TYPE_CHECKING:
    from evalstore.exchange.import_tests import ImportReport
    from evalstore.exchange.importers.base import SkippedItem
    from evalstore.exchange.imports.records import ImportSummary
    from evalstore.exchange.sync.pull import PullReport
    from evalstore.exchange.sync.push import PushReport, RemotePush, RemoteReport
    from evalstore.exchange.sync.remotes import GarbageReport, Remote
    from evalstore.interfaces.cli.progress import CopyProgress
    from evalstore.remotes.collect_garbage import FileCounts

RemoteName = Annotated[
    str | None,
    argument(
        "REMOTE",
        "The name of a remote (default: origin, or the only one), or a file.",
        options.remotes,
    ),
]


@app.command()
def push(
    remote: RemoteName = None,
    since: Annotated[
        str | None,
        option(
            "--since REV",
            "Only runs after this one, with all they refer to.",
            options.runs,
        ),
    ] = None,
    exclude_tag: Annotated[
        list[str] | None,
        option("--exclude-tag T", "Exclude cases with this tag (repeatable).", options.tags),
    ] = None,
    dry_run: Annotated[bool, option("-n, --dry-run", "Only say what would be pushed.")] = False,
    with_failures: Annotated[
        bool, option("--with-failures", "Also push failed calls, with their messages.")
    ] = False,
    allow_keys: Annotated[
        bool, option("--allow-keys", "Also push what seems to contain a key.")
    ] = False,
) -> CommandOutput:
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

    def show() -> None:
        print_sentence(push_line(report))
        if presumes := getattr(report, "presumes", ()):  # of a bundle
            runs = output.plural(len(presumes), "earlier run")
            print_sentence(f"it needs {runs} in the store that pulls it")
        tell_of_excluded(report.excluded_runs)

    return CommandOutput(report, show)


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
            options.runs,
        ),
    ] = None,
) -> CommandOutput:
    """Copy new results from a remote or a file.

    The id of every row is computed again before it is stored. The next pull completes an
    interrupted one. A file is a bundle or another store, which is never changed.

    With --for-plan, only the newest run is copied, with the results of the cases that a run would
    ask for: enough for CI, which begins with an empty store. Older runs are added until each case
    has passed in one, at most 100.

    Exit code 6: the remote or the file is damaged, or it or the store cannot be used.
    """
    options.need("--baseline", "--for-plan", baseline is not None and not for_plan)
    missing = "'evalstore status' says what is missing here"
    options.exclude("--for-plan", "--dry-run", for_plan and dry_run, missing)
    with show_progress("pulling") as listener:
        if for_plan:
            from evalstore.exchange.sync.pull import pull_for_plan

            report = pull_for_plan(here(), remote, baseline=baseline, listener=listener)
        else:
            from evalstore.exchange.sync.pull import pull as operation

            report = operation(here(), remote, dry_run=dry_run, listener=listener)

    def show() -> None:
        print_sentence(pull_line(report))
        warn_of_left_out(report)

    return CommandOutput(report, show)


@app.command()
def clone(
    address: Annotated[str, argument("ADDRESS", "The remote, or the file of a bundle.")],
    directory: Annotated[
        Path | None, argument("DIR", "The folder to make (default: the last name of the address).")
    ] = None,
) -> CommandOutput:
    """Make a workspace with results of a remote or bundle.

    The workspace is for reading them and has no tests: these come from your repository, whose
    workspace gets the same results with 'evalstore pull'.

    Exit code 6: the remote or the bundle is damaged or cannot be used.
    """
    from evalstore.exchange.sync.pull import clone as operation

    with show_progress("pulling") as listener:
        report = operation(here(), address, directory, listener=listener)

    def show() -> None:
        pulled = report.pulled
        source, name = output.safe(pulled.address), output.safe(report.workspace)
        size = bytes_text(pulled.bytes_received)
        print_sentence(f"cloned {counts_text(pulled.records)} from {source} into {name}: {size}")
        place = "bundle" if pulled.remote == BUNDLE else "remote"
        output.talk(f"the tests are not in a {place}: they come from your repository, with git")
        warn_of_rows_left(pulled)

    return CommandOutput(report, show)


def show_progress(verb: str, noun: str = "rows") -> CopyProgress:
    """Return the progress of a command that copies, checks or indexes rows."""
    from evalstore.interfaces.cli.progress import CopyProgress

    return CopyProgress(verb, noun)


# --- `remote`


_PUSHES = 10
"""The newest pushes that `remote show` lists."""


_ACTIONS = {"list": "", "add": "NAME ADDRESS", "remove": "NAME", "show": "[NAME]", "gc": "[NAME]"}
"""The actions of `remote` with their arguments; only `gc` has options."""


@options.completes
def _words(ctx: Any, _incomplete: str) -> Iterable[str]:
    """Complete the actions of `remote`, and after one the name of a remote."""
    return options.remotes(ctx, "") if ctx.params.get("words") else _ACTIONS


@app.command()
def remote(
    words: Annotated[
        list[str] | None,
        argument(
            "[ACTION] [NAME] [ADDRESS]",
            "list (the default), add NAME ADDRESS, remove NAME, show [NAME], or gc [NAME].",
            _words,
        ),
    ] = None,
    dry_run: Annotated[
        bool, option("-n, --dry-run", "With gc: only say what would be done.")
    ] = False,
    grace: Annotated[
        str | None,
        option(
            "--grace AGE",
            "With gc: delete what has not been needed for this long (default: 14d; at least 1d).",
        ),
    ] = None,
) -> Lists:
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
    if action == "show":
        from evalstore.exchange.sync.push import show_remote

        report = show_remote(here(), name)
        return Lists(report, partial(_print_report, report), names=["pushes"], kind="remote show")
    if action == "list":
        listed = remotes.list_remotes(here())
        return Lists({"remotes": listed}, partial(_print_remotes, listed), names=["remotes"])
    if output.format in ("jsonl", "csv", "md"):
        raise EvalstoreError(
            f"'remote {action}' has no list to print as {output.format}",
            hint="'-o json' prints its result",
        )
    if action == "gc":
        with show_progress("compacting") as listener:
            collected = remotes.collect_remote_garbage(
                here(), name, grace=grace, dry_run=dry_run, listener=listener
            )
        return Lists(collected, partial(print_collected, collected))
    change = remotes.add_remote if action == "add" else remotes.remove_remote
    changed = change(here(), *arguments)
    verb = "added" if action == "add" else "removed"
    text = f"{verb} the remote {changed.name}: {output.safe(changed.address)}"
    return Lists(changed, partial(output.line, text))


def _read_action(words: Sequence[str], given: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the action and its arguments; raises `EvalstoreError`, also for a wrong option."""
    from evalstore.files.fields import suggest

    name, arguments = words[0], words[1:]
    if name not in _ACTIONS:
        raise EvalstoreError(
            f"'remote' has no action '{name}'", hint=suggest(name, _ACTIONS, "actions")
        )
    usage = _ACTIONS[name]
    least = sum(not word.startswith("[") for word in usage.split())
    if not least <= len(arguments) <= len(usage.split()):
        raise EvalstoreError(
            f"'remote {name}' takes {usage or 'no arguments'}",
            hint=f"evalstore remote {name} {usage}".rstrip(),
        )
    if given and name != "gc":
        raise UnsuitedError(
            f"'remote {name}' has no option '{given[0]}'", hint="'evalstore remote gc' has it"
        )
    return name, arguments


def _print_remotes(listed: Sequence[Remote]) -> None:
    if listed:
        print_table(Table(("remote", "address"), [(it.name, it.address) for it in listed]))
    else:
        output.talk("no remote is set; 'evalstore remote add origin ADDRESS' sets one")


def _print_report(report: RemoteReport) -> None:
    print_sentence(f"remote   {report.name}: {output.safe(report.address)}")
    print_sentence(f"has      {counts_text(report.records)}, {bytes_text(report.size)}")
    print_sentence(f"to pull  {counts_text(report.to_pull)}")
    to_push = counts_text(report.to_push)
    if report.uncounted:
        to_push = f"at most {to_push}, with excluded tests: {output.safe(report.uncounted)}"
    print_sentence(f"to push  {to_push}")
    if report.uncounted:
        output.talk('("evalstore push -n" says what to do)')
    tell_of_excluded(report.excluded_runs)
    if report.last_excluded_tags and any(report.to_push.values()):
        excluded = " ".join(f"--exclude-tag {shlex.quote(it)}" for it in report.last_excluded_tags)
        output.talk(
            output.safe(
                f'the last push used {excluded}; without it, "evalstore push" copies what that '
                'push left out (set "excludeTags" of the remote in evalstore.yaml to leave it out '
                "always)"
            )
        )
    if report.pushes:
        output.line()
        print_pushes(list(reversed(report.pushes[-_PUSHES:])))
        if len(report.pushes) > _PUSHES:
            output.line(f"and {len(report.pushes) - _PUSHES:,} older pushes")


# --- prints what a clean-up of a remote has done


def print_collected(report: GarbageReport) -> None:
    """Print what was compacted and deleted, and what is deleted later."""
    collected = report.collected
    compacted, deleted = "compacted", "deleted"
    if report.dry_run:
        compacted, deleted = "would compact", "would delete"
    place = f"{report.remote} ({output.safe(report.address)})"
    if collected.replaced.indexes:
        was, now = collected.replaced, collected.written
        pushes, packs = output.plural(was.indexes, "push"), output.plural(was.packs, "pack")
        text = f"{compacted} {pushes} with {packs} in {place}: {bytes_text(was.size)}"
        if now.indexes:
            text += f" -> {output.plural(now.packs, 'pack')}, {bytes_text(now.size)}"
        print_sentence(text)
    if collected.deleted:
        print_sentence(f"{deleted} {_counts(collected.deleted)} in {place}")
    if not collected.replaced and not collected.deleted:
        print_sentence(f"nothing to compact or delete in {place}")
    if collected.waiting:
        print_sentence(
            f"no longer needed: {_counts(collected.waiting)}; 'evalstore remote gc' deletes each "
            f"{report.grace} after it was replaced"
        )
    if collected.others:
        pushes = output.plural(collected.others, "push")
        output.talk(f"{pushes} can be compacted only by those who have signed them")


def _counts(counts: FileCounts) -> str:
    words = [(counts.indexes, "index file"), (counts.packs, "pack")]
    files = " and ".join(output.plural(count, word) for count, word in words if count)
    return f"{files} ({bytes_text(counts.size)})"


# --- prints what was copied to or from a remote


_WRITERS = 5
"""The writers that are named of whom pushes are left out."""
_WORDS = {
    "runs": "run",
    "answers": "answer",
    "judgements": "verdict",
    "versions": "other version",
}


def counts_text(records: Mapping[str, int]) -> str:
    """Return the numbers of runs, answers, judgements and versions in words."""
    counts = [output.plural(count, _WORDS[name]) for name, count in records.items() if count]
    return ", ".join(counts) or "nothing"


def push_line(report: PushReport) -> str:
    """Return what was pushed in a line."""
    return _copied_line("push", "to", report, report.bytes_sent)


def pull_line(report: PullReport) -> str:
    """Return what was pulled in a line."""
    return _copied_line("pull", "from", report, report.bytes_received)


def _copied_line(verb: str, word: str, report: PushReport | PullReport, size: int) -> str:
    place = f"{word} {output.safe(f'{report.remote} ({report.address})')}"
    if not any(report.records.values()):
        return f"nothing to {verb} {place}"
    counts = counts_text(report.records)
    if report.dry_run:
        return f"would {verb} {counts} {place}"
    return f"{verb}ed {counts} {place}: {bytes_text(size)}"


def tell_of_excluded(runs: int) -> None:
    """Say how many runs were not copied because of their tags."""
    if runs:
        stay, they = ("stays", "it") if runs == 1 else ("stay", "they")
        output.talk(f"{output.plural(runs, 'run')} {stay} here: {they} may show excluded tests")


def print_sentence(text: str) -> None:
    """Print a text, wrapped in a terminal, in which long addresses are broken, too."""
    columns = output.table_width()
    for line in output.wrap(text, columns) if columns else (text,):
        output.line(line)


def warn_of_left_out(report: PullReport) -> None:
    """Warn of rows that this program does not know, and of pushes that do not count."""
    from evalstore.remotes.acceptance import REASONS

    warn_of_rows_left(report)
    for left_out in report.left_out[:_WRITERS]:
        pushes = output.plural(left_out.pushes, "push")
        writer = left_out.writer or "an unknown writer"
        is_one = left_out.pushes == 1
        verb, then = ("is", "was") if is_one else ("are", "were")
        output.warn(f"{pushes} of {writer} {verb} {REASONS[left_out.reason]} and {then} left out")
    more = len(report.left_out) - _WRITERS
    if more > 0:
        output.warn(f"so were those of {output.plural(more, 'other writer')}")


def warn_of_rows_left(report: PullReport) -> None:
    """Warn of rows that were not copied."""
    if report.newer:
        rows = output.plural(report.newer, "row")
        output.warn(f"{rows} of a newer version of evalstore were not copied")
    _warn_of_waiting(report)
    if report.missing_packs:
        packs, rows = report.missing_packs, output.plural(report.missing_rows, "row")
        output.warn(
            f"the remote still lacks {output.plural(packs, 'pack')} with {rows}; pull again later, "
            "or see 'evalstore fsck --remote'"
        )


def print_pushes(pushes: Sequence[RemotePush]) -> None:
    """Print the pushes of a remote, and why some are left out."""
    from evalstore.remotes.acceptance import REASONS

    header = ["pushed", "by", "rows"]
    rows = [[push.created, push.writer, f"{push.records:,}"] for push in pushes]
    if any(push.left_out for push in pushes):
        header.append("left out")
        for row, push in zip(rows, pushes, strict=True):
            row.append(REASONS[push.left_out] if push.left_out else "")
    print_table(Table(header, rows, numbers=frozenset({"rows"})))


def _warn_of_waiting(report: PullReport) -> None:
    """Warn of rows that were not copied, because they refer to rows that are not there."""
    runs, rows = report.waiting, report.waiting_rows
    counts = {"run": runs, "other row" if runs else "row": rows}
    stayed = [output.plural(count, word) for word, count in counts.items() if count]
    if not stayed:
        return
    place, then = "remote", "pull again when they have been pushed"
    if report.remote == BUNDLE:
        place, then = "bundle", "make it again"
    elif report.remote == STORE:
        address = shlex.quote(report.address)
        place, then = "other store", f"'evalstore fsck --store {address}' lists what is missing"
    output.warn(
        f"{' and '.join(stayed)} stayed in the {place}, which lacks rows that "
        f"{'it refers' if runs + rows == 1 else 'they refer'} to; {then}"
    )


@app.command("import")
def import_(
    format: Annotated[
        str,
        argument(
            "FORMAT",
            "ai-tester-db, evalsone, inspect, langbite, lve, nemo, openai-evals, otel, "
            "promptfoo, or a plug-in's name.",
            options.import_formats,
        ),
    ],
    paths: Annotated[
        list[Path] | None, argument("PATH", "Files or folders.", show_default=False)
    ] = None,
    into: Annotated[
        str | None,
        option(
            "--into FOLDER",
            "Folder to write to, inside the tests folder; default: the source's name.",
        ),
    ] = None,
    sessions: Annotated[
        bool, option("--sessions", "Also import recorded answers and verdicts (lve).")
    ] = False,
    force: Annotated[bool, option("--force", "Also overwrite edited files.")] = False,
    dry_run: Annotated[
        bool, option("-n, --dry-run", "List what would be written; write nothing.")
    ] = False,
) -> CommandOutput:
    """Import another system's tests or recorded answers.

    Writes test files and lists what could not be imported; runs none of the system's code.
    Recorded answers are judged as they are.
    """
    from evalstore.exchange.import_tests import import_files

    done = import_files(
        here(),
        format,
        [here().directory / path for path in paths or ()],
        into=into,
        sessions=sessions,
        force=force,
        dry_run=dry_run,
    )
    return CommandOutput(done, partial(_print, done, dry_run=dry_run), OK if done.complete else NO)


_SHOWN = 20
"""Paths that are listed without `-v`."""
_EDITED = "it was edited, or no import wrote it; remove it or use --force"


def _print(done: ImportReport, *, dry_run: bool) -> None:
    groups = {
        "would write" if dry_run else "written": done.written,
        "unchanged": done.unchanged,
        "kept": done.kept,
    }
    rows = []
    for word, names in groups.items():
        tests = sum(name.endswith(".md") for name in names)
        if names or word != "kept":
            rows.append([word, str(tests), str(len(names) - tests)])
    if any(groups.values()) or not done.history:
        header = ("", "test files", "other files")
        print_table(Table(header, rows, frozenset(header[1:])))
        output.line(f"{output.plural(done.rows, 'row')} in all")
        _print_paths(done.written, "would write" if dry_run else "wrote")
    if done.history:
        _print_history(done.history, dry_run=dry_run)
    for name in done.kept:
        output.line(f"kept {output.safe(name)}: {_EDITED}")
    _print_paths(done.gone, "from an earlier import, not in this source:")
    _list("not imported:", done.left)
    _list("imported with a difference:", done.warnings)
    if done.settings:
        from evalstore.files.yaml12 import write_yaml

        output.line("add to evalstore.yaml:")
        for line in write_yaml(done.settings, compact=True).splitlines():
            output.line(f"  {output.safe(line)}")
    if done.present:
        known = " and ".join(f"'{name}'" for name in done.present)
        output.talk(f"(evalstore.yaml has {known} already: replace what is there)")
    output.talk("Next: 'evalstore check' reads what was written, 'evalstore run' asks and judges.")


def _print_paths(names: Sequence[str], verb: str) -> None:
    """Print the paths of the written files; `-v` prints all of many."""
    shown = names if output.verbose else names[:_SHOWN]
    for name in shown:
        output.line(f"{verb} {output.safe(name)}")
    if len(names) > len(shown):
        output.line(f"… {len(names) - len(shown):,} more (-v lists all)")


def _print_history(history: ImportSummary, *, dry_run: bool) -> None:
    if dry_run:
        output.line(f"{output.plural(history.sessions, 'recorded answer')} to import")
        return
    output.line(
        f"{output.plural(history.sessions, 'recorded answer')}, "
        f"{output.plural(history.verdicts, 'verdict')} in the store, {history.new:,} of them new"
    )
    if history.displaced:
        displaced = output.plural(history.displaced, "stored answer")
        output.line(f"{displaced} no longer counted: an older, imported one is used instead")
    for run in history.older_runs:
        output.line(
            f"run {output.short(run)} has earlier versions of tests: "
            f"{output.plural(history.older, 'answer')} in all"
        )
    if history.run:
        run = output.short(history.run)
        output.sentence(f"run {run} has the recorded verdicts: 'evalstore diff {run} @' compares")


def _list(title: str, listed: tuple[SkippedItem, ...]) -> None:
    if listed:
        output.line(title)
    for item in listed:
        place = ":".join(
            str(part) for part in (item.file, item.line, item.column) if part is not None
        )
        output.line(f"  {output.safe(place)}: {output.safe(item.reason)}")
