"""`report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalstore.cli import completions
from evalstore.cli.app import app
from evalstore.errors import EvalstoreError


@app.command()
def report(
    revision: Annotated[
        str,
        typer.Argument(
            metavar="[REV]", help="A run (default: the last).", autocompletion=completions.runs
        ),
    ] = "@",
    compare: Annotated[
        str | None,
        typer.Option(
            "--compare",
            metavar="REV",
            help="The run to compare with (default: the one before).",
            autocompletion=completions.runs,
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="FILE", help="The file to write (default: print it)."
        ),
    ] = None,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="As Markdown, for a comment on a pull request.")
    ] = False,
) -> None:
    """Report what a run changed, why, and what it cost.

    It also says whether the change of the pass rate may be chance. Texts of models stand in code:
    they mention nobody, link to nothing and load nothing.
    """
    from evalstore.cli.render.markdown_report import write_markdown_report

    if not markdown:
        raise EvalstoreError("the report has one format", hint="add --markdown")
    write_markdown_report(revision, compare, file)
