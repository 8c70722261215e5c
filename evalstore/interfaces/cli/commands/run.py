"""`status`, `run`, `label`."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import typer

from evalstore.core.display import case_name
from evalstore.core.errors import OK, USAGE, EvalstoreError
from evalstore.files.json_output import fields_to_json
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.commands.remotes import (
    pull_line,
    push_line,
    show_progress,
    tell_of_excluded,
    warn_of_left_out,
)
from evalstore.interfaces.cli.options import (
    SELECTION,
    Globals,
    OptionGroup,
    app,
    argument,
    exclude,
    here,
    in_section,
    option,
)
from evalstore.interfaces.cli.render.layout import CommandOutput, Lists
from evalstore.planning.options import Location, RunOptions, SelectionOptions, selection_text

if TYPE_CHECKING:
    from evalstore.results.labels import LabelReport
    from evalstore.runs.run_report import RunReport
    from evalstore.runs.run_text import Extent


def _keep_bytes(text: str | None) -> str | None:
    """Escape the bytes of a text that are not UTF-8."""
    return text and text.encode(errors="backslashreplace").decode()


RUN: options.Table = {
    **in_section(
        options.LIMITS,
        concurrency=option("-j, --concurrency N", "Concurrent calls for each account."),
        timeout=option("--timeout S", "Timeout of one call in seconds, retries included."),
        retries=option("--retries N", "Retries after a transient failure."),
        max_cost=option("--max-cost USD", "Stop before the run costs more (exit code 4)."),
        max_time=option("--max-time S", "Stop after this many seconds (exit code 4)."),
    ),
    **in_section(
        options.GATE,
        threshold=option("--threshold RATE", "Pass if this share of the results passes."),
        fail_on=option("--fail-on", "What makes the exit code 1."),
        baseline=option(
            "--baseline REV",
            "With --fail-on regression: accept what failed in this run (or, if not judged, "
            "before).",
            options.stored_runs,
        ),
    ),
    **in_section(
        options.EXECUTION,
        judge_only=option(
            "--judge-only",
            "Judge stored answers without a verdict; ask nothing. --refresh and --max-age "
            "then apply to verdicts.",
        ),
        yes=option("-y, --yes", "Skip the confirmation of the cost."),
        exit_first=option("-x, --exitfirst", "Stop at the first failing verdict of this run."),
        executor=option(
            "--executor",
            "Start further runners of this run: as processes on this machine, or as tasks of dask.",
        ),
        workers=option("--workers N", "How many runners --executor starts."),
        scheduler=option(
            "--scheduler ADDRESS", "With --executor dask: the address of its scheduler, or 'local'."
        ),
    ),
    **in_section(
        options.OUTPUT,
        message=option("--message TEXT", "A note to store with the run.", callback=_keep_bytes),
    ),
}
"""The options of `run` that limit calls, cost and time, and set the gate."""


class Mode(NamedTuple):
    """How a run is carried out, and how it is shown."""

    watch: bool = False
    dry_run: bool = False
    explain: bool = False
    """A dry run always explains."""
    every: bool = False
    exports: tuple[str, ...] = ()
    """Files for the results."""
    remote: str | None = None
    """Where answers are looked up before they are asked for, and shared afterwards."""
    json: bool = False
    join: str | None = None
    """The run in progress to take part in."""
    until_eof: bool = False
    """Whether this runner ends with its standard input, and has the keys of its workspace."""

    @property
    def extent(self) -> Extent:
        """Return which results are listed."""
        return "failures" if self.every else "news"


MODE: options.Table = {
    **in_section(
        options.EXECUTION,
        watch=option("-w, --watch", "Run again whenever files are saved, until Ctrl-C."),
        dry_run=option("-n, --dry-run", "List what would be done; do nothing."),
        join=option(
            "--join RUN",
            "Join a run in progress ('@': the newest). Needs keys and --store, but no workspace.",
        ),
        until_eof=option("--until-eof", "With --join: end with the standard input.", hidden=True),
    ),
    **in_section(
        options.OUTPUT,
        explain=option("--explain", "A dry run always explains.", hidden=True),
        every=option("--all", "List all failures, not only what is new."),
        exports=option(
            "-o, --output FILE", "Write the results to FILE, as 'export' does (repeatable)."
        ),
    ),
    **in_section(
        options.REUSE,
        remote=option(
            "--remote NAME",
            "Pull what the plan needs from this remote first, and push the results to it.",
            options.remotes,
        ),
    ),
    "json": options.JSON,
}
"""The options of `run` that choose what is done and shown."""


@app.command()
@options.grouped(selection=options.selection())
def status(
    selection: SelectionOptions,
    explain: Annotated[
        bool, option("--explain", "Give the reason for each call.", section=options.OUTPUT)
    ] = False,
    short: Annotated[
        bool,
        option("--short", "Print git's two letters for each change.", section=options.OUTPUT),
    ] = False,
    remote: Annotated[
        str | None,
        option(
            "--remote NAME",
            "First check which answers this remote has.",
            options.remotes,
            section=options.REUSE,
        ),
    ] = None,
) -> Lists:
    """Show what changed, and what a run would do and cost.

    The letters before a file: A new, D deleted, R renamed, = reverted to a stored version, M
    changed: in the first column what is asked, in the second how it is judged. Edited candidates,
    judges and settings have them, too. With -o, the rows are the changed files, or with --explain
    the calls of a run.
    """
    from evalstore.interfaces.cli.render.status import print_status
    from evalstore.runs.status.status import status as operation

    if remote is not None:
        from evalstore.exchange.sync.remotes import read_remote

        read_remote(here(), remote)
    report = operation(here(), selection, whole=explain or output.format == "json")

    def show() -> None:
        if not short:
            chosen = fields_to_json(selection, defaults=False)
            print_status(report, explain=explain, options=selection_text(chosen))
            return
        for change in report.changes:
            path = f"{change.old_file} -> {change.file}" if change.old_file else change.file
            output.data_line(f"{change.letters} {output.safe(path)}")
        for code, of in dict.fromkeys((edit.code, edit.of) for edit in report.edits):
            output.data_line(f"{code} {output.safe(of)}")

    exit_code = USAGE if report.left_out else OK
    names, kind = (["items"], "status --explain") if explain else (["changes"], "status")
    return Lists(report, show, exit_code, names, kind)


@app.command()
@options.grouped(
    selection=options.selection(),
    run_options=OptionGroup(RunOptions, RUN),
    mode=OptionGroup(Mode, MODE),
)
def run(selection: SelectionOptions, run_options: RunOptions, mode: Mode) -> None:
    """Ask and judge what is new, and print the results.

    Attempts and limits that are not given are those of the settings. Exit code 1: the gate failed;
    3: something is missing or undecided.
    """
    if mode.join is not None:
        _join(mode.join, selection, run_options, mode)
        return
    from evalstore.interfaces.cli.render.status import print_status

    options.need("--until-eof", "--join", mode.until_eof)
    with_reasons = "'evalstore status --explain' lists what a run would do, with the reasons"
    if mode.explain and not mode.dry_run:
        raise EvalstoreError("'--explain' needs '--dry-run'", hint=with_reasons)
    would_do = "'evalstore status' lists what a run would do"
    options.exclude("--watch", "--dry-run", mode.watch and mode.dry_run, would_do)
    options.exclude("--output", "--dry-run", mode.exports and mode.dry_run)
    if mode.exports:
        from evalstore.exchange.export import require_exports

        require_exports(here(), [Path(name) for name in mode.exports])
    if mode.remote is not None:
        afterwards = "'evalstore push' shares the results afterwards"
        options.exclude("--watch", "--remote", mode.watch, afterwards)
        _pull(mode.remote, selection, run_options)
    if mode.watch:
        from evalstore.interfaces.cli.watching import keep_watching

        exit_code = keep_watching(
            selection, run_options, partial(_show, run_options=run_options, mode=mode)
        )
    elif mode.dry_run:
        from evalstore.runs.run import plan_run

        status = plan_run(here(), selection, run_options)
        if mode.json:
            output.document(status)
        else:
            print_status(status, explain=True, dry_run=True)
        exit_code = USAGE if status.left_out else OK
    else:
        from evalstore.interfaces.cli.progress import TerminalProgress
        from evalstore.runs.run import run as operation

        report = operation(here(), selection, run_options, TerminalProgress(Globals.progress))
        _show(report, run_options, mode)
        exit_code = report.exit_code
        if mode.remote is not None:
            exit_code = _push(mode.remote, exit_code)
    if exit_code:
        raise typer.Exit(exit_code)


def _join(name: str, selection: SelectionOptions, options: RunOptions, mode: Mode) -> None:
    """Take part in a run in progress, whose options were chosen where it was begun."""
    from evalstore.interfaces.cli.progress import TerminalProgress
    from evalstore.interfaces.cli.render.run import join_line
    from evalstore.runs.runners import join_run

    own = RunOptions(concurrency=options.concurrency)
    own_mode = Mode(join=name, json=mode.json, until_eof=mode.until_eof)
    for given, suited in ((selection, SelectionOptions()), (options, own), (mode, own_mode)):
        for field, each in {**SELECTION, **RUN, **MODE}.items():
            is_unsuited = getattr(given, field, None) != getattr(suited, field, None)
            *_, word = each.param_decls or [each.default]
            exclude(
                "PATH" if field == "paths" else word,
                "--join",
                is_unsuited,
                "'--concurrency' and '--json' can be",
            )
    location = here()
    if mode.until_eof:
        output.end_with_stdin()
        location = replace(location, keys_folder=location.directory)
    report = join_run(location, name, own, TerminalProgress(Globals.progress))
    if mode.json:
        output.document(report)
    else:
        output.line(join_line(report))
    if report.exit_code:
        raise typer.Exit(report.exit_code)


def _pull(remote: str, selection: SelectionOptions, options: RunOptions) -> None:
    from evalstore.exchange.sync.pull import pull_for_plan

    with show_progress("pulling") as listener:
        report = pull_for_plan(
            here(),
            remote,
            selection,
            baseline=options.baseline,
            with_history=options.fail_on == "regression" and options.threshold is None,
            listener=listener,
        )
    output.talk(pull_line(report))
    warn_of_left_out(report)


def _push(remote: str, exit_code: int) -> int:
    """Push the results of a run that is stored; return the exit code of both."""
    from evalstore.exchange.sync.push import push

    try:
        with show_progress("pushing") as listener:
            report = push(here(), remote, listener=listener)
        output.talk(push_line(report))
        tell_of_excluded(report.excluded_runs)
    except EvalstoreError as error:
        output.failure(error)
        output.talk("the run is stored here; 'evalstore push' shares it")
        return exit_code or error.exit_code
    return exit_code


def _show(report: RunReport, run_options: RunOptions, mode: Mode) -> None:
    from evalstore.interfaces.cli.render.run import print_changes, print_report
    from evalstore.results.log.failures import group_failures

    if mode.json:
        output.document(report)
        if mode.watch:
            print_changes(report, is_data=False)
    else:
        failures = [*group_failures(here(), report.failures)]
        print_report(report, run_options.threshold, failures=failures, extent=mode.extent)
    if mode.exports:
        from evalstore.exchange.export import write_exports

        write_exports(here(), report.run, [Path(name) for name in mode.exports])
    if output.is_github():
        _annotate(here(), report)


def _annotate(location: Location, report: RunReport) -> None:
    """Tell GitHub Actions what a run has found: annotations, and a report in the step's summary.

    A summary that cannot be written is a warning: the run is not affected.
    """
    from evalstore.exchange.markdown_report import annotate, markdown_report
    from evalstore.files.atomic_write import append
    from evalstore.planning.open_project import open_workspace

    for annotation in annotate(report, open_workspace(location)):
        output.workflow_command(annotation.command)
    summary = os.environ.get("GITHUB_STEP_SUMMARY")
    if not summary:
        return
    try:
        append(Path(summary), markdown_report(location, report.run).encode())
    except (EvalstoreError, OSError) as error:
        output.warn(f"the summary of the step is not written: {error}")


# --- `label`


LabelWord = Literal["pass", "fail", "none"]


@app.command()
def label(
    case: Annotated[
        str,
        argument(
            "CASE",
            "PATH::row, PATH, FILE [row] as printed, or an answer's id.",
            options.places,
        ),
    ],
    verdict: Annotated[
        LabelWord | None,
        argument(
            "pass|fail|none",
            "Your verdict; none removes your label, as --remove does.",
            show_default=False,
        ),
    ] = None,
    remove: Annotated[bool, option("--remove", "Remove your label.")] = False,
    note: Annotated[
        str, option("-m, --message NOTE", "A note on the label; the model is --model.")
    ] = "",
    model: Annotated[
        list[str] | None,
        option("--model ID", "The candidate, if several have answered.", options.models),
    ] = None,
    prompt: Annotated[
        str | None,
        option("--prompt NAME", "The system prompt, if the case has several."),
    ] = None,
    every: Annotated[bool, option("--all", "Label every case that CASE names.")] = False,
    person: Annotated[
        str | None, option("--as NAME", "Your name (default: git's user.name).")
    ] = None,
) -> CommandOutput:
    """Label an answer pass or fail, overruling the judges.

    A label also overrules checks. It applies to this answer only: it no longer counts once the case
    has another answer, or its instructions or checks are edited. A new label by the same person
    replaces the old one. With --remove the other verdicts count again; the store keeps the label.
    """
    from evalstore.results.labels import label as operation

    options.exclude("--remove", verdict or "", remove and verdict in ("pass", "fail"))
    if verdict is None and not remove:
        raise EvalstoreError(
            "the verdict is missing",
            hint="write 'pass' or 'fail', or '--remove' to remove your label",
        )
    labels = operation(
        here(),
        case,
        "none" if remove or verdict is None else verdict,
        note=note,
        person=person,
        models=tuple(model or ()),
        prompt=prompt,
        every=every,
    )

    def show() -> None:
        for line in dict.fromkeys(map(_line, labels)):
            output.line(line)
        if any(report.now == "pending" for report in labels):
            output.talk('("evalstore run" judges it)')
        elif any(each.now not in (None, each.subject.verdict) for each in labels):
            output.talk('("evalstore run" records the verdict in the history)')

    return CommandOutput({"labels": labels}, show)


def _line(report: LabelReport) -> str:
    """Return what the labels of all attempts at a case have in common."""
    subject = report.subject
    place = case_name(subject.file, subject.row, report.prompt)
    is_known = subject.verdict in (None, report.verdict) or subject.verdict == report.now
    was = "" if is_known else f"was {subject.verdict}"
    now = f"now {report.now}" if report.now not in (None, report.verdict) else ""
    change = ", ".join(part for part in (was, now) if part)
    word = "label removed" if report.verdict == "none" else output.paint(report.verdict)
    return (
        f"{word}  {output.safe(place)}  {output.safe(subject.model)}  "
        f"by {output.safe(report.person)}{f' ({change})' if change else ''}"
    )
