"""`status`, `run`, `judge`."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from evalstore.cli import help, options, output
from evalstore.cli.app import Globals, app, here
from evalstore.errors import OK, USAGE, EvalstoreError
from evalstore.planning.options import FailOn, RunOptions, SelectionOptions

if TYPE_CHECKING:
    from evalstore.operations.run_report import RunReport
    from evalstore.operations.views.run_results import Extent

Watch = Annotated[
    bool,
    typer.Option(
        "-w",
        "--watch",
        help="Run again whenever files are saved, until Ctrl-C.",
        rich_help_panel=help.EXECUTION,
    ),
]
DryRun = Annotated[
    bool,
    typer.Option(
        "-n",
        "--dry-run",
        help="List what would be done; do nothing.",
        rich_help_panel=help.EXECUTION,
    ),
]
Explain = Annotated[
    bool,
    typer.Option(
        "--explain", help="With -n: the reason for each call.", rich_help_panel=help.OUTPUT
    ),
]
AllFailures = Annotated[
    bool,
    typer.Option(
        "--all",
        help="List all failures, not only what is new.",
        rich_help_panel=help.OUTPUT,
    ),
]
Concurrency = Annotated[
    int | None,
    typer.Option(
        "-j",
        "--concurrency",
        metavar="N",
        min=1,
        max=1024,
        help="Concurrent calls for each account.",
        rich_help_panel=help.LIMITS,
    ),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        "--timeout",
        metavar="S",
        min=0.001,
        help="Timeout of one call in seconds, retries included.",
        rich_help_panel=help.LIMITS,
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
        rich_help_panel=help.LIMITS,
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold",
        metavar="RATE",
        min=0,
        max=1,
        help="Pass if this share of the cases passes.",
        rich_help_panel=help.GATE,
    ),
]
Fail = Annotated[
    FailOn, typer.Option("--fail-on", help="What makes the exit code 1.", rich_help_panel=help.GATE)
]
MaxCost = Annotated[
    float | None,
    typer.Option(
        "--max-cost",
        metavar="USD",
        min=0,
        help="Stop before the run costs more (exit code 4).",
        rich_help_panel=help.LIMITS,
    ),
]
MaxTime = Annotated[
    float | None,
    typer.Option(
        "--max-time",
        metavar="S",
        min=0,
        help="Stop after this many seconds (exit code 4).",
        rich_help_panel=help.LIMITS,
    ),
]
ExitFirst = Annotated[
    bool,
    typer.Option(
        "-x", "--exitfirst", help="Stop at the first new failure.", rich_help_panel=help.EXECUTION
    ),
]
Yes = Annotated[
    bool,
    typer.Option(
        "-y", "--yes", help="Skip the confirmation of the cost.", rich_help_panel=help.EXECUTION
    ),
]
Message = Annotated[
    str | None,
    typer.Option(
        "--message",
        metavar="TEXT",
        help="A note to store with the run.",
        rich_help_panel=help.OUTPUT,
    ),
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
        bool,
        typer.Option(
            "--explain", help="Give the reason for each call.", rich_help_panel=help.OUTPUT
        ),
    ] = False,
    short: Annotated[
        bool,
        typer.Option(
            "--short",
            help="Print git's two letters for each changed file.",
            rich_help_panel=help.OUTPUT,
        ),
    ] = False,
    json: options.Json = False,
) -> None:
    """Show what changed, and what a run would do and cost.

    The letters before a file: A new, D deleted, R renamed; M changed: in the first column what is
    asked (or a row was removed), in the second how it is judged; = reverted to a stored version.
    """
    from evalstore.cli.render.run import print_status
    from evalstore.operations.status import status as operation

    report = operation(here(), selection, whole=json or explain)
    if json:
        output.document(report)
    elif short:
        for change in report.changes:
            output.line(f"{change.code} {output.safe(change.file)}")
    else:
        print_status(report, explain=explain)
    if report.left_out:
        raise typer.Exit(USAGE)


class Mode(NamedTuple):
    """How a run is carried out, and how it is shown."""

    watch: bool
    dry_run: bool
    json: bool
    extent: Extent
    """Which results are listed."""


def make_mode(
    watch: Watch = False,
    dry_run: DryRun = False,
    explain: Explain = False,
    every: AllFailures = False,
    json: options.Json = False,
) -> Mode:
    """The options of `run` and `judge` that choose what is done; a dry run always explains."""
    return Mode(watch, dry_run, json, "failures" if every else "news")


_with_run_options = options.grouped(
    selection=options.make_selection, run_options=make_run_options, mode=make_mode
)


@app.command()
@_with_run_options
def run(selection: SelectionOptions, run_options: RunOptions, mode: Mode) -> None:
    """Ask and judge what is new, and print the results.

    Exit code 1: the gate failed; 3: something is missing or undecided, and running again may help.
    """
    _carry_out(selection, run_options, mode)


@app.command()
@_with_run_options
def judge(selection: SelectionOptions, run_options: RunOptions, mode: Mode) -> None:
    """Judge stored answers without a verdict; ask nothing."""
    _carry_out(selection, replace(run_options, judge_only=True), mode)


def _carry_out(selection: SelectionOptions, run_options: RunOptions, mode: Mode) -> None:
    from evalstore.cli.render.run import print_status

    if mode.watch and mode.dry_run:
        raise EvalstoreError(
            "'--watch' cannot be combined with '--dry-run'",
            hint="'evalstore status' lists what a run would do",
        )
    if mode.watch:
        from evalstore.cli.watch_loop import keep_watching

        exit_code = keep_watching(
            selection, run_options, partial(_show, run_options=run_options, mode=mode)
        )
    elif mode.dry_run:
        from evalstore.operations.run import plan_run

        status = plan_run(here(), selection, judge_only=run_options.judge_only)
        if mode.json:
            output.document(status)
        else:
            print_status(status, explain=True, dry_run=True)
        exit_code = USAGE if status.left_out else OK
    else:
        from evalstore.cli.progress import TerminalProgress
        from evalstore.operations.run import run as operation

        report = operation(here(), selection, run_options, TerminalProgress(Globals.progress))
        _show(report, run_options, mode)
        exit_code = report.exit_code
    if exit_code:
        raise typer.Exit(exit_code)


def _show(report: RunReport, run_options: RunOptions, mode: Mode) -> None:
    from evalstore.cli.render.run import print_changes, print_report

    if mode.json:
        output.document(report)
        if mode.watch:
            print_changes(report, is_data=False)
    else:
        print_report(report, run_options.threshold, extent=mode.extent)
