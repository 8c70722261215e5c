"""`status`, `run`, `judge`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from evalstore.cli import options, output
from evalstore.cli.app import Globals, app, here
from evalstore.cli.render.run import print_report, print_status
from evalstore.errors import OK, USAGE, EvalstoreError
from evalstore.planning.options import FailOn, RunOptions, SelectionOptions

if TYPE_CHECKING:
    from evalstore.operations.run_report import RunReport

Watch = Annotated[
    bool,
    typer.Option("-w", "--watch", help="Run again whenever files are saved, until Ctrl-C."),
]
DryRun = Annotated[
    bool, typer.Option("-n", "--dry-run", help="List what would be done; do nothing.")
]
Explain = Annotated[bool, typer.Option("--explain", help="With -n: the reason for each call.")]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--concurrency",
        metavar="N",
        min=1,
        max=1024,
        help="Concurrent calls for each account.",
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        min=0.001,
        help="Timeout of one call in seconds, retries included.",
    ),
]
Retries = Annotated[
    int | None,
    typer.Option(
        "--retries",
        metavar="N",
        min=0,
        max=100,
        help="Retries after a transient failure.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold", metavar="RATE", min=0, max=1, help="Pass if this share of the cases passes."
    ),
]
Fail = Annotated[FailOn, typer.Option("--fail-on", help="What makes the exit code 1.")]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost", metavar="USD", min=0, help="Stop before the run costs more (exit code 4)."
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time", metavar="S", min=0, help="Stop after this many seconds (exit code 4)."
    ),
]
ExitFirst = Annotated[
    bool, typer.Option("-x", "--exitfirst", help="Stop at the first new failure.")
]
Yes = Annotated[bool, typer.Option("-y", "--yes", help="Skip the confirmation of the cost.")]
Message = Annotated[
    str | None, typer.Option("--message", metavar="TEXT", help="A note to store with the run.")
]


def make_run_options(
    concurrency: Concurrency = None,
    timeout: Timeout = None,
    retries: Retries = None,
    threshold: Threshold = None,
    fail_on: Fail = "failure",
    max_cost: MaxCost = None,
    max_time: MaxTime = None,
    yes: Yes = False,
    exit_first: ExitFirst = False,
    message: Message = None,
) -> RunOptions:
    """The options of `run` and `judge` that limit calls, cost and time, and set the gate."""
    return RunOptions(
        concurrency=concurrency,
        timeout=timeout,
        retries=retries,
        threshold=threshold,
        fail_on=fail_on,
        max_cost=max_cost,
        max_time=max_time,
        yes=yes,
        exit_first=exit_first,
        # Bytes that are not UTF-8 are kept as escapes.
        message=message and message.encode(errors="backslashreplace").decode(),
    )


@app.command()
@options.grouped(selection=options.make_selection)
def status(
    selection: SelectionOptions,
    explain: Annotated[
        bool, typer.Option("--explain", help="Give the reason for each call.")
    ] = False,
    short: Annotated[
        bool, typer.Option("--short", help="Print git's two letters for each changed file.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Show what changed, and what a run would do and cost.

    The letters before a file: A new, D deleted, R renamed; M changed: in the first column what is
    asked (or a row was removed), in the second how it is judged; = reverted to a stored version.
    """
    from evalstore.operations.status import status as operation

    found = operation(here(), selection, whole=json or explain)
    if json:
        output.document(found)
    elif short:
        for change in found.changes:
            output.line(f"{change.code} {output.safe(change.file)}")
    else:
        print_status(found, explain=explain)
    if found.left_out:
        raise typer.Exit(USAGE)


@app.command()
@options.grouped(selection=options.make_selection, run_options=make_run_options)
def run(
    selection: SelectionOptions,
    run_options: RunOptions,
    watch: Watch = False,
    dry_run: DryRun = False,
    explain: Explain = False,
    json: options.Json = False,
) -> None:
    """Ask and judge what is new, and print the results.

    Exit code 1: the gate failed; 3: something is missing or undecided, and running again may help.
    """
    _carry_out(selection, run_options, watch=watch, dry_run=dry_run, json=json)


@app.command()
@options.grouped(selection=options.make_selection, run_options=make_run_options)
def judge(
    selection: SelectionOptions,
    run_options: RunOptions,
    watch: Watch = False,
    dry_run: DryRun = False,
    explain: Explain = False,
    json: options.Json = False,
) -> None:
    """Judge stored answers without a verdict; ask nothing."""
    _carry_out(
        selection, replace(run_options, judge_only=True), watch=watch, dry_run=dry_run, json=json
    )


def _carry_out(
    selection: SelectionOptions, run_options: RunOptions, *, watch: bool, dry_run: bool, json: bool
) -> None:
    if watch and dry_run:
        raise EvalstoreError(
            "'--watch' cannot be combined with '--dry-run'",
            hint="'evalstore status' lists what a run would do",
        )
    if watch:
        from evalstore.cli.watch_loop import keep_watching

        exit_code = keep_watching(
            selection, run_options, partial(_show, run_options=run_options, json=json)
        )
    elif dry_run:
        from evalstore.operations.run import plan_run

        found = plan_run(here(), selection, judge_only=run_options.judge_only)
        if json:
            output.document(found)
        else:
            print_status(found, explain=True, dry_run=True)
        exit_code = USAGE if found.left_out else OK
    else:
        from evalstore.cli.progress import TerminalProgress
        from evalstore.operations.run import run as operation

        report = operation(here(), selection, run_options, TerminalProgress(Globals.progress))
        _show(report, run_options, json=json)
        exit_code = report.exit_code
    if exit_code:
        raise typer.Exit(exit_code)


def _show(report: RunReport, run_options: RunOptions, *, json: bool) -> None:
    if json:
        output.document(report)
    else:
        print_report(report, run_options.threshold)
