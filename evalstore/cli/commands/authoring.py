"""`new`, `explain`, `schema`: what helps to write test files and settings."""

from __future__ import annotations

from typing import Annotated

import typer

from evalstore.cli import options, output
from evalstore.cli.app import app, here
from evalstore.cli.render.check_explanation import print_explanation


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
    output.talk(f"  {output.safe(created.next)}")


@app.command()
def explain(
    check: Annotated[
        str, typer.Argument(metavar="CHECK", help="The type of a check, such as contains.")
    ],
    json: options.Json = False,
) -> None:
    """Explain a check: its settings, defaults and examples.

    'evalstore ls checks' lists all checks. No workspace is needed.
    """
    from evalstore.operations.explain_check import explain_check

    explanation = explain_check(check)
    if json:
        output.document(explanation.document())
    else:
        print_explanation(explanation)
