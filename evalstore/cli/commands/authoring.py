"""`new`, `explain`, `schema`: what helps to write test files and settings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from evalstore.cli import completions, options, output
from evalstore.cli.app import Globals, app, from_here, here
from evalstore.cli.render.table import Table, print_table
from evalstore.errors import EvalstoreError


@app.command()
def new(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="The test file, such as tests/hello.md.")
    ],
    json: options.Json = False,
) -> None:
    """Write a commented test file to start from.

    FILE must be in the folder of tests; '.md' is added when it is missing. A file that exists is
    never overwritten.
    """
    from evalstore.operations.new_test import new_test

    created = new_test(here(), file)
    if json:
        output.document(created)
        return
    output.line(f"wrote {output.safe(created.written)}")
    output.talk("Next: edit it, then run it:")
    for command in from_here([created.next]):
        output.talk(f"  {output.safe(command)}")


@app.command()
def explain(
    check: Annotated[
        str | None,
        typer.Argument(
            metavar="CHECK",
            help="The type of a check, such as contains.",
            show_default=False,
            autocompletion=completions.checks,
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Explain a check: its settings, defaults and examples.

    'evalstore ls checks' lists all checks. No workspace is needed.
    """
    from evalstore.cli.render.check_explanation import print_check_explanation
    from evalstore.operations.explain_check import explain_check

    if check is None:
        raise EvalstoreError("no check is named", hint="'evalstore ls checks' lists all checks")
    explanation = explain_check(check)
    if json:
        output.document(explanation.document())
    else:
        print_check_explanation(explanation)


@app.command()
def schema(
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="KIND",
            help="The kind of file (default: list them).",
            autocompletion=completions.schemas,
        ),
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="Write KIND, or all, into DIR."),
    ] = None,
) -> None:
    """Print the JSON Schema of a kind of file, for editors.

    KIND is frontmatter, checks, prompt, settings, model, provider, currency or tool. No workspace
    is needed.
    """
    from evalstore.operations.schemas import schema_text, schema_titles, write_schemas

    if folder is not None:
        for path in write_schemas(Globals.directory, folder, [kind] if kind else ()):
            output.line(f"wrote {output.safe(str(path))}")
    elif kind is not None:
        output.line(schema_text(kind).rstrip())
    else:
        rows = [[name, title] for name, title in schema_titles().items()]
        print_table(Table(("kind", "files"), rows))
        output.talk("'evalstore schema KIND' prints one, 'evalstore schema -o DIR' writes all.")
