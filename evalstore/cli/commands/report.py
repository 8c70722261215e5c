"""`report`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from evalstore.cli import completions, options, output
from evalstore.cli.app import app, here
from evalstore.errors import EvalstoreError


@app.command()
def report(
    revision: Annotated[
        str,
        typer.Argument(
            metavar="[REV]",
            help="A run (default: the last), or @work: the workspace as it is now.",
            autocompletion=completions.runs,
        ),
    ] = "@",
    path: Annotated[
        str,
        typer.Option("-o", "--output", metavar="FILE", help="The file to write; -: stdout."),
    ] = "evalstore-report.html",
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare", metavar="REV", help="Compare with this run (default: the previous one)."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write the results of a run as one HTML file.

    The file needs no network and opens in any browser. A file that exists is replaced only if it
    is a report.
    """
    from evalstore.html_report.report import STDOUT, stream_report, write_report

    if path == STDOUT:
        if json:
            raise EvalstoreError(
                "stdout cannot have both the report and '--json'", hint="name a file with '-o'"
            )
        stream_report(here(), revision, sys.stdout.buffer, compare=compare)
        sys.stdout.buffer.flush()
        return
    written = write_report(here(), revision, path, compare=compare)
    if json:
        output.document(written)
        return
    output.line(f"wrote {output.safe(written.report)}")
    megabytes = written.bytes / 1_000_000
    output.talk(f"{output.plural(written.cases, 'case')}, {megabytes:.1f} MB")
