"""`mcp`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from math import isfinite
from typing import Annotated

import typer

from evalstore.cli import help, output
from evalstore.cli.app import app, here
from evalstore.errors import EvalstoreError


@app.command()
def mcp(
    allow_run: Annotated[
        bool,
        typer.Option(
            "--allow-run",
            help="Offer a tool that runs; needs --max-cost.",
            rich_help_panel=help.LIMITS,
        ),
    ] = False,
    max_cost: Annotated[
        float | None,
        typer.Option(
            "--max-cost",
            metavar="USD",
            min=0,
            help="What all runs together may cost until the server ends.",
            rich_help_panel=help.LIMITS,
        ),
    ] = None,
) -> None:
    """Serve the workspace to a coding agent.

    It speaks the Model Context Protocol on stdin and stdout; agents start it themselves, as
    docs/mcp.md shows. An agent reads what a run would do and cost, failures, diffs and
    explanations. It cannot edit files, run code or grant trust.
    """
    from evalstore.workspace.settings import find_root

    if allow_run and max_cost is None:
        raise EvalstoreError(
            "'--allow-run' needs a limit on the cost", hint="add '--max-cost 1.00' (USD)"
        )
    if max_cost is not None and not allow_run:
        raise EvalstoreError(
            "'--max-cost' without '--allow-run' has no effect", hint="add '--allow-run'"
        )
    if max_cost is not None and not isfinite(max_cost):
        raise EvalstoreError("'--max-cost' must be finite", hint="name an amount in USD")
    location = here()
    if location.allow_outside:
        raise EvalstoreError(
            "'mcp' cannot be combined with '--allow-outside'",
            hint="an agent may edit the workspace; allow what is there now with another command, "
            "such as 'evalstore --allow-outside check'",
        )
    find_root(location.directory)
    if find_spec("mcp") is None:
        raise EvalstoreError(
            "'mcp' needs the package mcp, which is not installed",
            hint="install the extra: pip install 'evalstore[mcp]'",
        )
    from evalstore.mcp.server import serve

    if sys.stdin is None or sys.stdout is None:
        raise EvalstoreError("'mcp' needs a standard input and output", hint="do not close them")
    if sys.stdin.isatty():
        output.talk("Serving MCP on stdin and stdout; an agent should start this. Ctrl-C stops it.")
    serve(location, max_cost)
