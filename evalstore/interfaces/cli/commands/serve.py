"""`serve`."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from math import isfinite
from typing import Annotated

from evalstore.core.errors import EvalstoreError
from evalstore.interfaces.cli import output
from evalstore.interfaces.cli.app import app, here
from evalstore.interfaces.cli.options import option


@app.command()
def serve(
    port: Annotated[int, option("--port N", "The port; 0 is a free one.", min=0, max=65535)] = 0,
    mcp: Annotated[bool, option("--mcp", "Serve a coding agent instead.")] = False,
    allow_run: Annotated[
        bool, option("--allow-run", "With --mcp: offer a tool that runs; needs --max-cost.")
    ] = False,
    max_cost: Annotated[
        float | None,
        option(
            "--max-cost USD",
            "With --mcp: the most that all runs of this server may cost.",
            min=0,
        ),
    ] = None,
) -> None:
    """Show the results in a web browser, or serve an agent.

    The first page lists the runs; /run/REV, /case/FILE::ROW and /work (the workspace as it is now)
    are the pages of 'report', and at /label people label answers. The pages are on this machine
    only, at a secret address, and are updated during a run. Ctrl-C stops it.

    With --mcp, it speaks the Model Context Protocol on stdin and stdout, and agents start it
    themselves. They can read results, but not edit files, run code or grant trust.
    """
    if mcp:
        if port:
            raise EvalstoreError("'--port' cannot be combined with '--mcp'")
        _serve_agent(max_cost, allow_run=allow_run)
        return
    if allow_run or max_cost is not None:
        option = "--allow-run" if allow_run else "--max-cost"
        raise EvalstoreError(f"'{option}' needs '--mcp'")
    from evalstore.interfaces.web import results_site

    results_site.serve(here(), port, _tell)


def _tell(address: str) -> None:
    output.line(address)
    output.talk(
        "Anybody with this address can read the results and label answers. Ctrl-C stops it."
    )


def _serve_agent(max_cost: float | None, *, allow_run: bool) -> None:
    from evalstore.workspace.settings.settings import find_root

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
            "'--mcp' cannot be combined with '--allow-outside'",
            hint="allow what is there now with 'evalstore --allow-outside check'",
        )
    find_root(location.directory)
    if find_spec("mcp") is None:
        raise EvalstoreError(
            "'--mcp' needs the package mcp, which is not installed",
            hint="install the extra: pip install 'evalstore[mcp]'",
        )
    from evalstore.interfaces.mcp.server import serve

    if sys.stdin is None or sys.stdout is None:
        raise EvalstoreError("'--mcp' needs a standard input and output")
    if sys.stdin.isatty():
        output.talk("Serving MCP on stdin and stdout; an agent should start this. Ctrl-C stops it.")
    serve(location, max_cost)
