"""`check`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Literal

import typer

from evalstore.core.errors import USAGE, EvalstoreError, Problem
from evalstore.interfaces.cli import options, output
from evalstore.interfaces.cli.app import Globals, app, here
from evalstore.interfaces.cli.options import option
from evalstore.interfaces.cli.render.list_formats import print_data
from evalstore.interfaces.cli.render.table import Table, print_table
from evalstore.planning.options import SelectionOptions


@app.command()
@options.grouped(selection=options.selection("paths"))
def check(
    selection: SelectionOptions,
    schema: Annotated[
        bool, option("--schema", "Print JSON Schemas of files, for editors.")
    ] = False,
    into: Annotated[Path | None, option("--into DIR", "With --schema: write them to DIR.")] = None,
    format: Annotated[
        Literal["text", "sarif"], option("--format FORMAT", "As text or sarif (SARIF 2.1.0).")
    ] = "text",
    output_format: options.Output = "table",
    json: options.Json = False,
) -> None:
    """Validate all files without calling a model.

    'check --schema KIND' prints the JSON Schema of a kind of file: frontmatter, checks, prompt,
    settings, model, provider, currency or tool. It needs no workspace.
    """
    if into is not None and not schema:
        raise EvalstoreError("'--into' needs '--schema'", hint="write '--schema --into DIR'")
    if schema:
        _print_schemas(selection.paths, into)
        return
    from evalstore.runs.workspace_checks.check import check as operation

    if format != "text" and (json or output_format != "table"):
        other = "--json" if json else "--output"
        raise EvalstoreError(f"'{other}' cannot be combined with '--format'")
    report = operation(here(), selection.paths)
    report.problems.extend(_problems_of_browser())
    if format == "sarif":
        _print_sarif(report.problems)
    elif not print_data(report, ["problems"], output_format, kind="check", json=json):
        for problem in report.problems:
            output.problem(problem)
        warnings = len(report.problems) - report.errors
        output.line(
            f"{output.plural(report.files, 'test file')}, {output.plural(report.cases, 'case')}: "
            + (
                output.paint(output.plural(report.errors, "error"), "fail")
                if report.errors
                else "no errors"
            )
            + (f", {output.plural(warnings, 'warning')}" if warnings else "")
        )
    if output.is_github():
        from evalstore.exchange.github import annotate_problems
        from evalstore.workspace.settings.settings import find_root

        for annotation in annotate_problems(report.problems, find_root(here().directory)):
            output.workflow_command(annotation.command)
    if report.errors:
        raise typer.Exit(USAGE)


def _print_schemas(kinds: Sequence[str], folder: Path | None) -> None:
    from evalstore.workspace.schemas import TITLES, schema_text, write_schemas

    if folder is not None:
        for path in write_schemas(Globals.directory, folder, kinds):
            output.line(f"wrote {output.safe(str(path))}")
    elif kinds:
        for kind in kinds:
            output.line(schema_text(kind).rstrip())
    else:
        print_table(Table(("kind", "files"), [[*row] for row in TITLES.items()]))
        output.talk("'evalstore check --schema KIND' prints one, '--schema --into DIR' writes all.")


def _print_sarif(problems: Iterable[Problem]) -> None:
    from json import dumps

    from evalstore.exchange.github import sarif_log
    from evalstore.workspace.settings.settings import find_root

    output.data_line(dumps(sarif_log(problems, find_root(here().directory)), indent=2))


def _problems_of_browser() -> Iterable[Problem]:
    """Return problems in the browser's settings, which only the browser can check."""
    from evalstore.workspace.settings.settings import BrowserSettings
    from evalstore.workspace.settings.settings_reader import browser_settings

    file, browser = browser_settings(here().directory, here().config)
    if browser == BrowserSettings():
        return ()
    from evalstore.interfaces.tui.appearance import find_problems

    return find_problems(file, browser)
