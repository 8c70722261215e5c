"""`status`, `run`, `judge`."""

from __future__ import annotations

from typing import Annotated

import typer

from evalstore.cli import options, output
from evalstore.cli.main import Globals, app, here
from evalstore.cli.run_output import print_report, print_status
from evalstore.operations.orders import FailOn, Orders, Wanted

DryRun = Annotated[bool, typer.Option("-n", "--dry-run", help="Only list what would be done.")]
Concurrency = Annotated[
    int | None,
    typer.Option("-j", "--concurrency", metavar="N", min=1, max=1024, help="Calls at once."),
]
Timeout = Annotated[
    float | None, typer.Option("--timeout", metavar="S", min=0.001, help="Seconds for one call.")
]
Retries = Annotated[
    int | None,
    typer.Option(
        "--retries",
        metavar="N",
        min=0,
        max=100,
        help="Further tries after a failure that may pass.",
    ),
]
Threshold = Annotated[
    float | None,
    typer.Option(
        "--threshold", metavar="RATE", min=0, max=1, help="Pass when this share of cases passes."
    ),
]
Fail = Annotated[FailOn, typer.Option("--fail-on", help="What makes the exit code 1.")]
Message = Annotated[
    str | None, typer.Option("--message", metavar="TEXT", help="A note to keep with the run.")
]


@app.command()
def status(
    paths: options.Paths = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Why each question and judgement.")
    ] = False,
    short: Annotated[
        bool, typer.Option("--short", help="git's two letters for each changed file.")
    ] = False,
    models: options.Models = None,
    evaluators: options.Evaluators = None,
    tags: options.Tags = None,
    exclude_tags: options.ExcludeTags = None,
    name: options.Name = None,
    attempts: options.Attempts = None,
    json: options.Json = False,
) -> None:
    """What changed since the last run, what a run would do, why, and its price."""
    from evalstore.operations.quiet import status as operation

    found = operation(
        here(), options.wanted(paths, models, evaluators, tags, exclude_tags, name, attempts)
    )
    if json:
        output.document(found.document())
    elif short:
        for change in found.changes:
            output.line(f"{change.code} {output.safe(change.file)}")
    else:
        print_status(found, explain=explain)


@app.command()
def run(
    paths: options.Paths = None,
    dry_run: DryRun = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="With -n: why each question and judgement.")
    ] = False,
    models: options.Models = None,
    evaluators: options.Evaluators = None,
    tags: options.Tags = None,
    exclude_tags: options.ExcludeTags = None,
    name: options.Name = None,
    attempts: options.Attempts = None,
    concurrency: Concurrency = None,
    timeout: Timeout = None,
    retries: Retries = None,
    threshold: Threshold = None,
    fail_on: Fail = "failure",
    message: Message = None,
    json: options.Json = False,
) -> None:
    """Ask what has no answer, judge what has no verdict, print the verdicts.

    Exit code 1: the gate failed; 3: something is missing or undecided, running again may help.
    """
    wanted = options.wanted(paths, models, evaluators, tags, exclude_tags, name, attempts)
    _carry_out(
        wanted,
        dry_run,
        explain,
        concurrency,
        timeout,
        retries,
        threshold,
        fail_on,
        message,
        json,
        judge_only=False,
    )


@app.command()
def judge(
    paths: options.Paths = None,
    dry_run: DryRun = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="With -n: why each judgement.")
    ] = False,
    models: options.Models = None,
    evaluators: options.Evaluators = None,
    tags: options.Tags = None,
    exclude_tags: options.ExcludeTags = None,
    name: options.Name = None,
    concurrency: Concurrency = None,
    timeout: Timeout = None,
    retries: Retries = None,
    threshold: Threshold = None,
    fail_on: Fail = "failure",
    message: Message = None,
    json: options.Json = False,
) -> None:
    """Judge stored answers that have no verdict; never ask a candidate."""
    wanted = options.wanted(paths, models, evaluators, tags, exclude_tags, name)
    _carry_out(
        wanted,
        dry_run,
        explain,
        concurrency,
        timeout,
        retries,
        threshold,
        fail_on,
        message,
        json,
        judge_only=True,
    )


def _as_text(message: str | None) -> str | None:
    """The message with bytes that are not UTF-8 shown as escapes."""
    return message and message.encode(errors="backslashreplace").decode()


def _carry_out(
    wanted: Wanted,
    dry_run: bool,
    explain: bool,
    concurrency: int | None,
    timeout: float | None,
    retries: int | None,
    threshold: float | None,
    fail_on: FailOn,
    message: str | None,
    json: bool,
    *,
    judge_only: bool,
) -> None:
    from evalstore.cli.progress import ProgressWatcher
    from evalstore.operations.run import plan_run
    from evalstore.operations.run import run as operation

    if dry_run:
        found = plan_run(here(), wanted, judge_only=judge_only)
        if json:
            output.document(found.document())
        else:
            print_status(found, explain=True)
        return
    orders = Orders(
        concurrency, timeout, retries, threshold, fail_on, _as_text(message), judge_only
    )
    report = operation(here(), wanted, orders, ProgressWatcher(Globals.progress))
    if json:
        output.document(report.document())
    else:
        print_report(report, threshold)
    if report.exit_code:
        raise typer.Exit(report.exit_code)
