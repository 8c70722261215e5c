"""`serve`."""

from __future__ import annotations

from typing import Annotated

import typer

from evalstore.cli import output
from evalstore.cli.app import app, here


@app.command()
def serve(
    port: Annotated[
        int,
        typer.Option(
            "--port", metavar="N", min=0, max=65535, help="The port (default: a free one)."
        ),
    ] = 0,
) -> None:
    """Show the results in a web browser, and follow a run.

    The pages are those of 'report', at /run/REV, /case/FILE::ROW and /work (the workspace as it is
    now), on this machine only, at a random address. Ctrl-C stops it.
    """
    from evalstore.web import results_site

    results_site.serve(here(), port, _tell)


def _tell(address: str) -> None:
    output.line(address)
    output.talk("Anybody with this address can read the results. Ctrl-C stops it.")
